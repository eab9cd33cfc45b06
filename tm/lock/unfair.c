/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The waiting half of the unfair queued lock; tm/lock/unfair.h describes the algorithm.
 *
 * The queue holds the waiters. It does not decide which of them gets the lock: the locked byte does. Two rules keep the
 * queue whole.
 *
 *   1. A waiter leaves the queue only while it holds the lock, and before it releases it, from any position.
 *   2. Only a leaving processor changes the links between two nodes, and which node is the head.
 *
 * So the lock itself guards the inside of the queue: one processor leaves at a time, and its neighbours stand still,
 * because they cannot leave. Only the end of the queue changes at the same time: joining processors exchange the tail,
 * and then write `next` of the node that was the tail, which is NULL.
 *
 * B leaves from the middle:
 *
 *     [A head] <=> [B holds the lock] <=> [C]        C.previous = A; A.next = C
 *     [A head] <=====================> [C]
 *
 * C, the last, leaves:
 *
 *     [A head] <=> [B] <=> [C holds the lock]        B.next = NULL; tail C -> B
 *     [A head] <=> [B]
 *
 *   B.next is cleared first: as soon as B is the tail again, another processor may join behind it and write B.next. If
 *   a processor joins before the tail is set back, the compare-and-swap fails, C waits for the link and leaves as from
 *   the middle.
 *
 * A, the head, leaves:
 *
 *     [A head, holds the lock] <=> [B]               B.head = 1
 *     [B head]
 *
 *   The processor that left before A decided under the lock whether A is the head: A cannot become the head while it
 *   leaves.
 *
 * A left node is in use again at once, perhaps in another lock's queue. Only a waiter that reads `previous` to learn
 * its position still points at it. The position is a hint: the node is never freed, and any number will do.
 *
 * Orderings. All of the above is written under the lock and so ordered by its release and acquire, except towards
 * joining and waiting processors. The link to a node is a release and is read with acquire (the node's fields precede
 * it). `head` lets its reader try at every turn and orders nothing. Processors may join in between a release and the
 * next acquire and change the tail: see tm/lock/queued.c.
 */
#include <tm/lock/unfair.h>

#include "node.h"

/* Joins the queue as its last node. */
static void join(struct tm_unfair_lock *lock, struct tm_lock_node *node, uint32_t tail)
{
    uint32_t word = tm_lock_tail_exchange(&lock->word, tail);

    if (word & TM_QUEUE_TAIL_MASK) {
        struct tm_lock_node *previous = tm_lock_tail_node(word);

        /* Before the link: a processor that finds this node may leave, and then changes `previous`. */
        __atomic_store_n(&node->previous, previous, __ATOMIC_RELAXED);
        __atomic_store_n(&previous->next, node, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&node->head, 1, __ATOMIC_RELAXED);
    }
}

/* The approximate distance from the head. */
static uint32_t position_update(struct tm_lock_node *node)
{
    uint32_t position = 0;

    if (!__atomic_load_n(&node->head, __ATOMIC_RELAXED)) {
        struct tm_lock_node *previous = __atomic_load_n(&node->previous, __ATOMIC_RELAXED);

        position = __atomic_load_n(&previous->position, __ATOMIC_RELAXED) + 1;
    }
    __atomic_store_n(&node->position, position, __ATOMIC_RELAXED);
    return position;
}

/* Turns between two attempts from this position, a power of two. */
static uint32_t steal_turns(uint32_t position)
{
    uint32_t turns = 1;

    if (position)
        for (turns = TM_UNFAIR_LOCK_STEAL_TURNS_MIN; --position && turns < TM_UNFAIR_LOCK_STEAL_TURNS_MAX; turns *= 2)
            ;
    return turns;
}

/* (x, 0) -> (x, 1). Acquire if so. Only reads while the lock is held: the line stays shared among the waiters. */
static bool take(struct tm_unfair_lock *lock)
{
    return !__atomic_load_n(&lock->word.locked, __ATOMIC_RELAXED) &&
           !(__atomic_fetch_or(&lock->word.value, TM_QUEUE_LOCKED, __ATOMIC_ACQUIRE) & TM_QUEUE_LOCKED);
}

/* Waits in the queue, at whatever position, until this processor has taken the lock. Acquire. */
static void wait_and_take(struct tm_unfair_lock *lock, struct tm_lock_node *node)
{
    uint32_t position;
    unsigned turns = 0;

    do {
        position = position_update(node);
        for (uint32_t turn = steal_turns(position); turn; turn--) {
            tm_port_wait(&turns);
            /* A node that has become the head need not wait for the rest of its turns. */
            if (position && __atomic_load_n(&node->head, __ATOMIC_RELAXED))
                break;
        }
    } while (!take(lock));
    if (__atomic_load_n(&node->head, __ATOMIC_RELAXED))
        position = 0;
    position = position < TM_STATISTICS_POSITIONS ? position : TM_STATISTICS_POSITIONS - 1;
    tm_statistics_add(TM_STATISTIC_STEALS_0 + position);
}

/* Leaves the queue. The caller holds the lock. */
static void leave(struct tm_unfair_lock *lock, struct tm_lock_node *node, uint32_t tail)
{
    struct tm_lock_node *previous = NULL, *next;
    uint32_t word = __atomic_load_n(&lock->word.value, __ATOMIC_RELAXED);

    if (!__atomic_load_n(&node->head, __ATOMIC_RELAXED))
        previous = __atomic_load_n(&node->previous, __ATOMIC_RELAXED);
    if ((word & TM_QUEUE_TAIL_MASK) == tail) {
        uint32_t left = TM_QUEUE_LOCKED;

        if (previous) {
            __atomic_store_n(&previous->next, NULL, __ATOMIC_RELAXED);
            left |= tm_lock_node_tail(previous);
        }
        /*
         * (n, 1) -> (m, 1). Release: a processor that joins behind m writes its `next` after this one has cleared it.
         */
        if (__atomic_compare_exchange_n(&lock->word.value, &word, left, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
    next = tm_lock_node_next(node);
    if (previous) {
        __atomic_store_n(&next->previous, previous, __ATOMIC_RELAXED);
        __atomic_store_n(&previous->next, next, __ATOMIC_RELAXED);
    } else {
        /* At once: a waiter behind the new head may read its position before the head has noticed. */
        __atomic_store_n(&next->position, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&next->head, 1, __ATOMIC_RELAXED);
    }
}

void tm_unfair_lock_wait(struct tm_unfair_lock *lock)
{
    uint32_t tail;
    unsigned turns = 0;
    struct tm_lock_node *node = tm_lock_node_enter(&tail);

    if (TM_UNLIKELY(!node)) {
        while (!take(lock))
            tm_port_wait(&turns);
        return;
    }
    join(lock, node, tail);
    wait_and_take(lock, node);
    leave(lock, node, tail);
    tm_lock_node_leave();
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The waiting half of the fair queued lock; tm/lock/queued.h describes the algorithm.
 *
 * While the queue is not empty, or the pending bit is set, no arriving processor takes the lock. So the head of the
 * queue, once it has seen (n, 0, 0), and the pending waiter, once it has seen (*, 1, 0), have no competitor, and take
 * the lock with a plain store.
 *
 * Orderings. The lock passes from the release (a store-release of the byte) to the processor that reads the byte 0 with
 * acquire: the pending waiter, the head, or the compare-and-swap of the fast path. Only read-modify-writes of the whole
 * word by joining processors come in between; on RVWMO and TSO, which are multi-copy atomic, reading a later value of
 * the word still means reading after the release.
 */
#include <tm/lock/queued.h>

#include "node.h"

/*
 * Turns to wait for a hand-over from pending to locked. It takes a few instructions, unless an interrupt delays its
 * owner.
 */
#define HAND_OVER_TURNS_MAX 64u

/* Waits until (0, 1, 0) has changed, or for a bounded number of turns. Returns the word. */
static uint32_t wait_for_hand_over(struct tm_queued_lock *lock, uint32_t word)
{
    for (unsigned turns = 0; word == TM_QUEUE_PENDING && turns < HAND_OVER_TURNS_MAX; turns++) {
        tm_port_relax();
        word = __atomic_load_n(&lock->word.value, __ATOMIC_RELAXED);
    }
    return word;
}

/* Becomes the pending waiter if no other processor waits, and takes the lock when it is released: whether it did. */
static bool wait_pending(struct tm_queued_lock *lock)
{
    unsigned turns = 0;
    /* (0, 0, *) -> (0, 1, *) */
    uint32_t word = __atomic_fetch_or(&lock->word.value, TM_QUEUE_PENDING, __ATOMIC_ACQUIRE);

    if (TM_UNLIKELY(word & ~TM_QUEUE_LOCKED_MASK)) {
        /* Another processor waits. (n, 1, *) -> (n, 0, *), but only if this one has set it. */
        if (!(word & TM_QUEUE_PENDING_MASK))
            __atomic_store_n(&lock->word.pending, 0, __ATOMIC_RELAXED);
        return false;
    }
    while (__atomic_load_n(&lock->word.locked, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
    /* (*, 1, 0) -> (*, 0, 1): both bytes at once, so that the head of the queue never sees (n, 0, 0) in between. */
    __atomic_store_n(&lock->word.locked_pending, TM_QUEUE_LOCKED, __ATOMIC_RELAXED);
    return true;
}

/* Waits behind `previous` until it makes this node the head. */
static void wait_for_head(struct tm_lock_node *node, uint32_t tail)
{
    unsigned turns = 0;

    /* Release: this node is initialized before the predecessor reads the link. */
    __atomic_store_n(&tm_lock_tail_node(tail)->next, node, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&node->head, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
}

/* The head's wait for (n, 0, 0). Acquire. Returns the word. */
static uint32_t wait_for_release(struct tm_queued_lock *lock)
{
    uint32_t word;
    unsigned turns = 0;

    while ((word = __atomic_load_n(&lock->word.value, __ATOMIC_ACQUIRE)) & ~TM_QUEUE_TAIL_MASK)
        tm_port_wait(&turns);
    return word;
}

static void wait_in_queue(struct tm_queued_lock *lock)
{
    uint32_t tail, word;
    unsigned turns = 0;
    struct tm_lock_node *node = tm_lock_node_enter(&tail);

    if (TM_UNLIKELY(!node)) {
        while (!tm_queue_word_take(&lock->word))
            tm_port_wait(&turns);
        return;
    }
    word = tm_lock_tail_exchange(&lock->word, tail);
    if (word & TM_QUEUE_TAIL_MASK)
        wait_for_head(node, word);
    word = wait_for_release(lock);
    /*
     * (n, 0, 0) -> (0, 0, 1) if this is the last node. That fails while the pending bit is set for a moment by a
     * processor that then joins the queue (wait_pending), or that has no node to join with. So only the tail tells
     * whether there is a next.
     */
    while ((word & TM_QUEUE_TAIL_MASK) == tail) {
        word = tail;
        if (__atomic_compare_exchange_n(&lock->word.value, &word, TM_QUEUE_LOCKED, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            tm_lock_node_leave();
            return;
        }
        tm_port_wait(&turns);
    }
    /* (n, *, 0) -> (n, *, 1), then the next node becomes the head. */
    __atomic_store_n(&lock->word.locked, TM_QUEUE_LOCKED, __ATOMIC_RELAXED);
    __atomic_store_n(&tm_lock_node_next(node)->head, 1, __ATOMIC_RELEASE);
    tm_lock_node_leave();
}

void tm_queued_lock_wait(struct tm_queued_lock *lock)
{
    uint32_t word = wait_for_hand_over(lock, __atomic_load_n(&lock->word.value, __ATOMIC_RELAXED));

    if ((word & ~TM_QUEUE_LOCKED_MASK) || !wait_pending(lock))
        wait_in_queue(lock);
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The waiting half of the para-virtualized queued lock; tm/lock/paravirtualized.h describes the algorithm.
 *
 * How a waiter sleeps, in node.state:
 *
 *     AWAKE -> ASLEEP                the waiter, behind the head: sleeps until it is the head and the lock is released
 *     ASLEEP -> AWAKE                the waiter, which woke up early or saw in time that it is the head
 *     ASLEEP -> IN_TABLE             the holder, which makes it the head, and lets it sleep until the release
 *     AWAKE -> IN_TABLE              the head, before it sleeps
 *     IN_TABLE -> AWAKE              the release, before the lock is free; or the head, which has found it free
 *
 * IN_TABLE means that the table leads from the lock to this node, and that the word has the bit S; both are true now or
 * will be at once. The writer of both is the holder of the lock (it has then set S, and its own release finds it) or
 * the head. The head first waits for a state of AWAKE, and for a word without S, because a release that is under way
 * may not have cleared it yet. From then on only the head itself sets S. So exactly one release, the one that finds S,
 * looks up each entry.
 *
 * Why no wake-up is lost. A waiter writes ASLEEP and then reads `head`; the holder writes `head` and then reads the
 * state; all are sequentially consistent, so at least one of them sees the other. If the waiter sees the holder's
 * store, it does not sleep, unless the holder has also seen it and put it into the table: then it sleeps until that
 * holder's release. For the head, the bit S and the locked bit are in one word, so either the release finds S or the
 * head finds the lock free. And the state changes before the wake-up, so a waiter that has not gone to sleep yet does
 * not (tm_port_park compares).
 */
#include <tm/lock/paravirtualized.h>

#include "node.h"

enum sleep_state { AWAKE, ASLEEP, IN_TABLE };

#define SLEEPING TM_PARAVIRTUALIZED_LOCK_SLEEPING
#define TURNS_MAX TM_PARAVIRTUALIZED_LOCK_TURNS_MAX

/*
 * The table from locks to the heads of their queues, with linear probing. A processor is the head of at most one queue
 * at each nesting level, so the table is never more than half full. A search does not end at an empty slot, so removing
 * an entry leaves no trace.
 */
#define TABLE_SLOTS (2 * TM_LOCK_LEVELS * TM_PROCESSORS_MAX)

_Static_assert((TABLE_SLOTS & (TABLE_SLOTS - 1)) == 0, "a slot is a hash modulo a power of two");

static struct slot {
    const struct tm_paravirtualized_lock *lock;
    struct tm_lock_node *node;
} table[TABLE_SLOTS];

static struct slot *slot_at(const struct tm_paravirtualized_lock *lock, uint32_t probe)
{
    /* Fibonacci hashing of the address; its low bits are the same for all locks. */
    uint64_t hash = (uint64_t)(uintptr_t)lock * 0x9e3779b97f4a7c15;

    return &table[((uint32_t)(hash >> 32) + probe) % TABLE_SLOTS];
}

static void table_insert(const struct tm_paravirtualized_lock *lock, struct tm_lock_node *node)
{
    for (uint32_t probe = 0;; probe++) {
        struct slot *slot = slot_at(lock, probe);
        const struct tm_paravirtualized_lock *none = NULL;

        /* Acquire: the processor that emptied the slot has finished reading its node. */
        if (__atomic_load_n(&slot->lock, __ATOMIC_RELAXED) == NULL &&
            __atomic_compare_exchange_n(&slot->lock, &none, lock, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            /* Ordered before the removal by the bit S, which is set after this. */
            __atomic_store_n(&slot->node, node, __ATOMIC_RELAXED);
            return;
        }
    }
}

/* Removes the lock's entry and returns its node. The lock is in the table exactly once. */
static struct tm_lock_node *table_remove(const struct tm_paravirtualized_lock *lock)
{
    for (uint32_t probe = 0; probe < TABLE_SLOTS; probe++) {
        struct slot *slot = slot_at(lock, probe);

        if (__atomic_load_n(&slot->lock, __ATOMIC_RELAXED) == lock) {
            struct tm_lock_node *node = __atomic_load_n(&slot->node, __ATOMIC_RELAXED);

            __atomic_store_n(&slot->lock, NULL, __ATOMIC_RELEASE);
            return node;
        }
    }
    tm_port_misuse("a paravirtualized lock is released, and its sleeping waiter is unknown: the lock was overwritten");
    return NULL;
}

void tm_paravirtualized_lock_wake(struct tm_paravirtualized_lock *lock)
{
    struct tm_lock_node *node;

    /*
     * The entry precedes S: this pairs with the release of the processor that set S. Our own subtraction read S, but
     * relaxed.
     */
    (void)__atomic_load_n(&lock->word.value, __ATOMIC_ACQUIRE);
    node = table_remove(lock);
    if (!node) {
        __atomic_store_n(&lock->word.locked, 0, __ATOMIC_RELEASE);
        return;
    }
    /* While the lock is not free: afterwards the node may be in another queue. */
    __atomic_store_n(&node->state, AWAKE, __ATOMIC_RELEASE);
    /* (n,0,S) -> (n,0,0), n not 0. Only the head sets S, and not before it finds S cleared. */
    __atomic_store_n(&lock->word.locked, 0, __ATOMIC_RELEASE);
    tm_statistics_add(TM_STATISTIC_KICKS);
    tm_port_unpark(&node->state, tm_lock_node_processor(node));
}

/*
 * Tries for some turns to take the lock past the queue, while the head does not forbid it: whether it did. Acquire if
 * so.
 */
static bool steal(struct tm_paravirtualized_lock *lock)
{
    for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
        uint32_t word = __atomic_load_n(&lock->word.value, __ATOMIC_RELAXED);

        /* (n,0,0) -> (n,0,1) */
        if (!(word & ~TM_QUEUE_TAIL_MASK) &&
            __atomic_compare_exchange_n(&lock->word.value, &word, word | TM_QUEUE_LOCKED, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            if (word)
                tm_statistics_add(TM_STATISTIC_TRY_STEALS);
            return true;
        }
        /* There is no queue, so this processor may become the head; or the head is awake. */
        if (!(word & TM_QUEUE_TAIL_MASK) || (word & TM_QUEUE_PENDING_MASK))
            return false;
        tm_port_relax();
    }
    return false;
}

/* Waits behind `previous` until the holder makes this node the head: awake, or in the table. */
static void wait_for_head(struct tm_lock_node *node, uint32_t tail)
{
    /* Release: this node is initialized before the predecessor reads the link. */
    __atomic_store_n(&tm_lock_tail_node(tail)->next, node, __ATOMIC_RELEASE);
    for (;;) {
        uint32_t asleep = ASLEEP;

        for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
            if (__atomic_load_n(&node->head, __ATOMIC_ACQUIRE))
                return;
            tm_port_relax();
        }
        /* Sequentially consistent, as in make_head: at least one of the two sees the other. */
        __atomic_store_n(&node->state, ASLEEP, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&node->head, __ATOMIC_SEQ_CST)) {
            tm_statistics_add(TM_STATISTIC_HALTS);
            tm_port_park(&node->state, ASLEEP);
        }
        /* Fails if the holder has made this node the head and put it into the table. */
        __atomic_compare_exchange_n(&node->state, &asleep, AWAKE, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    }
}

/* (n,1,0) -> (n,0,1), by the head: whether the lock was free. Acquire if so. */
static bool take_pending(struct tm_paravirtualized_lock *lock)
{
    uint32_t word = __atomic_load_n(&lock->word.value, __ATOMIC_RELAXED);

    /* Fails and is tried again when a waiter joins. */
    while (!(word & TM_QUEUE_LOCKED_MASK))
        if (__atomic_compare_exchange_n(&lock->word.value, &word, (word & TM_QUEUE_TAIL_MASK) | TM_QUEUE_LOCKED, 1,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    return false;
}

/*
 * Prepares the head, which is awake, for its sleep. True: the lock is held, and its release will wake the head. False:
 * the lock was free, and the head has taken it. Acquire if so.
 */
static bool enter_table(struct tm_paravirtualized_lock *lock, struct tm_lock_node *node)
{
    uint32_t word;

    __atomic_store_n(&node->state, IN_TABLE, __ATOMIC_RELAXED);
    table_insert(lock, node);
    /* (n,0,1) -> (n,0,1+S), or (n,0,0) -> (n,0,S). Release: the entry precedes S. */
    word = __atomic_fetch_or(&lock->word.value, SLEEPING, __ATOMIC_ACQ_REL);
    if (word & TM_QUEUE_LOCKED_MASK)
        return true;
    table_remove(lock);
    __atomic_store_n(&node->state, AWAKE, __ATOMIC_RELAXED);
    /* (n,0,S) -> (n,0,1): not free in between. */
    __atomic_store_n(&lock->word.locked, TM_QUEUE_LOCKED, __ATOMIC_RELAXED);
    return false;
}

/* The head's wait, until it has the lock. Acquire. */
static void wait_as_head(struct tm_paravirtualized_lock *lock, struct tm_lock_node *node)
{
    for (;;) {
        /* (n,0,x) -> (n,1,x). Only the head writes this byte. */
        __atomic_store_n(&lock->word.pending, 1, __ATOMIC_RELAXED);
        for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
            if (take_pending(lock))
                return;
            tm_port_relax();
        }
        __atomic_store_n(&lock->word.pending, 0, __ATOMIC_RELAXED);
        /* Acquire: if a release has just set it, S is still set below, or the lock is free. */
        if (__atomic_load_n(&node->state, __ATOMIC_ACQUIRE) == AWAKE) {
            /* That release is about to clear S, and must not clear the S that this processor sets. */
            if (__atomic_load_n(&lock->word.value, __ATOMIC_ACQUIRE) & SLEEPING)
                continue;
            if (!enter_table(lock, node))
                return;
        }
        tm_statistics_add(TM_STATISTIC_HALTS);
        tm_port_park(&node->state, IN_TABLE);
    }
}

/*
 * Makes the next waiter the head. If it sleeps, it may sleep until this processor's release, which finds it in the
 * table. The caller holds the lock.
 */
static void make_head(struct tm_paravirtualized_lock *lock, struct tm_lock_node *next)
{
    uint32_t asleep = ASLEEP;

    __atomic_store_n(&next->head, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&next->state, &asleep, IN_TABLE, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    table_insert(lock, next);
    /* (n,p,1) -> (n,p,1+S). Release: the entry precedes S. */
    __atomic_fetch_or(&lock->word.value, SLEEPING, __ATOMIC_RELEASE);
}

void tm_paravirtualized_lock_wait(struct tm_paravirtualized_lock *lock)
{
    uint32_t tail, word;
    struct tm_lock_node *node;

    if (steal(lock))
        return;
    node = tm_lock_node_enter(&tail);
    if (TM_UNLIKELY(!node)) {
        unsigned turns = 0;

        while (!steal(lock))
            tm_port_wait(&turns);
        return;
    }
    __atomic_store_n(&node->state, AWAKE, __ATOMIC_RELAXED);
    word = tm_lock_tail_exchange(&lock->word, tail);
    if (word & TM_QUEUE_TAIL_MASK)
        wait_for_head(node, word);
    wait_as_head(lock, node);
    /* (n,0,1) -> (0,0,1) if this is the last node. */
    word = tail | TM_QUEUE_LOCKED;
    if (!__atomic_compare_exchange_n(&lock->word.value, &word, TM_QUEUE_LOCKED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        make_head(lock, tm_lock_node_next(node));
    tm_lock_node_leave();
}

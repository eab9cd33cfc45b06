/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The list-based queue lock of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
 * Multiprocessors", ACM TOCS 9(1), 1991, section 2.4. No departures.
 *
 * Fair: first come, first served. Each waiter waits on its own node. The caller provides the node, which belongs to the
 * lock from the acquisition to the end of the release with the same node.
 *
 *     tail            next links, from the head, which holds the lock, to the tail
 *      |
 *      +-----------------------------v
 *     [head, holds] -> [waiting] -> [waiting]
 */
#ifndef TM_LOCK_MCS_H
#define TM_LOCK_MCS_H

#include <tm/lock/holder.h>

TM_DECLARATIONS_BEGIN

struct tm_mcs_node {
    struct tm_mcs_node *next;
    uint32_t waiting;
};

struct tm_mcs_lock {
    /* The last in the queue, or NULL if the lock is free. */
    struct tm_mcs_node *tail;
    TM_LOCK_HOLDER
};

#define TM_MCS_LOCK_INITIALIZER {.tail = NULL}

/* Joins the queue behind `previous` and waits until the lock is handed over. Acquire. */
void tm_mcs_lock_wait(struct tm_mcs_node *node, struct tm_mcs_node *previous);

/* Hands the lock to the successor, which has joined or is joining. Release. */
void tm_mcs_lock_hand_over(struct tm_mcs_node *node);

/* Takes the lock, NULL -> node, if it is free: whether it did. Acquire if so. Never waits. */
TM_INLINE bool tm_mcs_lock_try_acquire(struct tm_mcs_lock *lock, struct tm_mcs_node *node)
{
    struct tm_mcs_node *tail = NULL;

    node->next = NULL;
    /* Also release: a processor that joins behind this node finds `next` initialized. */
    if (__atomic_load_n(&lock->tail, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&lock->tail, &tail, node, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Joins the queue, tail -> node, and waits for the hand-over if there was a tail. Acquire. Not recursive. */
TM_INLINE void tm_mcs_lock_acquire(struct tm_mcs_lock *lock, struct tm_mcs_node *node)
{
    struct tm_mcs_node *previous;

    node->next = NULL;
    previous = __atomic_exchange_n(&lock->tail, node, __ATOMIC_ACQ_REL);
    if (TM_UNLIKELY(previous))
        tm_mcs_lock_wait(node, previous);
    tm_lock_taken(lock);
}

/*
 * Releases the lock: node -> NULL if there is no successor, otherwise hands it over. Release. `node` is that of the
 * acquisition.
 */
TM_INLINE void tm_mcs_lock_release(struct tm_mcs_lock *lock, struct tm_mcs_node *node)
{
    struct tm_mcs_node *tail = node;

    tm_lock_releases(lock, "mcs");
    if (__atomic_load_n(&node->next, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&lock->tail, &tail, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        tm_mcs_lock_hand_over(node);
}

TM_DECLARATIONS_END

#endif

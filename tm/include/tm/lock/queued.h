/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fair queued lock: the algorithm of Linux's queued spinlocks (Corbet, "MCS locks and qspinlocks", LWN, 2014),
 * written anew. It is an MCS queue whose nodes belong to the processors, so that the lock is one word. A pending bit
 * saves the first waiter the queue.
 *
 * Departures:
 * - The tail is exchanged by compare-and-swap of the whole word: riscv64 has no exchange of a half of it.
 * - An array indexed by processor number holds the nodes, not memory that each processor maps for itself.
 *
 * Fair: first come, first served, except where a processor waits in more than four levels of interrupts at once. Then
 * the innermost has no node, and takes the lock when it finds it free and without waiters.
 *
 * The word, see tm/lock/queue_word.h, with n for any tail:
 *
 *                fast       slow, by the kind of waiter                                        release
 *     uncontended   (0,0,0) -> (0,0,1) ------------------------------------------------------> (*,*,0)
 *     pending       (0,0,1) -> (0,1,1) -> (0,1,0) -> (0,0,1) --------------------------------> (*,*,0)
 *     alone         (0,1,1) -> (n,1,1) -> (n,0,1) -> (n,0,0) -> (0,0,1) ---------------------> (*,*,0)
 *     followed      (m,x,y) -> (n,x,y) -> (n,0,0) -> (n,0,1), then the next is the head -----> (*,*,0)
 */
#ifndef TM_LOCK_QUEUED_H
#define TM_LOCK_QUEUED_H

#include <tm/lock/queue_word.h>

TM_DECLARATIONS_BEGIN

struct tm_queued_lock {
    union tm_queue_word word;
    TM_LOCK_HOLDER
};

#define TM_QUEUED_LOCK_INITIALIZER {.word = {0}}

/* Takes the lock after an attempt has found it held or awaited. Acquire. */
void tm_queued_lock_wait(struct tm_queued_lock *lock);

/*
 * Takes the lock, (0,0,0) -> (0,0,1), if it is free and no processor waits: whether it did. Acquire if so. Never waits.
 */
TM_INLINE bool tm_queued_lock_try_acquire(struct tm_queued_lock *lock)
{
    if (__atomic_load_n(&lock->word.value, __ATOMIC_RELAXED) || !tm_queue_word_take(&lock->word))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock, and waits in the queue while it is held. Acquire. Not recursive. */
TM_INLINE void tm_queued_lock_acquire(struct tm_queued_lock *lock)
{
    if (TM_UNLIKELY(!tm_queue_word_take(&lock->word)))
        tm_queued_lock_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock, (*,*,1) -> (*,*,0). Release. Only the holder of the lock writes the byte. */
TM_INLINE void tm_queued_lock_release(struct tm_queued_lock *lock)
{
    tm_lock_releases(lock, "queued");
    __atomic_store_n(&lock->word.locked, 0, __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The unfair queued lock of Long, "Unfair Queued Spinlocks and Transactional Locks", 2015. Any processor that finds the
 * lock free may take it; the others wait in a queue. An arriving processor tries once and then joins the queue. The
 * head of the queue tries at every turn, and the waiters behind it try too, with a frequency that halves from position
 * to position. So the lock never waits for a processor that does not run, and still passes mostly in the order of the
 * queue, with few accesses to its word.
 *
 * The slides describe the behaviour of the lock, not its implementation. Decided here:
 * - The word is that of the fair queued lock, without a pending bit.
 * - How a waiter leaves the queue from the middle: while it holds the lock. See tm/lock/unfair.c.
 * - The position is one more than that of the predecessor, looked up again before each attempt. The successor of the
 *   head tries every TM_UNFAIR_LOCK_STEAL_TURNS_MIN turns.
 * - The twelve counters of steals are by position, and the head's is 0.
 *
 * The word, see tm/lock/queue_word.h; the pending byte is always 0:
 *
 *     (0, 0) -> (0, 1)   an arriving processor, uncontended
 *     (n, 0) -> (n, 1)   an arriving processor, past the queue; the head; a waiter
 *     (m, x) -> (n, x)   a processor that joins the queue
 *     (n, 1) -> (m, 1)   the last leaves the queue, holding the lock; m is its predecessor's tail, or 0
 *     (x, 1) -> (x, 0)   release
 */
#ifndef TM_LOCK_UNFAIR_H
#define TM_LOCK_UNFAIR_H

#include <tm/lock/queue_word.h>

TM_DECLARATIONS_BEGIN

/*
 * Turns between two attempts: of the head's successor, and the maximum, for waiters far back. Powers of two. The
 * library may be built with others; with 1 and 1 every waiter is as likely to steal as the head.
 */
#ifndef TM_UNFAIR_LOCK_STEAL_TURNS_MIN
#define TM_UNFAIR_LOCK_STEAL_TURNS_MIN 8u
#define TM_UNFAIR_LOCK_STEAL_TURNS_MAX 1024u
#endif

struct tm_unfair_lock {
    union tm_queue_word word;
    TM_LOCK_HOLDER
};

#define TM_UNFAIR_LOCK_INITIALIZER {.word = {0}}

/* (x, 0) -> (x, 1), past any waiters: whether the lock was free. Acquire if so. (x, 1) -> (x, 1) otherwise. */
TM_INLINE bool tm_unfair_lock_take(struct tm_unfair_lock *lock)
{
    uint32_t word = __atomic_fetch_or(&lock->word.value, TM_QUEUE_LOCKED, __ATOMIC_ACQUIRE);

    if (TM_STATISTICS && word && !(word & TM_QUEUE_LOCKED))
        tm_statistics_add(TM_STATISTIC_TRY_STEALS);
    return !(word & TM_QUEUE_LOCKED);
}

/* Takes the lock after it was found held. Acquire. */
void tm_unfair_lock_wait(struct tm_unfair_lock *lock);

/* Takes the lock if it is free, past a queue if there is one: whether it did. Acquire if so. Never waits. */
TM_INLINE bool tm_unfair_lock_try_acquire(struct tm_unfair_lock *lock)
{
    if (__atomic_load_n(&lock->word.locked, __ATOMIC_RELAXED) || !tm_unfair_lock_take(lock))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock, and waits in the queue while it is held and cannot be stolen. Acquire. Not recursive. */
TM_INLINE void tm_unfair_lock_acquire(struct tm_unfair_lock *lock)
{
    if (TM_UNLIKELY(!tm_unfair_lock_take(lock)))
        tm_unfair_lock_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock, (x, 1) -> (x, 0). Release. Only the holder of the lock writes the byte. */
TM_INLINE void tm_unfair_lock_release(struct tm_unfair_lock *lock)
{
    tm_lock_releases(lock, "unfair");
    __atomic_store_n(&lock->word.locked, 0, __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

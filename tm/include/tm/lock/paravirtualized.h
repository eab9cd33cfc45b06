/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The para-virtualized queued lock: the fair queued lock for processors that may stop at any time, as those of virtual
 * machines do, after the algorithm of Linux's queued spinlocks under a hypervisor, written anew. A waiter sleeps after
 * some turns (tm_port_park), and the release wakes the head of the queue, which it finds in a hash table by the lock's
 * address. Stealing is bounded: an arriving processor may take the lock past the queue, but not while the head is awake
 * and wants it.
 *
 * Departures from Linux:
 * - The release subtracts and looks at the remainder, because riscv64 has no compare-and-swap of a byte. So a bit
 *   beside the locked bit says that the head sleeps, not another value of the byte.
 * - The head sleeps on its node and not on the lock's byte, and enters itself into the table again each time.
 * - A processor that arrives while the head sleeps tries for a bounded number of turns before it joins the queue.
 *   Waiters sleep after all their turns even when the waiter ahead sleeps already.
 *
 * The word, see tm/lock/queue_word.h, with n for any tail and S for the bit that says that the head sleeps:
 *
 *     (0,0,0)  -> (0,0,1)                      an arriving processor, uncontended
 *     (n,0,0)  -> (n,0,1)                      an arriving processor, past the queue
 *     (n,0,x)  -> (n,1,x) -> (n,0,x)           the head is awake, and none steals; it is about to sleep
 *     (n,1,0)  -> (n,0,1) or (0,0,1)           the head takes the lock; (0,0,1) where it is also the last
 *     (n,0,1)  -> (n,0,1+S)                    the head sleeps; or its predecessor knows that it sleeps
 *     (n,p,1)  -> (n,p,0)                      release
 *     (n,0,1+S) -> (n,0,S) -> (n,0,0)          release; in between the head is taken out of the table
 */
#ifndef TM_LOCK_PARAVIRTUALIZED_H
#define TM_LOCK_PARAVIRTUALIZED_H

#include <tm/lock/queue_word.h>

TM_DECLARATIONS_BEGIN

#define TM_PARAVIRTUALIZED_LOCK_SLEEPING 0x2u

/* Turns for which a waiter stays awake: more than a sleep and a wake-up cost. */
#define TM_PARAVIRTUALIZED_LOCK_TURNS_MAX 1024u

struct tm_paravirtualized_lock {
    union tm_queue_word word;
    TM_LOCK_HOLDER
};

#define TM_PARAVIRTUALIZED_LOCK_INITIALIZER {.word = {0}}

/* Takes the lock after an attempt has found it held or awaited. Acquire. */
void tm_paravirtualized_lock_wait(struct tm_paravirtualized_lock *lock);

/* The rest of a release that has found the head asleep. Release. */
void tm_paravirtualized_lock_wake(struct tm_paravirtualized_lock *lock);

/*
 * Takes the lock, (0,0,0) -> (0,0,1), if it is free and no processor waits: whether it did. Acquire if so. Never waits.
 */
TM_INLINE bool tm_paravirtualized_lock_try_acquire(struct tm_paravirtualized_lock *lock)
{
    if (__atomic_load_n(&lock->word.value, __ATOMIC_RELAXED) || !tm_queue_word_take(&lock->word))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock, and waits while it is held: awake at first, then asleep. Acquire. Not recursive. */
TM_INLINE void tm_paravirtualized_lock_acquire(struct tm_paravirtualized_lock *lock)
{
    if (TM_UNLIKELY(!tm_queue_word_take(&lock->word)))
        tm_paravirtualized_lock_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock and wakes the head of the queue if it sleeps. Release. The caller holds it. */
TM_INLINE void tm_paravirtualized_lock_release(struct tm_paravirtualized_lock *lock)
{
    tm_lock_releases(lock, "paravirtualized");
    /* (n,p,1) -> (n,p,0), or (n,0,1+S) -> (n,0,S), which is not free yet. */
    if (TM_UNLIKELY(__atomic_fetch_sub(&lock->word.value, TM_QUEUE_LOCKED, __ATOMIC_RELEASE) &
                    TM_PARAVIRTUALIZED_LOCK_SLEEPING))
        tm_paravirtualized_lock_wake(lock);
}

TM_DECLARATIONS_END

#endif

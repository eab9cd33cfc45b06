/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ticket lock: each arriving processor draws a number, and a release calls the next (Mellor-Crummey and Scott,
 * "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991, section 2.2). It
 * departs in one point: waiters do not back off in proportion to their distance. A long wait gives the processor away
 * instead, where the host can do that.
 *
 * Fair: first come, first served.
 *
 *     bits 31..16   next: the ticket that the next processor draws
 *     bits 15..0    serving: the ticket whose turn it is; the lock is free where both are equal
 *
 * Up to 65535 processors may hold a ticket at a time.
 */
#ifndef TM_LOCK_TICKET_H
#define TM_LOCK_TICKET_H

#include <tm/lock/holder.h>

TM_DECLARATIONS_BEGIN

struct tm_ticket_lock {
    union {
        uint32_t word;
        /* Little-endian, as both processors are. */
        struct {
            uint16_t serving;
            uint16_t next;
        };
    };
    TM_LOCK_HOLDER
};

#define TM_TICKET_LOCK_INITIALIZER {.word = 0}
#define TM_TICKET_LOCK_NEXT_ONE 0x10000u

/* Waits until it is this ticket's turn. Acquire. */
void tm_ticket_lock_wait(struct tm_ticket_lock *lock, uint16_t ticket);

/* Takes the lock, (n, n) -> (n + 1, n), if it is free: whether it did. Acquire if so. Never waits. */
TM_INLINE bool tm_ticket_lock_try_acquire(struct tm_ticket_lock *lock)
{
    uint32_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

    if (word >> 16 != (word & 0xffff) ||
        !__atomic_compare_exchange_n(&lock->word, &word, word + TM_TICKET_LOCK_NEXT_ONE, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Draws a ticket, (n, s) -> (n + 1, s), and waits until s is n. Acquire. Not recursive. */
TM_INLINE void tm_ticket_lock_acquire(struct tm_ticket_lock *lock)
{
    uint32_t word = __atomic_fetch_add(&lock->word, TM_TICKET_LOCK_NEXT_ONE, __ATOMIC_ACQUIRE);

    if (TM_UNLIKELY(word >> 16 != (word & 0xffff)))
        tm_ticket_lock_wait(lock, (uint16_t)(word >> 16));
    tm_lock_taken(lock);
}

/* Calls the next ticket, (n, s) -> (n, s + 1). Release. Only the holder of the lock writes s. */
TM_INLINE void tm_ticket_lock_release(struct tm_ticket_lock *lock)
{
    uint16_t serving = __atomic_load_n(&lock->serving, __ATOMIC_RELAXED);

    tm_lock_releases(lock, "ticket");
    __atomic_store_n(&lock->serving, (uint16_t)(serving + 1), __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The unfair byte lock: test and test-and-set. Long, "Unfair Queued Spinlocks and Transactional Locks", 2015, compares
 * with a lock that does not look first (test_and_set.h). It is a word, because riscv64 has no exchange of a byte.
 *
 * Unfair: any arriving processor takes a free lock, and a waiter may starve. All waiters compete for each release.
 */
#ifndef TM_LOCK_BYTE_H
#define TM_LOCK_BYTE_H

#include <tm/lock/holder.h>

TM_DECLARATIONS_BEGIN

struct tm_byte_lock {
    /* 0 free, 1 held. */
    uint32_t locked;
    TM_LOCK_HOLDER
};

#define TM_BYTE_LOCK_INITIALIZER {.locked = 0}

/* Waits until the lock is free and takes it. */
void tm_byte_lock_wait(struct tm_byte_lock *lock);

/* Takes the lock, 0 -> 1, if it is free: whether it did. Acquire if so. Never waits. */
TM_INLINE bool tm_byte_lock_try_acquire(struct tm_byte_lock *lock)
{
    if (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED) ||
        __atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock, 0 -> 1, and waits while it is held. Acquire. Not recursive. */
TM_INLINE void tm_byte_lock_acquire(struct tm_byte_lock *lock)
{
    /* 1 -> 1 where it is held: nothing has changed. */
    if (TM_UNLIKELY(__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE)))
        tm_byte_lock_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock, 1 -> 0. Release. The caller holds it. */
TM_INLINE void tm_byte_lock_release(struct tm_byte_lock *lock)
{
    tm_lock_releases(lock, "byte");
    __atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

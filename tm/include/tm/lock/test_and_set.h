/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pure test-and-set lock: the unfair byte lock of Long, "Unfair Queued Spinlocks and Transactional Locks", 2015,
 * which is Linux 4.2's virt_queued_spin_lock(). Where it departs: it exchanges where that compares and exchanges. On
 * x86-64 both take the line away from its owner at each attempt, and on riscv64 only the exchange does.
 *
 * Unfair: any arriving processor takes a free lock, and a waiter may starve. Each attempt of each waiter takes the line,
 * so that a release waits behind them. byte.h is the lock that looks first.
 */
#ifndef TM_LOCK_TEST_AND_SET_H
#define TM_LOCK_TEST_AND_SET_H

#include <tm/lock/holder.h>

TM_DECLARATIONS_BEGIN

struct tm_test_and_set_lock {
    /* 0 free, 1 held. */
    uint32_t locked;
    TM_LOCK_HOLDER
};

#define TM_TEST_AND_SET_LOCK_INITIALIZER {.locked = 0}

/* Waits until the lock is free and takes it. */
void tm_test_and_set_lock_wait(struct tm_test_and_set_lock *lock);

/* Takes the lock, 0 -> 1, if it is free: whether it did. Acquire if so. Never waits. */
TM_INLINE bool tm_test_and_set_lock_try_acquire(struct tm_test_and_set_lock *lock)
{
    if (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED) ||
        __atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock, 0 -> 1, and waits while it is held. Acquire. Not recursive. */
TM_INLINE void tm_test_and_set_lock_acquire(struct tm_test_and_set_lock *lock)
{
    /* 1 -> 1 where it is held: nothing has changed. */
    if (TM_UNLIKELY(__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE)))
        tm_test_and_set_lock_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock, 1 -> 0. Release. The caller holds it. */
TM_INLINE void tm_test_and_set_lock_release(struct tm_test_and_set_lock *lock)
{
    tm_lock_releases(lock, "test-and-set");
    __atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

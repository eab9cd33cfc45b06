/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/byte.h>

void tm_byte_lock_wait(struct tm_byte_lock *lock)
{
    unsigned turns = 0;

    do {
        /* Waiters only read while the lock is held: the line stays shared among them until the release. */
        while (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED))
            tm_port_wait(&turns);
    } while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE));
}

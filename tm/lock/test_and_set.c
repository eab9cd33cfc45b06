/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/test_and_set.h>

void tm_test_and_set_lock_wait(struct tm_test_and_set_lock *lock)
{
    unsigned turns = 0;

    do {
        tm_port_wait(&turns);
    } while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE));
}

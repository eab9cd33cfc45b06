/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <pthread.h>

#define LOCK_NAME pthread_spin
#define LOCK_TYPE pthread_spinlock_t
#define LOCK_INITIALIZER 0
#define LOCK_ACQUIRE(lock, context) pthread_spin_lock(lock)
#define LOCK_RELEASE(lock, context) pthread_spin_unlock(lock)
#define LOCK_SETUP() pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE)
#define LOCK_KIND spin
#define LOCK_COMPARATOR 1

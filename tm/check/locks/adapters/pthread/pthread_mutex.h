/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <pthread.h>

#define LOCK_NAME pthread_mutex
#define LOCK_TYPE pthread_mutex_t
#define LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define LOCK_ACQUIRE(lock, context) pthread_mutex_lock(lock)
#define LOCK_RELEASE(lock, context) pthread_mutex_unlock(lock)
#define LOCK_KIND sleeping
#define LOCK_COMPARATOR 1

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <pthread.h>

#define LOCK_NAME pthread_rwlock
#define LOCK_TYPE pthread_rwlock_t
#define LOCK_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) pthread_rwlock_wrlock(lock)
#define LOCK_RELEASE(lock, context) pthread_rwlock_unlock(lock)
#define LOCK_READ_ACQUIRE(lock, context) pthread_rwlock_rdlock(lock)
#define LOCK_READ_RELEASE(lock, context) pthread_rwlock_unlock(lock)
#define LOCK_KIND rw
#define LOCK_COMPARATOR 1

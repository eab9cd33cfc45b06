/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <ck_rwlock.h>

#define LOCK_NAME ck_rwlock
#define LOCK_TYPE ck_rwlock_t
#define LOCK_INITIALIZER CK_RWLOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) ck_rwlock_write_lock(lock)
#define LOCK_RELEASE(lock, context) ck_rwlock_write_unlock(lock)
#define LOCK_READ_ACQUIRE(lock, context) ck_rwlock_read_lock(lock)
#define LOCK_READ_RELEASE(lock, context) ck_rwlock_read_unlock(lock)
#define LOCK_KIND rw
#define LOCK_COMPARATOR 1

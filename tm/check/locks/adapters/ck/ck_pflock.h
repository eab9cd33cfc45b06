/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <ck_pflock.h>

#define LOCK_NAME ck_pflock
#define LOCK_TYPE ck_pflock_t
#define LOCK_INITIALIZER CK_PFLOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) ck_pflock_write_lock(lock)
#define LOCK_RELEASE(lock, context) ck_pflock_write_unlock(lock)
#define LOCK_READ_ACQUIRE(lock, context) ck_pflock_read_lock(lock)
#define LOCK_READ_RELEASE(lock, context) ck_pflock_read_unlock(lock)
#define LOCK_KIND rw
#define LOCK_FAIR 1
#define LOCK_COMPARATOR 1

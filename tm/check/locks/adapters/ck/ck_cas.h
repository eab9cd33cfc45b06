/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <ck_spinlock.h>

#define LOCK_NAME ck_cas
#define LOCK_TYPE ck_spinlock_cas_t
#define LOCK_INITIALIZER CK_SPINLOCK_CAS_INITIALIZER
#define LOCK_ACQUIRE(lock, context) ck_spinlock_cas_lock(lock)
#define LOCK_RELEASE(lock, context) ck_spinlock_cas_unlock(lock)
#define LOCK_KIND spin
#define LOCK_COMPARATOR 1

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <ck_spinlock.h>

#define LOCK_NAME ck_mcs
#define LOCK_TYPE ck_spinlock_mcs_t
#define LOCK_INITIALIZER CK_SPINLOCK_MCS_INITIALIZER
#define LOCK_ACQUIRE(lock, context) ck_spinlock_mcs_lock(lock, context)
#define LOCK_RELEASE(lock, context) ck_spinlock_mcs_unlock(lock, context)
#define LOCK_CONTEXT ck_spinlock_mcs_context_t
#define LOCK_KIND mcs
#define LOCK_FAIR 1
#define LOCK_COMPARATOR 1

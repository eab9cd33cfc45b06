/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/mcs.h>

#define LOCK_NAME mcs
#define LOCK_TYPE struct tm_mcs_lock
#define LOCK_INITIALIZER TM_MCS_LOCK_INITIALIZER
#define LOCK_CONTEXT struct tm_mcs_node
#define LOCK_ACQUIRE(lock, context) tm_mcs_lock_acquire(lock, context)
#define LOCK_TRY_ACQUIRE(lock, context) tm_mcs_lock_try_acquire(lock, context)
#define LOCK_RELEASE(lock, context) tm_mcs_lock_release(lock, context)
#define LOCK_IS_IDLE(lock) (__atomic_load_n(&(lock)->tail, __ATOMIC_RELAXED) == NULL)
#define LOCK_WAITERS(lock) ((uintptr_t)__atomic_load_n(&(lock)->tail, __ATOMIC_RELAXED))
#define LOCK_FAIR 1
#define LOCK_KIND mcs

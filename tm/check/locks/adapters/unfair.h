/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/unfair.h>

#define LOCK_NAME unfair
#define LOCK_TYPE struct tm_unfair_lock
#define LOCK_INITIALIZER TM_UNFAIR_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tm_unfair_lock_acquire(lock)
#define LOCK_TRY_ACQUIRE(lock, context) tm_unfair_lock_try_acquire(lock)
#define LOCK_RELEASE(lock, context) tm_unfair_lock_release(lock)
#define LOCK_IS_IDLE(lock) (__atomic_load_n(&(lock)->word.value, __ATOMIC_RELAXED) == 0)
#define LOCK_WAITERS(lock) (__atomic_load_n(&(lock)->word.value, __ATOMIC_RELAXED) & TM_QUEUE_TAIL_MASK)
#define LOCK_NODES 4

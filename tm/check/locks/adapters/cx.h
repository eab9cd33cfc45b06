/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/cx.h>

#include "../transactional.h"

#define LOCK_NAME cx
#define LOCK_TYPE struct tm_cx_lock
#define LOCK_INITIALIZER TM_CX_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) cx_optimistic(lock)
#define LOCK_TRY_ACQUIRE(lock, context) cx_try(lock)
#define LOCK_RELEASE(lock, context) cx_end(lock)
#define LOCK_IS_IDLE(lock) (!__atomic_load_n(&(lock)->queued.word.value, __ATOMIC_RELAXED))

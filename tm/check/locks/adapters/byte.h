/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/byte.h>

#define LOCK_NAME byte
#define LOCK_TYPE struct tm_byte_lock
#define LOCK_INITIALIZER TM_BYTE_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tm_byte_lock_acquire(lock)
#define LOCK_TRY_ACQUIRE(lock, context) tm_byte_lock_try_acquire(lock)
#define LOCK_IS_IDLE(lock) (__atomic_load_n(&(lock)->locked, __ATOMIC_RELAXED) == 0)
#define LOCK_RELEASE(lock, context) tm_byte_lock_release(lock)

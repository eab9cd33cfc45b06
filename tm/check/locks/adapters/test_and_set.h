/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/test_and_set.h>

#define LOCK_NAME test_and_set
#define LOCK_WORD test-and-set
#define LOCK_TYPE struct tm_test_and_set_lock
#define LOCK_INITIALIZER TM_TEST_AND_SET_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tm_test_and_set_lock_acquire(lock)
#define LOCK_TRY_ACQUIRE(lock, context) tm_test_and_set_lock_try_acquire(lock)
#define LOCK_IS_IDLE(lock) (__atomic_load_n(&(lock)->locked, __ATOMIC_RELAXED) == 0)
#define LOCK_RELEASE(lock, context) tm_test_and_set_lock_release(lock)

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/queued_rw.h>

#define LOCK_NAME queued_rw
#define LOCK_TYPE struct tm_queued_rw_lock
#define LOCK_INITIALIZER TM_QUEUED_RW_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tm_queued_rw_lock_write_acquire(lock)
#define LOCK_TRY_ACQUIRE(lock, context) tm_queued_rw_lock_write_try_acquire(lock)
#define LOCK_RELEASE(lock, context) tm_queued_rw_lock_write_release(lock)
#define LOCK_READ_ACQUIRE(lock, context) tm_queued_rw_lock_read_acquire(lock)
#define LOCK_READ_TRY_ACQUIRE(lock, context) tm_queued_rw_lock_read_try_acquire(lock)
#define LOCK_READ_RELEASE(lock, context) tm_queued_rw_lock_read_release(lock)
#define LOCK_IS_IDLE(lock) \
    (!__atomic_load_n(&(lock)->word, __ATOMIC_RELAXED) && \
     !__atomic_load_n(&(lock)->queue.word.value, __ATOMIC_RELAXED))
#define LOCK_WAITERS(lock) __atomic_load_n(&(lock)->queue.word.value, __ATOMIC_RELAXED)
#define LOCK_FAIR 1
#define LOCK_KIND rw
#define LOCK_NODES 4

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/ticket.h>

#define LOCK_NAME ticket
#define LOCK_TYPE struct tm_ticket_lock
#define LOCK_INITIALIZER TM_TICKET_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tm_ticket_lock_acquire(lock)
#define LOCK_TRY_ACQUIRE(lock, context) tm_ticket_lock_try_acquire(lock)
#define LOCK_RELEASE(lock, context) tm_ticket_lock_release(lock)
#define LOCK_IS_IDLE(lock) \
    (__atomic_load_n(&(lock)->next, __ATOMIC_RELAXED) == __atomic_load_n(&(lock)->serving, __ATOMIC_RELAXED))
#define LOCK_WAITERS(lock) __atomic_load_n(&(lock)->word, __ATOMIC_RELAXED)
#define LOCK_FAIR 1
#define LOCK_KIND ticket

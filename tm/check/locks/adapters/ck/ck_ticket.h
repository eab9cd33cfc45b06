/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <ck_spinlock.h>

#define LOCK_NAME ck_ticket
#define LOCK_TYPE ck_spinlock_ticket_t
#define LOCK_INITIALIZER CK_SPINLOCK_TICKET_INITIALIZER
#define LOCK_ACQUIRE(lock, context) ck_spinlock_ticket_lock(lock)
#define LOCK_RELEASE(lock, context) ck_spinlock_ticket_unlock(lock)
#define LOCK_KIND ticket
#define LOCK_FAIR 1
#define LOCK_COMPARATOR 1

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw locks that are safe inside a transaction: the locks of percpu counters and the locks of a
 * wake-up, as the boot parameter cx.safe= chooses. Outside a transaction they are taken as locks.
 * Inside one the transaction subscribes to them, which needs no xbegin, so the end of such a section
 * need not commit anything. Any function may therefore end it, also one that knows only raw locks and
 * writes 0 to the word.
 */
#include <linux/export.h>
#include <linux/irqflags.h>

#include "cx.h"

static noinline void cx_wait_for_raw(raw_spinlock_t *lock, unsigned long caller)
{
	cx_wait(lock, true);
	cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_RAW, lock, caller);
}

/* Returns true in a transaction, after it has subscribed to the lock. */
static __always_inline bool cx_subscribe(raw_spinlock_t *lock, struct static_key_false *key)
{
	if (!static_branch_unlikely(key) || likely(!xgettxid()))
		return false;
	if (unlikely(!xtest_w(lock, 0)))
		cx_wait_for_raw(lock, _RET_IP_);
	else
		cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_RAW, lock);
	return true;
}

#define CX_FORMS(class)								\
void __lockfunc cx_raw_spin_lock_##class(raw_spinlock_t *lock)			\
{										\
	if (!cx_subscribe(lock, &cx_key_##class))				\
		arch_spin_lock(&lock->raw_lock);				\
}										\
EXPORT_SYMBOL(cx_raw_spin_lock_##class);					\
										\
void __lockfunc cx_raw_spin_lock_irq_##class(raw_spinlock_t *lock)		\
{										\
	local_irq_disable();							\
	if (!cx_subscribe(lock, &cx_key_##class))				\
		arch_spin_lock(&lock->raw_lock);				\
}										\
EXPORT_SYMBOL(cx_raw_spin_lock_irq_##class);					\
										\
unsigned long __lockfunc cx_raw_spin_lock_irqsave_##class(raw_spinlock_t *lock)	\
{										\
	unsigned long flags;							\
										\
	local_irq_save(flags);							\
	if (!cx_subscribe(lock, &cx_key_##class))				\
		arch_spin_lock(&lock->raw_lock);				\
	return flags;								\
}										\
EXPORT_SYMBOL(cx_raw_spin_lock_irqsave_##class);				\
										\
int __lockfunc cx_raw_spin_trylock_##class(raw_spinlock_t *lock)		\
{										\
	if (static_branch_unlikely(&cx_key_##class) && xgettxid()) {		\
		if (!xtest_w(lock, 0))						\
			return 0;						\
		cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_RAW, lock);\
		return 1;							\
	}									\
	return arch_spin_trylock(&lock->raw_lock);				\
}										\
EXPORT_SYMBOL(cx_raw_spin_trylock_##class);
CX_FORMS(counter)
CX_FORMS(wake)

static __always_inline void cx_raw_leave(raw_spinlock_t *lock)
{
	if (static_branch_unlikely(&cx_key) && !atomic_read(&lock->raw_lock.val))
		cx_hint(CONCORD_HINT_SECTION_END, lock);
	else
		arch_spin_unlock(&lock->raw_lock);
}

void __lockfunc cx_raw_spin_unlock(raw_spinlock_t *lock)
{
	cx_raw_leave(lock);
}
EXPORT_SYMBOL(cx_raw_spin_unlock);

void __lockfunc cx_raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	cx_raw_leave(lock);
	local_irq_enable();
}
EXPORT_SYMBOL(cx_raw_spin_unlock_irq);

void __lockfunc cx_raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	cx_raw_leave(lock);
	local_irq_restore(flags);
}
EXPORT_SYMBOL(cx_raw_spin_unlock_irqrestore);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw locks that are safe inside a transaction: the locks of percpu counters and the locks of a
 * wake-up, as the boot parameter cx.safe= chooses. Outside a transaction they are taken as locks.
 * Inside one the transaction subscribes to them, which needs no xbegin, so the end of such a section
 * need not commit anything. Any function may therefore end it, also one that knows only raw locks and
 * writes 0 to the word.
 *
 * The raw locks of the files that the boot parameter cx.raw= names are more: their sections run as
 * transactions of their own, as those of a spinlock_t. Each of these files also ends its sections itself.
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

static __always_inline void cx_raw_take(arch_spinlock_t *lock, unsigned long caller)
{
	int value = 0;

	if (likely(atomic_try_cmpxchg_acquire(&lock->val, &value, _Q_LOCKED_VAL)))
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_RAW, lock, caller);
	else
		cx_queued_lock_slow(lock, value, caller, CONCORD_SECTION_RAW);
}

/*
 * Begins a section that may be a transaction of its own. Interrupts are already as the section wants
 * them, so a restart leaves them so.
 */
static noinline void cx_raw_begin(arch_spinlock_t *lock, unsigned char *site, unsigned long caller)
{
	enum cx_mode mode = CX_ELIDE;
	bool is_counted = false;
	unsigned long start;

	if (!xgettxid() && READ_ONCE(*site) != CX_ELIDE)
		mode = READ_ONCE(*site) == CX_LOCK ? CX_LOCK : cx_ask(lock, site, caller, &is_counted);
	if (mode == CX_ELIDE && cx_elide_fresh(lock, site, caller, CONCORD_SECTION_RAW)) {
		cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_RAW, lock, caller);
		return;
	}
	start = csr_read(CSR_CYCLE);
	if (atomic_read(&lock->val))
		cx_note_fight(lock, site, caller);
	cx_raw_take(lock, caller);
	if (mode == CX_ELIDE)
		cx_acquired_after_eliding(lock, site, caller, start);
	else
		cx_acquired(lock, site, caller, is_counted, start);
}

/* No raw lock of a wake-up begins a transaction: the scheduler's own locks protect what runs on a processor. */
#define cx_key_raw_wake cx_key_never
static DEFINE_STATIC_KEY_FALSE(cx_key_never);

static __always_inline void cx_raw_lock(raw_spinlock_t *lock, unsigned char *site, struct static_key_false *own,
					struct static_key_false *safe)
{
	if (static_branch_unlikely(own))
		cx_raw_begin(&lock->raw_lock, site, _RET_IP_);
	else if (!cx_subscribe(lock, safe))
		arch_spin_lock(&lock->raw_lock);
}

static __always_inline void cx_raw_leave(raw_spinlock_t *lock, struct static_key_false *own)
{
	if (!cx_is_elided(&lock->raw_lock.val))
		arch_spin_unlock(&lock->raw_lock);
	else if (static_branch_unlikely(own))
		cx_commit(lock);
	else
		cx_hint(CONCORD_HINT_SECTION_END, lock);
}

#define CX_FORMS(class)										\
void CX_LOCKFUNC cx_raw_spin_lock_##class(raw_spinlock_t *lock, unsigned char *site)		\
{												\
	cx_raw_lock(lock, site, &cx_key_raw_##class, &cx_key_##class);				\
}												\
EXPORT_SYMBOL(cx_raw_spin_lock_##class);							\
												\
void CX_LOCKFUNC cx_raw_spin_lock_irq_##class(raw_spinlock_t *lock, unsigned char *site)		\
{												\
	local_irq_disable();									\
	cx_raw_lock(lock, site, &cx_key_raw_##class, &cx_key_##class);				\
}												\
EXPORT_SYMBOL(cx_raw_spin_lock_irq_##class);							\
												\
unsigned long CX_LOCKFUNC cx_raw_spin_lock_irqsave_##class(raw_spinlock_t *lock, unsigned char *site)	\
{												\
	unsigned long flags;									\
												\
	local_irq_save(flags);									\
	cx_raw_lock(lock, site, &cx_key_raw_##class, &cx_key_##class);				\
	return flags;										\
}												\
EXPORT_SYMBOL(cx_raw_spin_lock_irqsave_##class);						\
												\
int CX_LOCKFUNC cx_raw_spin_trylock_##class(raw_spinlock_t *lock, unsigned char *site)		\
{												\
	if (static_branch_unlikely(&cx_key_##class) && xgettxid()) {				\
		if (!xtest_w(lock, 0))								\
			return 0;								\
		/* A section of its own commits at its end. */					\
		if (static_branch_unlikely(&cx_key_raw_##class))				\
			xbegin();								\
		cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_RAW, lock);	\
		return 1;									\
	}											\
	return arch_spin_trylock(&lock->raw_lock);						\
}												\
EXPORT_SYMBOL(cx_raw_spin_trylock_##class);							\
												\
void CX_LOCKFUNC cx_raw_spin_unlock_##class(raw_spinlock_t *lock)				\
{												\
	cx_raw_leave(lock, &cx_key_raw_##class);						\
}												\
EXPORT_SYMBOL(cx_raw_spin_unlock_##class);							\
												\
void CX_LOCKFUNC cx_raw_spin_unlock_irq_##class(raw_spinlock_t *lock)				\
{												\
	cx_raw_leave(lock, &cx_key_raw_##class);						\
	local_irq_enable();									\
}												\
EXPORT_SYMBOL(cx_raw_spin_unlock_irq_##class);							\
												\
void CX_LOCKFUNC cx_raw_spin_unlock_irqrestore_##class(raw_spinlock_t *lock, unsigned long flags)	\
{												\
	cx_raw_leave(lock, &cx_key_raw_##class);						\
	local_irq_restore(flags);								\
}												\
EXPORT_SYMBOL(cx_raw_spin_unlock_irqrestore_##class);
CX_RAW_CLASSES(CX_FORMS)

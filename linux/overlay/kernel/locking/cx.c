// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cooperative transactional spinlocks. <linux/cx.h> describes them and lists the departures from the
 * paper.
 *
 * The functions that begin a section return while the transaction is open, so their stack frame may be
 * gone when the transaction restarts into them. A restart undoes the transaction's own stores to that
 * part of the stack, and handlers never store there (arch/riscv/kernel/cx_entry.S).
 */
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/bottom_half.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "cx.h"

DEFINE_STATIC_KEY_FALSE(cx_key);
EXPORT_SYMBOL(cx_key);

/* Declared in <linux/lockref_cx.h>. */
DEFINE_STATIC_KEY_FALSE(cx_key_lockref);

#define CX_DEFINE(class) DEFINE_STATIC_KEY_FALSE(cx_key_##class);
CX_CLASSES(CX_DEFINE)
CX_DEFINE(counter)
CX_DEFINE(wake)
CX_DEFINE(ipi)
CX_DEFINE(page_table)
CX_DEFINE(statistics)
#undef CX_DEFINE

DEFINE_PER_CPU(struct cx_statistics, cx_statistics);

/* The lock is taken (tail, pending, locked = *,*,1): joins its queue. */
noinline void cx_queued_lock_slow(arch_spinlock_t *lock, u32 value, unsigned long caller, int kind)
{
	concord_hint(CONCORD_HINT_LOCK_SPIN_BEGIN, lock);
	concord_hint(CONCORD_HINT_LOCK_TEST_AND_SET, lock);
	queued_spin_lock_slowpath(lock, value);
	if (kind == CONCORD_SECTION_RAW)
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_RAW, lock, caller);
	else
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, lock, caller);
}
EXPORT_SYMBOL(cx_queued_lock_slow);

/*
 * Decides how a restarted transaction goes on. Returns true if the section may try again. Returns
 * false, with the transaction ended, if the budget for the cause is used up.
 *
 * Runs inside the transaction at depth 1, because a nested xbegin returns 0.
 */
noinline bool cx_retry(unsigned long status, unsigned long base)
{
	struct cx_statistics *statistics = this_cpu_ptr(&cx_statistics);
	unsigned long cause = xmetatm_cause(status);
	/*
	 * The counter has 16 bits and saturates; at its maximum it no longer tells how often this
	 * section has restarted. Resetting it to 0 makes suspended transactions take their locks.
	 */
	unsigned long count = xmetatm_csr_read(CSR_XRESTARTS);

	cx_count(&statistics->restarts[cause]);
	if (xmetatm_code(status) != CX_CODE_NONE)
		cx_count(&statistics->asked[xmetatm_code(status)]);
	if (likely(count != U16_MAX) && likely((u16)(count - base) <= cx_budgets[cause]))
		return true;
	xend();
	if (unlikely(count == U16_MAX))
		xmetatm_csr_write(CSR_XRESTARTS, 0);
	cx_count(&statistics->exclusive[cause]);
	return false;
}

/*
 * Waits inside a transaction for a lock that another processor holds as a lock. Returns true when the
 * lock has become free; only then does the word join the read set. If the wait takes too long, an
 * outermost section ends the transaction and returns false, and a nested section restarts the
 * transaction.
 */
noinline bool cx_wait(const volatile void *word, bool nested)
{
	unsigned int turns = nested ? cx_nested_wait_turns : cx_wait_turns;

	concord_hint(CONCORD_HINT_LOCK_SPIN_BEGIN, word);
	while (turns--) {
		concord_hint(CONCORD_HINT_LOCK_TEST, word);
		if (xtest_w(word, 0))
			return true;
	}
	concord_hint(CONCORD_HINT_LOCK_SPIN_ABANDONED, word);
	if (nested)
		xrestart(xmetatm_status(XMETATM_CAUSE_EXPLICIT, CX_CODE_WAITED));
	xend();
	return false;
}

/*
 * Takes the lock outside a transaction: 0,0,0 -> 0,0,1 if the contention manager allows it. Joins the
 * queue if the manager has refused too often or another processor holds the lock. This is cx_exclusive
 * of figure 2 except that it ends in the queue.
 */
static noinline void cx_acquire(arch_spinlock_t *lock, unsigned long caller)
{
	unsigned int refusals;
	unsigned long answer;

	for (refusals = 0; refusals < cx_refusals_max; refusals++) {
		answer = xcas_w(lock, 0, _Q_LOCKED_VAL);
		if (likely(answer == XCAS_SWAPPED)) {
			cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, lock, caller);
			return;
		}
		if (answer == XCAS_DIFFERED)
			break;
		if (refusals == 0)
			concord_hint(CONCORD_HINT_LOCK_SPIN_BEGIN, lock);
		concord_hint(CONCORD_HINT_LOCK_TEST_AND_SET, lock);
		cx_count(&this_cpu_ptr(&cx_statistics)->refused);
	}
	cx_queued_lock_slow(lock, atomic_read(&lock->val), caller, CONCORD_SECTION_SPIN);
}

/*
 * Without the step "sfence" of cx.safe=, locks of page-table entries are always exclusive. A lock that
 * lies in a page's descriptor is such a lock. No path takes one with interrupts disabled.
 */
static __always_inline bool cx_is_page_table_lock(const void *lock, enum cx_class class)
{
#ifdef CONFIG_FLATMEM
	const void *begin = mem_map, *end = mem_map + max_mapnr;
#else
	const void *begin = (void *)VMEMMAP_START, *end = (void *)VMEMMAP_END;
#endif

	return class == CX_CLASS_mm && static_branch_unlikely(&cx_key_page_table) && lock >= begin && lock < end;
}

/*
 * A transaction subscribes also to locks of classes that are not converted. In table 2 of the paper it
 * writes such a lock instead, which admits one transaction at a time.
 */
static __always_inline bool cx_is_optimistic(struct static_key_false *key)
{
	return static_branch_likely(key) || xgettxid();
}

/*
 * The functions from here on come in pairs. The one named _slow handles the rare cases and is always
 * the other's last call, so that the common path needs no stack frame.
 */
static noinline void cx_lock_slow(arch_spinlock_t *lock, unsigned long status, unsigned long base, unsigned long caller)
{
	if (cx_try_again(lock, status, base)) {
		cx_count_transactional();
		cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, lock, caller);
	} else {
		cx_acquire(lock, caller);
	}
}

static __always_inline void cx_lock(spinlock_t *lock, struct static_key_false *key, enum cx_class class)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long base, status;

	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key)) {
		cx_queued_lock(word, CONCORD_SECTION_SPIN);
	} else if (cx_is_page_table_lock(word, class)) {
		cx_not_in_transaction();
		cx_acquire(word, _RET_IP_);
	} else {
		/* A restart restores this register, but not the hardware's counter of restarts. */
		base = xmetatm_csr_read(CSR_XRESTARTS);
		status = xbegin();
		if (likely(!status) && likely(xtest_w(word, 0))) {
			cx_count_transactional();
			cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
		} else {
			cx_lock_slow(word, status, base, _RET_IP_);
		}
	}
}

static noinline unsigned long cx_lock_irqsave_slow(arch_spinlock_t *lock, unsigned long status, unsigned long base,
						   unsigned long caller, unsigned long flags)
{
	if (cx_try_again(lock, status, base)) {
		cx_count_transactional();
		cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, lock, caller);
		local_irq_disable();
	} else {
		local_irq_disable();
		cx_acquire(lock, caller);
	}
	return flags;
}

/*
 * A transaction waits with interrupts unchanged and disables them once it is inside (figure 2). A
 * restart enables them again.
 */
static __always_inline unsigned long cx_lock_irqsave(spinlock_t *lock, struct static_key_false *key)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long base, status, flags;

	local_save_flags(flags);
	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key)) {
		local_irq_disable();
		cx_queued_lock(word, CONCORD_SECTION_SPIN);
		return flags;
	}
	base = xmetatm_csr_read(CSR_XRESTARTS);
	status = xbegin();
	if (likely(!status) && likely(xtest_w(word, 0))) {
		cx_count_transactional();
		cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
		local_irq_disable();
		return flags;
	}
	return cx_lock_irqsave_slow(word, status, base, _RET_IP_, flags);
}

static noinline int cx_trylock_slow(arch_spinlock_t *lock, unsigned long status, unsigned long base,
				    unsigned long caller)
{
	if (!cx_retry(status, base)) {
		if (!queued_spin_trylock(lock))
			return 0;
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, lock, caller);
		return 1;
	}
	if (!xtest_w(lock, 0)) {
		xend();
		return 0;
	}
	cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, lock, caller);
	return 1;
}

static __always_inline int cx_trylock(spinlock_t *lock, struct static_key_false *key, enum cx_class class)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long base, status;

	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key))
		return cx_queued_trylock(word, CONCORD_SECTION_SPIN);
	if (cx_is_page_table_lock(word, class)) {
		cx_not_in_transaction();
		return cx_queued_trylock(word, CONCORD_SECTION_SPIN);
	}
	base = xmetatm_csr_read(CSR_XRESTARTS);
	status = xbegin();
	if (unlikely(status))
		return cx_trylock_slow(word, status, base, _RET_IP_);
	if (unlikely(!xtest_w(word, 0))) {
		xend();
		return 0;
	}
	cx_count_transactional();
	cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
	return 1;
}

#define CX_FORMS(class)									\
void __lockfunc cx_spin_lock_##class(spinlock_t *lock)					\
{											\
	cx_lock(lock, &cx_key_##class, CX_CLASS_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_##class);							\
											\
void __lockfunc cx_spin_lock_bh_##class(spinlock_t *lock)				\
{											\
	__local_bh_disable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	cx_lock(lock, &cx_key_##class, CX_CLASS_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_bh_##class);							\
											\
void __lockfunc cx_spin_lock_irq_##class(spinlock_t *lock)				\
{											\
	cx_lock_irqsave(lock, &cx_key_##class);					\
}											\
EXPORT_SYMBOL(cx_spin_lock_irq_##class);						\
											\
unsigned long __lockfunc cx_spin_lock_irqsave_##class(spinlock_t *lock)			\
{											\
	return cx_lock_irqsave(lock, &cx_key_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_irqsave_##class);						\
											\
int __lockfunc cx_spin_trylock_##class(spinlock_t *lock)				\
{											\
	return cx_trylock(lock, &cx_key_##class, CX_CLASS_##class);			\
}											\
EXPORT_SYMBOL(cx_spin_trylock_##class);							\
											\
int __lockfunc cx_spin_trylock_bh_##class(spinlock_t *lock)				\
{											\
	__local_bh_disable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	if (cx_trylock(lock, &cx_key_##class, CX_CLASS_##class))			\
		return 1;								\
	__local_bh_enable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	return 0;									\
}											\
EXPORT_SYMBOL(cx_spin_trylock_bh_##class);
CX_CLASSES(CX_FORMS)

/*
 * Ends a section, whichever way it began. If the lock reads 0, this section did not take it, and no
 * other processor can have taken it since, so the section is a transaction.
 */
static __always_inline void cx_leave(arch_spinlock_t *lock)
{
	if (static_branch_unlikely(&cx_key) && likely(!atomic_read(&lock->val)))
		cx_commit(lock);
	else
		cx_queued_unlock(lock);
}

void __lockfunc cx_spin_unlock(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
}
EXPORT_SYMBOL(cx_spin_unlock);

void __lockfunc cx_spin_unlock_bh(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
	__local_bh_enable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);
}
EXPORT_SYMBOL(cx_spin_unlock_bh);

void __lockfunc cx_spin_unlock_irq(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
	local_irq_enable();
}
EXPORT_SYMBOL(cx_spin_unlock_irq);

void __lockfunc cx_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	cx_leave(&lock->rlock.raw_lock);
	local_irq_restore(flags);
}
EXPORT_SYMBOL(cx_spin_unlock_irqrestore);

void cx_spin_lock_page_table(spinlock_t *lock)
{
	if (static_branch_unlikely(&cx_key_page_table))
		cx_exclusive(lock);
	else
		cx_spin_lock_mm(lock);
}
EXPORT_SYMBOL(cx_spin_lock_page_table);

bool cx_in_transaction(void)
{
	return static_branch_unlikely(&cx_key) && xgettxid() != 0;
}
EXPORT_SYMBOL(cx_in_transaction);

/*
 * True if a processor holds the lock as a lock. A transaction in one of the lock's sections leaves no
 * trace in the word.
 */
bool cx_spin_is_locked(spinlock_t *lock)
{
	return queued_spin_is_locked(&lock->rlock.raw_lock);
}
EXPORT_SYMBOL(cx_spin_is_locked);

/*
 * For assertions that the caller holds the lock. In a transaction the answer is always true, because
 * no record says which locks it has subscribed to; a wrong assertion goes unnoticed there.
 */
bool cx_spin_is_held(spinlock_t *lock)
{
	return queued_spin_is_locked(&lock->rlock.raw_lock) || cx_in_transaction();
}
EXPORT_SYMBOL(cx_spin_is_held);

void cx_optimistic(spinlock_t *lock)
{
	cx_spin_lock_other(lock);
}
EXPORT_SYMBOL(cx_optimistic);

void cx_exclusive(spinlock_t *lock)
{
	if (static_branch_unlikely(&cx_key)) {
		cx_not_in_transaction();
		cx_acquire(&lock->rlock.raw_lock, _RET_IP_);
	} else {
		cx_queued_lock(&lock->rlock.raw_lock, CONCORD_SECTION_SPIN);
	}
}
EXPORT_SYMBOL(cx_exclusive);

void cx_end(spinlock_t *lock)
{
	cx_spin_unlock(lock);
}
EXPORT_SYMBOL(cx_end);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cooperative transactional spinlocks: see <linux/cx.h> for what they are and where they depart from the paper.
 *
 * The functions that begin a section return from inside the transaction, and the frame of whoever began it may be gone when it restarts.
 * The transaction's own stores there are rolled back; those of handlers never go there (arch/riscv/kernel/cx_entry.S).
 */
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/bottom_half.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "cx.h"

DEFINE_STATIC_KEY_FALSE(cx_key);
EXPORT_SYMBOL(cx_key);

/* Of <linux/lockref_cx.h>. */
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

/* The lock is taken: 0,0,1 -> queue up. */
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
 * A transaction has restarted. True to try again; false when its budget is used up, and then the transaction is ended.
 *
 * Runs in the transaction, at depth 1: a nested xbegin returns 0.
 */
noinline bool cx_retry(unsigned long status, unsigned long base)
{
	struct cx_statistics *statistics = this_cpu_ptr(&cx_statistics);
	unsigned long cause = xmetatm_cause(status);
	/* 16 bits, and saturating: at the end it says nothing more. Set to 0 it makes transactions that are suspended take their locks. */
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
 * The lock is taken by somebody who is not a transaction. True when it has become free; the word is in the read set then, and not before.
 * When it took too long: false where the section is the outermost, and then the transaction is ended; a nested one restarts it.
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
 * Takes the lock, outside a transaction: 0,0,0 -> 0,0,1 where the contention manager says so, and queues up where it has refused too
 * often or somebody has it. Figure 2's cx_exclusive, but for the end.
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
 * While step "sfence" is not taken: a lock that lies in a page's descriptor guards page-table entries, and is always exclusive.
 * Nobody takes one with interrupts disabled.
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
 * Inside a transaction a lock of a class that is not converted is subscribed to like the others: the paper's table 2 has such a lock
 * written, which lets one transaction in at a time.
 */
static __always_inline bool cx_is_optimistic(struct static_key_false *key)
{
	return static_branch_likely(key) || xgettxid();
}

/*
 * The functions from here on come in pairs, of which the second does what is rare, and is called last: so the first needs no stack frame.
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
		/* A restart brings the register back, and does not bring back what the hardware counts. */
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

/* A transaction waits with interrupts as they were, and disables them inside (figure 2); a restart enables them again. */
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

/* Whichever way the section began: a lock that reads 0 was not taken, and nobody can have taken it since. */
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

/* Somebody holds the lock. A transaction in one of its sections does so without a trace, and nobody but itself can ask. */
bool cx_spin_is_locked(spinlock_t *lock)
{
	return queued_spin_is_locked(&lock->rlock.raw_lock);
}
EXPORT_SYMBOL(cx_spin_is_locked);

/* For assertions of holders. A transaction is not asked which locks it has subscribed to: no assertion that is wrong fails here. */
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

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
CX_DEFINE(shmem)
CX_DEFINE(wake)
CX_DEFINE(raw_counter)
CX_DEFINE(raw_shmem)
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
 * Notes a restart of this processor's transaction, and returns their number and the cycles lost since the
 * last charge. One piece of assembler, for the reason that cx_count() gives.
 */
static __always_inline unsigned long cx_note_restart(unsigned long cause, const volatile void *lock, unsigned char *site,
						     unsigned long caller, unsigned long *lost_cycles)
{
	unsigned long conflict = cause == XMETATM_CAUSE_NONTRANSACTIONAL ? xmetatm_csr_read(CSR_XCONFLICT) : 0;
	unsigned long after = static_branch_unlikely(&cx_key_adaptive) ? CX_AFTER_ACCOUNT : 0, lost, restarts;
	unsigned long now = csr_read(CSR_CYCLE);

	asm volatile(".insn i 0x0b, 4, x0, x0, 0\n"	/* xpush */
		     "	sd %[lock], %[lock_at](%[attempt])\n"
		     "	sd %[site], %[site_at](%[attempt])\n"
		     "	sd %[caller], %[caller_at](%[attempt])\n"
		     "	sd %[conflict], %[conflict_at](%[attempt])\n"
		     "	ld %[lost], %[begin_at](%[attempt])\n"
		     "	beq %[lost], %[begin], 1f\n"
		     "	sd %[begin], %[begin_at](%[attempt])\n"
		     "	sd %[begin], %[restart_at](%[attempt])\n"
		     "	sd x0, %[restarts_at](%[attempt])\n"
		     "1:	ld %[restarts], %[restarts_at](%[attempt])\n"
		     "	addi %[restarts], %[restarts], 1\n"
		     "	sd %[restarts], %[restarts_at](%[attempt])\n"
		     "	ld %[lost], %[restart_at](%[attempt])\n"
		     "	sd %[now], %[restart_at](%[attempt])\n"
		     "	sub %[now], %[now], %[lost]\n"
		     "	ld %[lost], %[lost_at](%[attempt])\n"
		     "	add %[lost], %[lost], %[now]\n"
		     "	sd %[lost], %[lost_at](%[attempt])\n"
		     "	ld %[now], 0(%[flags])\n"
		     "	or %[now], %[now], %[after]\n"
		     "	sd %[now], 0(%[flags])\n"
		     "	.insn i 0x0b, 5, x0, x0, 0"	/* xpop */
		     : [lost] "=&r" (lost), [restarts] "=&r" (restarts), [now] "+&r" (now)
		     : [attempt] "r" (this_cpu_ptr(&cx_attempt)), [lock] "r" (lock), [site] "r" (site), [caller] "r" (caller),
		       [conflict] "r" (conflict), [conflict_at] "i" (offsetof(struct cx_attempt, conflict)),
		       [begin] "r" (xmetatm_csr_read(CSR_XBEGINTIME)),
		       [flags] "r" (&current_thread_info()->cx_after_commit), [after] "r" (after),
		       [lock_at] "i" (offsetof(struct cx_attempt, lock)), [site_at] "i" (offsetof(struct cx_attempt, site)),
		       [caller_at] "i" (offsetof(struct cx_attempt, caller)),
		       [begin_at] "i" (offsetof(struct cx_attempt, begin_cycle)),
		       [restart_at] "i" (offsetof(struct cx_attempt, restart_cycle)),
		       [restarts_at] "i" (offsetof(struct cx_attempt, restarts)),
		       [lost_at] "i" (offsetof(struct cx_attempt, lost_cycles))
		     : "memory");
	*lost_cycles = lost;
	return restarts;
}

/*
 * Restarts, and cycles lost in them, after which a section asks its account whether it is still to be a
 * transaction. Each question begins another transaction and so makes the back-off short again, which is
 * right where a conflict comes as a surprise, and wrong where processors fight for the lock.
 */
static unsigned int cx_round_restarts(const volatile void *lock)
{
	return cx_is_fought_for(lock) ? 16 : 4;
}

static unsigned long cx_round_cycles(const volatile void *lock)
{
	return cx_is_fought_for(lock) ? 1 << 18 : 1 << 16;
}

#define CX_ROUND_OVER ULONG_MAX

/*
 * Decides how a restarted transaction goes on. Returns its number of restarts if the section may try
 * again, or CX_ROUND_OVER if it has lost so much that its account should know. Returns 0, with the
 * transaction ended, if the budget for the cause is used up.
 *
 * Runs inside the transaction at depth 1, because a nested xbegin returns 0.
 */
noinline unsigned long cx_retry(unsigned long status, const volatile void *lock, unsigned char *site, unsigned long caller)
{
	struct cx_statistics *statistics = this_cpu_ptr(&cx_statistics);
	unsigned long cause = xmetatm_cause(status);
	unsigned long lost_cycles, restarts = cx_note_restart(cause, lock, site, caller, &lost_cycles);

	cx_count(&statistics->restarts[cause]);
	if (xmetatm_code(status) != CX_CODE_NONE)
		cx_count(&statistics->asked[xmetatm_code(status)]);
	if (likely(restarts <= cx_budgets[cause]))
		return lost_cycles < cx_round_cycles(lock) ? restarts : CX_ROUND_OVER;
	xend();
	cx_count(&statistics->exclusive[cause]);
	return 0;
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

/* A section that waits asks its account again after so many tests of the lock. */
#define CX_WAIT_TURNS_A_QUESTION 64

/*
 * Waits outside a transaction for a taken lock, whose owner and queue would make a transaction that
 * waits inside lose again and again. Returns false if the section should take the lock instead: its
 * account says so by now, or the wait takes too long. A reader waits also for readers: if it joined
 * them, the next reader would find it, and the lock would never be free.
 */
static noinline bool cx_wait_outside(const volatile void *word, unsigned char *site, unsigned long caller, int kind)
{
	/*
	 * A queue of all processors has to become empty before a transaction can begin. Readers do not wait
	 * for each other that long, so that one of them may hold the lock while another one interrupts it.
	 */
	unsigned int turns = kind == CONCORD_SECTION_READ ? cx_nested_wait_turns : cx_wait_turns * num_online_cpus();
	bool is_free = !READ_ONCE(*(const volatile u32 *)word), is_counted;

	if (cx_ask(word, site, caller, &is_counted) == CX_LOCK)
		return false;
	if (is_free)
		return true;
	cx_note_fight(word, site, caller);
	concord_hint(CONCORD_HINT_LOCK_SPIN_BEGIN, word);
	while (turns-- && !is_free) {
		concord_hint(CONCORD_HINT_LOCK_TEST, word);
		is_free = !READ_ONCE(*(const volatile u32 *)word);
		/* Whoever goes on reading a word that is a lock again is in the way of its queue. */
		if (turns % CX_WAIT_TURNS_A_QUESTION == 0 && cx_ask(word, site, caller, &is_counted) == CX_LOCK)
			break;
	}
	concord_hint(CONCORD_HINT_LOCK_SPIN_ABANDONED, word);
	return is_free;
}

/* Times that a section goes back to waiting for its lock before it joins the queue. */
#define CX_ROUNDS_MAX 8

/*
 * For a transaction that has restarted or has found the lock taken. Returns true if it has now
 * subscribed to the word. Returns false, with the transaction ended, if the section has to take the
 * lock.
 */
noinline bool cx_elide(const volatile void *word, unsigned char *site, unsigned long status, unsigned long caller, int kind)
{
	unsigned long restarts, start;
	unsigned int rounds = 0;
	bool is_free;

	if (cx_is_nested())
		return cx_wait(word, true);
	for (;;) {
		restarts = 0;
		if (status && !(restarts = cx_retry(status, word, site, caller)))
			return false;
		if (!static_branch_unlikely(&cx_key_adaptive)) {
			if (xtest_w(word, 0))
				return true;
			/* Other readers hold the lock, and no writer: join them. */
			if (kind == CONCORD_SECTION_READ && xtest_b(&((struct qrwlock *)word)->wlocked, 0)) {
				xend();
				return false;
			}
			return cx_wait(word, false);
		}
		if (restarts < cx_round_restarts(word) && xtest_w(word, 0))
			return true;
		xend();
		start = csr_read(CSR_CYCLE);
		if (restarts)
			cx_charge_so_far(word, site, caller);
		is_free = ++rounds <= CX_ROUNDS_MAX && cx_wait_outside(word, site, caller, kind);
		cx_note_lost(word, site, caller, csr_read(CSR_CYCLE) - start);
		if (!is_free)
			return false;
		status = xbegin();
	}
}

/* The same for a section that has not begun its transaction, or whose outer section is one. */
noinline bool cx_elide_fresh(const volatile void *word, unsigned char *site, unsigned long caller, int kind)
{
	unsigned long status = xbegin();

	if (likely(!status) && likely(xtest_w(word, 0)))
		return true;
	return cx_elide(word, site, status, caller, kind);
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
	const void *begin, *end;

	if (class != CX_CLASS_mm || !static_branch_unlikely(&cx_key_page_table))
		return false;
#ifdef CONFIG_FLATMEM
	begin = mem_map, end = mem_map + max_mapnr;
#else
	begin = (void *)VMEMMAP_START, end = (void *)VMEMMAP_END;
#endif
	return lock >= begin && lock < end;
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
 * The functions from here on are the rare cases of those below them, and always their last call. So the
 * common path needs no stack frame, and the return address here is the section's call site.
 */

/* The lock is taken, and the section wants it. */
static __always_inline void cx_queue(arch_spinlock_t *lock, unsigned char *site, u32 value, unsigned long caller)
{
	unsigned long start = csr_read(CSR_CYCLE);

	if (static_branch_unlikely(&cx_key_adaptive))
		cx_note_fight(lock, site, caller);
	cx_queued_lock_slow(lock, value, caller, CONCORD_SECTION_SPIN);
	cx_acquired(lock, site, caller, false, start);
}

static noinline void cx_lock_queue(arch_spinlock_t *lock, unsigned char *site, u32 value)
{
	cx_queue(lock, site, value, _RET_IP_);
}

static noinline unsigned long cx_lock_irqsave_queue(arch_spinlock_t *lock, unsigned char *site, u32 value, unsigned long flags)
{
	cx_queue(lock, site, value, _RET_IP_);
	return flags;
}

static __always_inline void cx_is_transactional(const arch_spinlock_t *lock, unsigned long caller)
{
	cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, lock, caller);
}

/* Takes a lock whose account says that its sections are locks for now. */
static __always_inline void cx_lock_as_lock(arch_spinlock_t *lock, unsigned char *site, unsigned long caller, bool is_counted)
{
	/* Asked first: who finds the lock taken joins the queue at once, as long as the lock's line is here. */
	bool is_noted = cx_is_fought_for(lock);
	unsigned long start = csr_read(CSR_CYCLE);
	int value = 0;

	if (atomic_try_cmpxchg_acquire(&lock->val, &value, _Q_LOCKED_VAL)) {
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, lock, caller);
	} else {
		if (!is_noted)
			cx_note_fight(lock, site, caller);
		cx_queued_lock_slow(lock, value, caller, CONCORD_SECTION_SPIN);
	}
	cx_acquired(lock, site, caller, is_counted, start);
}

static __always_inline void cx_lock_after_eliding(arch_spinlock_t *lock, unsigned char *site, unsigned long caller)
{
	unsigned long start = csr_read(CSR_CYCLE);

	cx_acquire(lock, caller);
	cx_acquired_after_eliding(lock, site, caller, start);
}

/* The transaction has restarted, or has found the lock taken. */
static noinline void cx_lock_slow(arch_spinlock_t *lock, unsigned char *site, unsigned long status)
{
	if (cx_elide(lock, site, status, _RET_IP_, CONCORD_SECTION_SPIN))
		cx_is_transactional(lock, _RET_IP_);
	else
		cx_lock_after_eliding(lock, site, _RET_IP_);
}

/* The site neither elides nor locks without asking, or is inside a transaction. */
static noinline void cx_lock_by_asking(arch_spinlock_t *lock, unsigned char *site)
{
	bool is_counted;

	if (!xgettxid() && cx_ask(lock, site, _RET_IP_, &is_counted) == CX_LOCK) {
		cx_lock_as_lock(lock, site, _RET_IP_, is_counted);
	} else if (cx_elide_fresh(lock, site, _RET_IP_, CONCORD_SECTION_SPIN)) {
		cx_is_transactional(lock, _RET_IP_);
	} else {
		cx_lock_after_eliding(lock, site, _RET_IP_);
	}
}

static noinline void cx_lock_page_table(arch_spinlock_t *lock)
{
	cx_not_in_transaction();
	cx_acquire(lock, _RET_IP_);
}

static __always_inline void cx_lock(spinlock_t *lock, unsigned char *site, struct static_key_false *key, enum cx_class class)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long status;
	unsigned int mode;
	int value = 0;

	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key)) {
as_lock:
		if (likely(atomic_try_cmpxchg_acquire(&word->val, &value, _Q_LOCKED_VAL)))
			cx_hint(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, word);
		else
			cx_lock_queue(word, site, value);
	} else if (cx_is_page_table_lock(word, class)) {
		cx_lock_page_table(word);
	} else if (likely((mode = READ_ONCE(*site)) == CX_ELIDE)) {
		status = xbegin();
		if (likely(!status) && likely(xtest_w(word, 0))) {
					cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
		} else {
			cx_lock_slow(word, site, status);
		}
	} else if (mode == CX_LOCK && !xgettxid()) {
		goto as_lock;
	} else {
		cx_lock_by_asking(word, site);
	}
}

/*
 * A transaction waits with interrupts unchanged and disables them once it is inside (figure 2). A
 * restart enables them again.
 */
static noinline unsigned long cx_lock_irqsave_slow(arch_spinlock_t *lock, unsigned char *site, unsigned long status,
						   unsigned long flags)
{
	if (cx_elide(lock, site, status, _RET_IP_, CONCORD_SECTION_SPIN)) {
		cx_is_transactional(lock, _RET_IP_);
		local_irq_disable();
	} else {
		local_irq_disable();
		cx_lock_after_eliding(lock, site, _RET_IP_);
	}
	return flags;
}

static noinline unsigned long cx_lock_irqsave_by_asking(arch_spinlock_t *lock, unsigned char *site, unsigned long flags)
{
	bool is_counted;

	if (!xgettxid() && cx_ask(lock, site, _RET_IP_, &is_counted) == CX_LOCK) {
		local_irq_disable();
		cx_lock_as_lock(lock, site, _RET_IP_, is_counted);
	} else if (cx_elide_fresh(lock, site, _RET_IP_, CONCORD_SECTION_SPIN)) {
		cx_is_transactional(lock, _RET_IP_);
		local_irq_disable();
	} else {
		local_irq_disable();
		cx_lock_after_eliding(lock, site, _RET_IP_);
	}
	return flags;
}

static __always_inline unsigned long cx_lock_irqsave(spinlock_t *lock, unsigned char *site, struct static_key_false *key)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long status, flags;
	unsigned int mode;
	int value = 0;

	local_save_flags(flags);
	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key)) {
as_lock:
		local_irq_disable();
		if (unlikely(!atomic_try_cmpxchg_acquire(&word->val, &value, _Q_LOCKED_VAL)))
			return cx_lock_irqsave_queue(word, site, value, flags);
		cx_hint(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, word);
		return flags;
	}
	mode = READ_ONCE(*site);
	if (unlikely(mode != CX_ELIDE)) {
		if (mode == CX_LOCK && !xgettxid())
			goto as_lock;
		return cx_lock_irqsave_by_asking(word, site, flags);
	}
	status = xbegin();
	if (unlikely(status) || unlikely(!xtest_w(word, 0)))
		return cx_lock_irqsave_slow(word, site, status, flags);
	cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
	local_irq_disable();
	return flags;
}

static __always_inline int cx_trylock_as_lock(arch_spinlock_t *lock, unsigned long caller)
{
	if (!queued_spin_trylock(lock))
		return 0;
	cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, lock, caller);
	return 1;
}

/* Nothing has begun: neither the transaction nor what the account expects of it. */
static __always_inline int cx_trylock_fails(arch_spinlock_t *lock, unsigned char *site, unsigned long caller)
{
	xend();
	if (static_branch_unlikely(&cx_key_adaptive) && !xgettxid()) {
		cx_charge_so_far(lock, site, caller);
		/* No end comes at which it could be charged. */
		cx_take_lost_cycles();
	}
	return 0;
}

/* Restarts after which a section that only tries takes its lock, or goes without. */
#define CX_TRYLOCK_RESTARTS 4

static noinline int cx_trylock_slow(arch_spinlock_t *lock, unsigned char *site, unsigned long status)
{
	unsigned long restarts = cx_retry(status, lock, site, _RET_IP_), start;
	int is_taken;

	if (!restarts || (static_branch_unlikely(&cx_key_adaptive) && restarts >= CX_TRYLOCK_RESTARTS)) {
		if (restarts)
			xend();
		start = csr_read(CSR_CYCLE);
		is_taken = cx_trylock_as_lock(lock, _RET_IP_);
		cx_acquired_after_eliding(lock, site, _RET_IP_, start);
		return is_taken;
	}
	if (!xtest_w(lock, 0))
		return cx_trylock_fails(lock, site, _RET_IP_);
	cx_is_transactional(lock, _RET_IP_);
	return 1;
}

static noinline int cx_trylock_by_asking(arch_spinlock_t *lock, unsigned char *site)
{
	unsigned long status;
	bool is_counted;
	int is_taken;

	if (!xgettxid() && cx_ask(lock, site, _RET_IP_, &is_counted) == CX_LOCK) {
		is_taken = cx_trylock_as_lock(lock, _RET_IP_);
		/* Whoever only tries never waits. */
		if (is_counted && is_taken)
			cx_charge_later(lock, site, _RET_IP_, CX_LOCK, 0, false);
		return is_taken;
	}
	status = xbegin();
	if (status)
		return cx_trylock_slow(lock, site, status);
	if (!xtest_w(lock, 0))
		return cx_trylock_fails(lock, site, _RET_IP_);
	cx_is_transactional(lock, _RET_IP_);
	return 1;
}

static __always_inline int cx_trylock(spinlock_t *lock, unsigned char *site, struct static_key_false *key, enum cx_class class)
{
	arch_spinlock_t *word = &lock->rlock.raw_lock;
	unsigned long status;
	unsigned int mode;

	if (!static_branch_unlikely(&cx_key) || !cx_is_optimistic(key))
		return cx_queued_trylock(word, CONCORD_SECTION_SPIN);
	if (cx_is_page_table_lock(word, class)) {
		cx_not_in_transaction();
		return cx_queued_trylock(word, CONCORD_SECTION_SPIN);
	}
	mode = READ_ONCE(*site);
	if (unlikely(mode != CX_ELIDE)) {
		if (mode == CX_LOCK && !xgettxid())
			return cx_queued_trylock(word, CONCORD_SECTION_SPIN);
		return cx_trylock_by_asking(word, site);
	}
	status = xbegin();
	if (unlikely(status))
		return cx_trylock_slow(word, site, status);
	if (unlikely(!xtest_w(word, 0))) {
		xend();
		return 0;
	}
	cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SPIN, word);
	return 1;
}

#define CX_FORMS(class)									\
void CX_LOCKFUNC cx_spin_lock_##class(spinlock_t *lock, unsigned char *site)		\
{											\
	cx_lock(lock, site, &cx_key_##class, CX_CLASS_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_##class);							\
											\
void CX_LOCKFUNC cx_spin_lock_bh_##class(spinlock_t *lock, unsigned char *site)		\
{											\
	__local_bh_disable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	cx_lock(lock, site, &cx_key_##class, CX_CLASS_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_bh_##class);							\
											\
void CX_LOCKFUNC cx_spin_lock_irq_##class(spinlock_t *lock, unsigned char *site)		\
{											\
	cx_lock_irqsave(lock, site, &cx_key_##class);					\
}											\
EXPORT_SYMBOL(cx_spin_lock_irq_##class);						\
											\
unsigned long CX_LOCKFUNC cx_spin_lock_irqsave_##class(spinlock_t *lock, unsigned char *site)	\
{											\
	return cx_lock_irqsave(lock, site, &cx_key_##class);				\
}											\
EXPORT_SYMBOL(cx_spin_lock_irqsave_##class);						\
											\
int CX_LOCKFUNC cx_spin_trylock_##class(spinlock_t *lock, unsigned char *site)		\
{											\
	return cx_trylock(lock, site, &cx_key_##class, CX_CLASS_##class);		\
}											\
EXPORT_SYMBOL(cx_spin_trylock_##class);							\
											\
int CX_LOCKFUNC cx_spin_trylock_bh_##class(spinlock_t *lock, unsigned char *site)	\
{											\
	__local_bh_disable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	if (cx_trylock(lock, site, &cx_key_##class, CX_CLASS_##class))			\
		return 1;								\
	__local_bh_enable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);				\
	return 0;									\
}											\
EXPORT_SYMBOL(cx_spin_trylock_bh_##class);
CX_CLASSES(CX_FORMS)

/* Ends a section, whichever way it began. */
static __always_inline void cx_leave(arch_spinlock_t *lock)
{
	if (cx_is_elided(&lock->val))
		cx_commit(lock);
	else
		cx_queued_unlock(lock);
}

void CX_LOCKFUNC cx_spin_unlock(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
}
EXPORT_SYMBOL(cx_spin_unlock);

void CX_LOCKFUNC cx_spin_unlock_bh(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
	__local_bh_enable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);
}
EXPORT_SYMBOL(cx_spin_unlock_bh);

void CX_LOCKFUNC cx_spin_unlock_irq(spinlock_t *lock)
{
	cx_leave(&lock->rlock.raw_lock);
	local_irq_enable();
}
EXPORT_SYMBOL(cx_spin_unlock_irq);

void CX_LOCKFUNC cx_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	cx_leave(&lock->rlock.raw_lock);
	local_irq_restore(flags);
}
EXPORT_SYMBOL(cx_spin_unlock_irqrestore);

void cx_spin_lock_page_table(spinlock_t *lock, unsigned char *site)
{
	if (static_branch_unlikely(&cx_key_page_table))
		cx_exclusive(lock);
	else
		cx_spin_lock_mm(lock, site);
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
	cx_spin_lock_other(lock, CX_SITE());
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

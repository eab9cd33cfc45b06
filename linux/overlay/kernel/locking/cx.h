/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the source files of cxspinlocks. */
#ifndef _KERNEL_LOCKING_CX_H
#define _KERNEL_LOCKING_CX_H

#include <linux/cx.h>
#include <linux/cx_class.h>
#include <linux/percpu.h>

/* Steps beyond the paper that cx.safe= chooses one by one. */
DECLARE_STATIC_KEY_FALSE(cx_key_counter);
DECLARE_STATIC_KEY_FALSE(cx_key_wake);
/* Set while page-table locks are always taken as locks, that is, without the step "sfence". */
DECLARE_STATIC_KEY_FALSE(cx_key_page_table);
DECLARE_STATIC_KEY_FALSE(cx_key_statistics);
DECLARE_STATIC_KEY_FALSE(cx_key_seqlock);
DECLARE_STATIC_KEY_FALSE(cx_key_tasklist);
DECLARE_STATIC_KEY_FALSE(cx_key_rwlock);

#define CX_DECLARE(class) DECLARE_STATIC_KEY_FALSE(cx_key_##class);
CX_CLASSES(CX_DECLARE)
#undef CX_DECLARE

#define CX_CAUSES (XMETATM_CAUSE_DEPTH + 1)

/* Restarts of one transaction after which its outermost section takes the lock, by cause of the last. */
extern unsigned int cx_budgets[CX_CAUSES];
/* Number of times a section tests a taken lock before it gives up: outermost and nested sections. */
extern unsigned int cx_wait_turns;
extern unsigned int cx_nested_wait_turns;
/* Number of times the contention manager may refuse a lock before its taker joins the queue. */
extern unsigned int cx_refusals_max;

struct cx_statistics {
	/* Sections that ran as transactions; counted with cx.statistics=on only. */
	unsigned long transactional;
	/* By cause: restarts, and restarts after which the section took its lock. */
	unsigned long restarts[CX_CAUSES];
	unsigned long exclusive[CX_CAUSES];
	/* Restarts that a section asked for, by reason (CX_CODE_*). */
	unsigned long asked[CX_CODES];
	/* Requests for a lock that the contention manager refused. */
	unsigned long refused;
};
DECLARE_PER_CPU(struct cx_statistics, cx_statistics);

/*
 * Adds one to a word. Inside a transaction the addition is permanent: xpush keeps the word out of the
 * transaction's sets, and a restart does not undo it.
 *
 * One piece of assembler, because between xpush and xpop nothing may be stored in a stack frame. A trap
 * there finds no active transaction and uses the stack below the stack pointer. So the stack pointer
 * must not be above that of the checkpoint: only functions that began the transaction themselves, or
 * that such functions call, may use this.
 */
static __always_inline void cx_count(unsigned long *word)
{
	unsigned long scratch;

	asm volatile(".insn i 0x0b, 4, x0, x0, 0\n"	/* xpush */
		     "	ld %0, %1\n"
		     "	addi %0, %0, 1\n"
		     "	sd %0, %1\n"
		     "	.insn i 0x0b, 5, x0, x0, 0"	/* xpop */
		     : "=&r" (scratch), "+m" (*word));
}

bool cx_retry(unsigned long status, unsigned long base);
bool cx_wait(const volatile void *word, bool nested);

/*
 * Precedes operations that a transaction cannot contain. Restarts the current transaction, if there is
 * one, as a section that holds its lock.
 */
static __always_inline void cx_not_in_transaction(void)
{
	if (unlikely(xgettxid()))
		xrestart(xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, CX_CODE_EXCLUSIVE));
}

static __always_inline bool cx_is_nested(void)
{
	return xmetatm_depth(xmetatm_csr_read(CSR_XSTATUS)) > 1;
}

/*
 * For a transaction that has restarted or has found the lock taken. Returns true if it has now
 * subscribed to the word. Returns false, with the transaction ended, if the section has to take the
 * lock.
 */
static __always_inline bool cx_try_again(const volatile void *word, unsigned long status, unsigned long base)
{
	if (status && !cx_retry(status, base))
		return false;
	return xtest_w(word, 0) || cx_wait(word, cx_is_nested());
}

static __always_inline void cx_count_transactional(void)
{
	if (static_branch_unlikely(&cx_key_statistics))
		__this_cpu_inc(cx_statistics.transactional);
}

static __always_inline void cx_commit(const volatile void *word)
{
	cx_hint(CONCORD_HINT_SECTION_END, word);
	xend();
	if (unlikely(READ_ONCE(current_thread_info()->cx_held_interrupts)))
		cx_release_interrupts();
}

#endif

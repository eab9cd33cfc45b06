/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the cxspinlocks share. */
#ifndef _KERNEL_LOCKING_CX_H
#define _KERNEL_LOCKING_CX_H

#include <linux/cx.h>
#include <linux/cx_class.h>
#include <linux/percpu.h>

/* The steps beyond the paper that can be taken one by one (cx.safe=), and what else is a choice. */
DECLARE_STATIC_KEY_FALSE(cx_key_counter);
DECLARE_STATIC_KEY_FALSE(cx_key_wake);
/* Page-table locks are locks. */
DECLARE_STATIC_KEY_FALSE(cx_key_page_table);
DECLARE_STATIC_KEY_FALSE(cx_key_statistics);
DECLARE_STATIC_KEY_FALSE(cx_key_seqlock);
DECLARE_STATIC_KEY_FALSE(cx_key_tasklist);
DECLARE_STATIC_KEY_FALSE(cx_key_rwlock);

#define CX_DECLARE(class) DECLARE_STATIC_KEY_FALSE(cx_key_##class);
CX_CLASSES(CX_DECLARE)
#undef CX_DECLARE

#define CX_CAUSES (XMETATM_CAUSE_DEPTH + 1)

/* Restarts of one transaction after which its outermost section takes the lock, by the cause of the last one. */
extern unsigned int cx_budgets[CX_CAUSES];
/* Turns in which a section waits for a taken lock: as the outermost one, and inside another. */
extern unsigned int cx_wait_turns;
extern unsigned int cx_nested_wait_turns;
/* Times that the contention manager may refuse a lock. */
extern unsigned int cx_refusals_max;

struct cx_statistics {
	/* Sections that ran as transactions, where cx.statistics= has them counted. */
	unsigned long transactional;
	/* By cause: restarts, and those after which the section took its lock. */
	unsigned long restarts[CX_CAUSES];
	unsigned long exclusive[CX_CAUSES];
	/* Restarts that a section asked for, by its reason. */
	unsigned long asked[CX_CODES];
	unsigned long refused;
};
DECLARE_PER_CPU(struct cx_statistics, cx_statistics);

/*
 * Adds one to a word, in a transaction for good: the word is in nobody's sets, and is not rolled back. Nothing may be stored in a stack
 * frame between xpush and xpop, hence one piece of assembler. A trap there finds no transaction and uses the stack below: for callers
 * that have begun the transaction themselves, or are called by who has, and so are not above its checkpoint.
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

/* What cannot be done in a transaction follows: in one, starts it again as a section with its lock. */
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
 * Of a transaction that has restarted, or found the word taken: true when it has subscribed to the word after all; false when its section
 * has to take the lock, outside any transaction.
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

/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the source files of cxspinlocks. */
#ifndef _KERNEL_LOCKING_CX_H
#define _KERNEL_LOCKING_CX_H

#include <linux/cx.h>
#include <linux/cx_class.h>
#include <linux/percpu.h>
#include <asm/csr.h>

#include "cx_account.h"

struct seq_file;

/* Steps beyond the paper that cx.safe= chooses one by one. */
DECLARE_STATIC_KEY_FALSE(cx_key_counter);
DECLARE_STATIC_KEY_FALSE(cx_key_shmem);
DECLARE_STATIC_KEY_FALSE(cx_key_wake);
/* Raw locks whose sections are transactions of their own, as cx.raw= chooses. */
DECLARE_STATIC_KEY_FALSE(cx_key_raw_counter);
DECLARE_STATIC_KEY_FALSE(cx_key_raw_shmem);
/* Set while page-table locks are always taken as locks, that is, without the step "sfence". */
DECLARE_STATIC_KEY_FALSE(cx_key_page_table);
DECLARE_STATIC_KEY_FALSE(cx_key_statistics);
DECLARE_STATIC_KEY_FALSE(cx_key_seqlock);
DECLARE_STATIC_KEY_FALSE(cx_key_tasklist);
DECLARE_STATIC_KEY_FALSE(cx_key_rwlock);

#define CX_DECLARE(class) DECLARE_STATIC_KEY_FALSE(cx_key_##class);
CX_CLASSES(CX_DECLARE)
#undef CX_DECLARE

/* The functions that every section calls begin at a cache line, so that they take few of them. */
#define CX_LOCKFUNC __lockfunc ____cacheline_aligned

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

/* What the byte of a site says. The first two are those of enum cx_mode, without further questions. */
#define CX_SITE_ASK 2 /* the account decides, which may be the lock's own (cx_site.c) */

/* cx.policy=adaptive: sites learn whether to elide. Otherwise every byte of a site stays CX_ELIDE. */
DECLARE_STATIC_KEY_FALSE(cx_key_adaptive);

/*
 * What the restarts of this processor's section have cost it so far. Restarts write it between xpush and
 * xpop, so it is in no transaction's sets.
 */
struct cx_attempt {
	/* The section, and where it was called. */
	const volatile void *lock;
	unsigned char *site;
	unsigned long caller;
	/* The begin time of its transaction, and the time of its last restart. */
	unsigned long begin_cycle;
	unsigned long restart_cycle;
	/* Restarts of this transaction. */
	unsigned long restarts;
	/* Cycles lost, and not charged to an account yet. */
	unsigned long lost_cycles;
	/* Where it last lost to an access outside transactions: a physical address, or 0. */
	unsigned long conflict;
};
DECLARE_PER_CPU(struct cx_attempt, cx_attempt);

/* In thread_info's cx_after_commit, beside CX_AFTER_INTERRUPTS: cx_attempt has something to charge. */
#define CX_AFTER_ACCOUNT 2
/* Always set with cx.statistics=on: commits are counted. */
#define CX_AFTER_COUNT 4
void cx_after_commit(void);

enum cx_mode cx_ask(const volatile void *lock, unsigned char *site, unsigned long caller, bool *is_counted);
bool cx_is_fought_for(const volatile void *lock);
void cx_note_fight(const volatile void *lock, unsigned char *site, unsigned long caller);
void cx_charge_so_far(const volatile void *lock, unsigned char *site, unsigned long caller);
void cx_note_lost(const volatile void *lock, unsigned char *site, unsigned long caller, unsigned long cycles);
void cx_charge_later(const volatile void *lock, unsigned char *site, unsigned long caller, enum cx_mode mode,
		     unsigned long cycles, bool is_sample);
unsigned long cx_take_lost_cycles(void);
void cx_site_init(void);
void cx_count_commits(void);
int cx_sites_show(struct seq_file *file, void *unused);

unsigned long cx_retry(unsigned long status, const volatile void *lock, unsigned char *site, unsigned long caller);
bool cx_wait(const volatile void *word, bool nested);
bool cx_elide(const volatile void *word, unsigned char *site, unsigned long status, unsigned long caller, int kind);
bool cx_elide_fresh(const volatile void *word, unsigned char *site, unsigned long caller, int kind);

/* Acquiring a lock that nobody has takes fewer cycles. */
#define CX_LONG_ACQUIRE_CYCLES 128
/* Of the acquisitions that are not counted, one in so many long ones is charged, and counts for all of them. */
#define CX_SAMPLE 32

/* For a section that has taken its lock, as it was to: charges the cycles that this took. */
static __always_inline void cx_acquired(const volatile void *lock, unsigned char *site, unsigned long caller,
					bool is_counted, unsigned long start)
{
	unsigned long now = csr_read(CSR_CYCLE), cycles = now - start;

	if (!static_branch_unlikely(&cx_key_adaptive))
		return;
	if (is_counted)
		cx_charge_later(lock, site, caller, CX_LOCK, cycles > CX_LONG_ACQUIRE_CYCLES ? cycles : 0, false);
	else if (unlikely(cycles > CX_LONG_ACQUIRE_CYCLES) && now % CX_SAMPLE == 0)
		cx_charge_later(lock, site, caller, CX_LOCK, cycles * CX_SAMPLE, true);
}

/* For a section that was to be a transaction and has taken its lock. */
static __always_inline void cx_acquired_after_eliding(const volatile void *lock, unsigned char *site, unsigned long caller,
						      unsigned long start)
{
	if (static_branch_unlikely(&cx_key_adaptive))
		cx_charge_later(lock, site, caller, CX_ELIDE, cx_take_lost_cycles() + csr_read(CSR_CYCLE) - start, false);
}

/*
 * Precedes operations that a transaction cannot contain. Restarts the current transaction, if there is
 * one, as a section that holds its lock.
 */
static __always_inline void cx_not_in_transaction(void)
{
	if (static_branch_unlikely(&cx_key) && unlikely(xgettxid()))
		xrestart(xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, CX_CODE_EXCLUSIVE));
}

static __always_inline bool cx_is_nested(void)
{
	return xmetatm_depth(xmetatm_csr_read(CSR_XSTATUS)) > 1;
}

/*
 * Whether the section that ends is a transaction. If its lock reads 0, it did not take it, and no other
 * processor can have taken it since. The order of the questions matters: the line of a lock that was
 * taken belongs to those who wait for it, and reading the word would fetch it once more than the release.
 */
static __always_inline bool cx_is_elided(const atomic_t *word)
{
	return static_branch_unlikely(&cx_key) && likely(xgettxid()) && likely(!atomic_read(word));
}

static __always_inline void cx_commit(const volatile void *word)
{
	cx_hint(CONCORD_HINT_SECTION_END, word);
	xend();
	if (unlikely(READ_ONCE(current_thread_info()->cx_after_commit)))
		cx_after_commit();
}

#endif

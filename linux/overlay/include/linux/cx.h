/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cooperative transactional spinlocks.
 *
 * After Rossbach, Hofmann, Porter, Ramadan, Bhandari, Witchel: "TxLinux: Using and Managing Hardware
 * Transactional Memory in an Operating System", SOSP 2007, section 4, tables 2 and 3, figure 2. This
 * implementation departs from the paper in four points:
 * - The lock is a queued spinlock, not a test-and-set byte. A thread that needs the lock exclusively
 *   asks the contention manager (xcas) a bounded number of times and then joins the queue. In both
 *   designs a free lock reads 0.
 * - One release function serves all sections. A section whose lock reads 0 is a transaction, because
 *   a processor that takes the lock makes the transaction lose. So any function may release locks, in
 *   any order, whichever way the section began.
 * - Retries are bounded by a budget for each cause. The paper retries conflicts without bound, and
 *   reports starvation in dput.
 * - Waiting for a taken lock is bounded as well. In a nested section the wait ends with a restart of
 *   the whole transaction, so the deadlock of section 5 of the paper (flat nesting keeps the words of
 *   an inner section that has ended) cannot last.
 *
 * The states of a lock, seen from one processor (table 3):
 *
 *   free, word 0          --cx_optimistic-->  transactional: word 0, in the read set
 *   free, word 0          --cx_exclusive--->  exclusive: word not 0; every transaction that has read the word restarts
 *   transactional         --cx_end--------->  free: commits
 *   transactional         --I/O------------>  restarts: NEED_EXCLUSIVE, then exclusive
 *   exclusive             --cx_end--------->  free, or owned by the next in the queue
 *   exclusive             --cx_optimistic-->  waits; the word is not in the read set
 */
#ifndef _LINUX_CX_H
#define _LINUX_CX_H

#include <linux/spinlock.h>

#ifdef CONFIG_CXSPINLOCKS

/*
 * Begins a section that runs as a transaction if the boot parameter cx= allows it. Interrupts stay as
 * they are. Ordinary code calls spin_lock() instead.
 */
void cx_optimistic(spinlock_t *lock);

/*
 * Begins a section that is never a transaction. Inside a transaction it restarts the outermost section
 * with its lock. Meant for paths that always do I/O; other sections of the same lock may stay
 * optimistic.
 */
void cx_exclusive(spinlock_t *lock);

/* Ends a section, whichever way it began. */
void cx_end(spinlock_t *lock);

/* True while this processor runs a transaction. */
bool cx_in_transaction(void);

/* The conflict priority of a thread, 0 to 255: upper two bits scheduling policy, lower six priority. */
unsigned long cx_priority(const struct task_struct *task);

/* Step "ipi" of cx.safe=: interrupts to other processors are held back until the commit. */
DECLARE_STATIC_KEY_FALSE(cx_key_ipi);

/* Holds back an interrupt to a processor. Returns false if the caller has to send it now. */
bool cx_hold_interrupt(unsigned int cpu);

/* In thread_info's cx_after_commit: interrupts are held back. */
#define CX_AFTER_INTERRUPTS 1

/* Sends the interrupts that were held back by the transaction that has just committed. */
void cx_release_interrupts(void);

/* Returns -ENODEV if the processor has no transactions. */
int cx_arch_init(bool unsafe_entry);

#endif
#endif

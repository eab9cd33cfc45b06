/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cooperative transactional spinlocks.
 *
 * After Rossbach, Hofmann, Porter, Ramadan, Bhandari, Witchel: "TxLinux: Using and Managing Hardware Transactional Memory in an
 * Operating System", SOSP 2007, section 4, tables 2 and 3, figure 2. Where this departs from the paper:
 * - The lock is a queued spinlock, not a test-and-set byte. Who needs exclusion asks the contention manager (xcas) a bounded number of
 *   times and then queues up; a lock that is free reads 0 in both.
 * - One release for all: a section whose lock reads 0 is a transaction, because whoever takes the lock makes the transaction lose.
 *   So locks may be released in any order, by any function, whichever way they were entered.
 * - Retries are bounded, by a budget for each cause; the paper retries conflicts for ever, and starved in dput.
 * - Waiting for a taken lock is bounded as well, and in a nested section ends with a restart of the whole transaction: the deadlock of
 *   section 5 (flat nesting keeps words of a section that was left) cannot last.
 *
 * The states of a lock, seen from one processor (table 3):
 *
 *   free, word 0          --cx_optimistic-->  transactional: word 0, in the read set
 *   free, word 0          --cx_exclusive--->  exclusive: word not 0; every transaction that had read the word restarts
 *   transactional         --cx_end--------->  free: commits
 *   transactional         --I/O------------>  restarts: NEED_EXCLUSIVE, then exclusive
 *   exclusive             --cx_end--------->  free, or the next in the queue has it
 *   exclusive             --cx_optimistic-->  waits, the word not in the read set
 */
#ifndef _LINUX_CX_H
#define _LINUX_CX_H

#include <linux/spinlock.h>

#ifdef CONFIG_CXSPINLOCKS

/* A section that may be a transaction when cx= says so; interrupts as they are. Whoever does not care calls spin_lock. */
void cx_optimistic(spinlock_t *lock);

/*
 * A section that is never a transaction. Inside one, the outermost section is started again with its lock. For paths that always do
 * I/O; other sections of the lock may stay optimistic.
 */
void cx_exclusive(spinlock_t *lock);

/* Ends a section, whichever way it began. */
void cx_end(spinlock_t *lock);

/* True in a transaction. */
bool cx_in_transaction(void);

/* The conflict priority of a thread, 0 to 255: its scheduling policy in the upper two bits, its priority in the rest. */
unsigned long cx_priority(const struct task_struct *task);

/* Step "ipi": interrupts to other processors are held back to the commit. */
DECLARE_STATIC_KEY_FALSE(cx_key_ipi);

/* Holds back an interrupt to a processor; false when it has to be sent now. */
bool cx_hold_interrupt(unsigned int cpu);

/* Sends the interrupts that the transaction held back which has just committed. */
void cx_release_interrupts(void);

/* -ENODEV: the processor has no transactions. */
int cx_arch_init(bool unsafe_entry);

#endif
#endif

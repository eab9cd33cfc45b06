/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Cooperative transactional spinlocks: any number of processors enter a section as hardware transactions, or one
 * processor alone enters it with the lock.
 *
 * After Rossbach, Hofmann, Porter, Ramadan, Bhandari, Witchel: "TxLinux: Using and Managing Hardware Transactional
 * Memory in an Operating System", SOSP 2007, section 4, tables 2 and 3, figure 2. Departures from the paper:
 * - The lock is a fair queued lock (tm/lock/queued.h), not a test-and-set byte. A processor that needs exclusion asks
 *   the contention manager a bounded number of times and then joins the queue.
 * - One cx_end serves all sections. A section whose lock reads 0 is a transaction, because a processor that takes the
 *   lock makes the transaction fail. So any function may release locks, in any order, whichever way the section began.
 * - A budget for each cause bounds the tries (tm_htm_budgets). The paper retries conflicts without bound, and reports
 *   starvation in dput.
 * - Waiting for a taken lock is bounded as well. In a nested section it ends with a restart of the whole transaction,
 *   so the deadlock of section 5 (flat nesting keeps the words of an inner section that has ended) cannot last.
 * - It runs on RTM too, which cannot test a word without adding it to the read set, and has no contention manager: a
 *   transaction that finds its lock taken fails and waits outside, and a processor that takes the lock wins over every
 *   transaction that has read it.
 * - The lock does not change the state of interrupts. If a handler takes the lock, sections keep interrupts off, as
 *   with any spinlock.
 *
 * The states of a lock, seen from one processor (table 3). The word is that of the queued lock; it is 0 while no
 * processor holds the lock or waits for it:
 *
 *   free, word 0          --cx_optimistic-->  transactional: word 0, in the read set
 *   free, word 0          --cx_exclusive--->  exclusive: word not 0; every transaction that has read the word fails
 *   transactional         --cx_end--------->  free: commits
 *   transactional         --cx_exclusive,
 *                           input, output-->  fails with TM_HTM_IO, then exclusive
 *   exclusive             --cx_end--------->  free, or owned by the next in the queue
 *   exclusive             --cx_optimistic-->  waits; the word is not in the read set
 *
 * Mutual exclusion: a transaction that commits had the word in its read set with value 0 all the time. So no processor
 * held the lock between the transaction's first access to guarded data and its commit, at which all its stores take
 * effect. A holder sees the stores of committed transactions, because it reads guarded data only after its acquisition
 * has taken effect, which ends open transactions (tm_htm_order). A transaction sees the stores of the last holder,
 * because it first reads the 0 of that holder's release.
 *
 * Progress: a section fails at most as often as its budget allows. Then it waits in a fair queue, in which no
 * processor waits for a transaction. An inner section of a transaction waits a bounded time, then the outermost section
 * fails; once that has used up its budget it is exclusive, and its former inner section is outermost. So locks need
 * only an order in which they nest, like all spinlocks.
 *
 * Without hardware transactions (tm_htm_kind) every section is exclusive.
 */
#ifndef TM_LOCK_CX_H
#define TM_LOCK_CX_H

#include <tm/htm.h>
#include <tm/lock/queued.h>

TM_DECLARATIONS_BEGIN

struct tm_cx_lock {
    struct tm_queued_lock queued;
};

#define TM_CX_LOCK_INITIALIZER {TM_QUEUED_LOCK_INITIALIZER}

/* The rest of cx_optimistic: the transaction has failed with `status`, or is open and has found the lock taken. */
void tm_cx_lock_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries);

/* The rest of cx_try, of a transaction that has failed. */
bool tm_cx_lock_try_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries);

/*
 * Enters a section that may be a transaction. Acquire in both cases. Not recursive. The caller cannot tell which it is.
 * As a transaction it may be sent back to here any number of times (with its local variables), and at last it enters
 * alone. On Xmetatm output sends it back; on RTM every system call does.
 */
TM_INLINE void cx_optimistic(struct tm_cx_lock *lock)
{
    struct tm_htm_tries tries;
    unsigned long status;

    if (tm_htm_kind() == TM_HTM_NONE) {
        tm_queued_lock_acquire(&lock->queued);
        return;
    }
    tries = tm_htm_tries();
    status = tm_htm_section_begin();
    if (TM_UNLIKELY(status != TM_HTM_STARTED) || TM_UNLIKELY(!tm_htm_test(&lock->queued.word.value, 0)))
        tm_cx_lock_slow(lock, status, tries);
}

/* Takes the lock. Outside transactions. */
void tm_cx_lock_acquire(struct tm_cx_lock *lock);

/*
 * Enters a section that holds the lock, and is alone in it. Acquire. For sections that are known to print or to do
 * similar things; other sections of the same lock may be optimistic. An enclosing transaction is sent back to its
 * begin, which takes its own lock instead.
 */
TM_INLINE void cx_exclusive(struct tm_cx_lock *lock)
{
    if (tm_htm_active())
        tm_htm_abort(TM_HTM_IO);
    tm_cx_lock_acquire(lock);
}

/*
 * Like cx_optimistic, but does not wait. If the lock is taken, or too many processors wait for it, it returns false and
 * the section is not entered.
 */
TM_INLINE bool cx_try(struct tm_cx_lock *lock)
{
    struct tm_htm_tries tries;
    unsigned long status;

    if (tm_htm_kind() == TM_HTM_NONE)
        return tm_queued_lock_try_acquire(&lock->queued);
    tries = tm_htm_tries();
    status = tm_htm_section_begin();
    if (TM_UNLIKELY(status != TM_HTM_STARTED))
        return tm_cx_lock_try_slow(lock, status, tries);
    if (TM_LIKELY(tm_htm_test(&lock->queued.word.value, 0)))
        return true;
    tm_htm_section_commit();
    return false;
}

/* Leaves the section, in whichever form it was entered. Release. */
TM_INLINE void cx_end(struct tm_cx_lock *lock)
{
    if (__atomic_load_n(&lock->queued.word.value, __ATOMIC_RELAXED)) {
        tm_queued_lock_release(&lock->queued);
        return;
    }
#if TM_CHECKING
    if (!tm_htm_active()) {
        tm_lock_report("cx", lock, 0);
        return;
    }
#endif
    tm_htm_section_commit();
}

TM_DECLARATIONS_END

#endif

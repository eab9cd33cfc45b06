/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Cooperative transactional spinlocks: one section is entered as a hardware transaction by as many processors as like
 * to, or with the lock held by one alone.
 *
 * After Rossbach, Hofmann, Porter, Ramadan, Bhandari, Witchel: "TxLinux: Using and Managing Hardware Transactional
 * Memory in an Operating System", SOSP 2007, section 4, tables 2 and 3, figure 2. Where this departs from the paper:
 * - The lock is a fair queued lock (tm/lock/queued.h), not a test-and-set byte. Who needs exclusion asks the
 *   contention manager a bounded number of times and then queues up.
 * - One cx_end for all: a section whose lock reads 0 is a transaction, because whoever takes the lock makes the
 *   transaction fail. So locks may be left in any order, by any function, whichever way their sections were entered.
 * - Tries are bounded, by a budget for each cause (tm_htm_budgets); the paper retries conflicts for ever, and starved
 *   in dput.
 * - Waiting for a taken lock is bounded as well, and in a nested section ends with a restart of the whole
 *   transaction: the deadlock of section 5 (flat nesting keeps words of a section that was left) cannot last.
 * - It runs on RTM too, which cannot test a word without reading it into its set, and arbitrates nothing: a
 *   transaction that finds its lock taken fails, and waits outside; who takes the lock wins over every transaction
 *   that has read it.
 * - Interrupts are as the caller has them. Where a handler takes the lock, sections keep interrupts off, as with any
 *   spinlock.
 *
 * The states of a lock, seen from one processor (table 3); the word is that of the queued lock, 0 where nobody holds
 * it and nobody waits:
 *
 *   free, word 0          --cx_optimistic-->  transactional: word 0, in the read set
 *   free, word 0          --cx_exclusive--->  exclusive: word not 0; every transaction that had read the word fails
 *   transactional         --cx_end--------->  free: commits
 *   transactional         --cx_exclusive,
 *                           input, output-->  fails with TM_HTM_IO, then exclusive
 *   exclusive             --cx_end--------->  free, or the next in the queue has it
 *   exclusive             --cx_optimistic-->  waits, the word not in the read set
 *
 * Why this excludes: a transaction that commits had the word 0 in its read set all the while, so nobody held the lock
 * between its first access to what the lock guards and its commit, at which all of it takes effect. A holder sees
 * what such transactions committed, because it reads nothing before its acquisition, which ends those that are open,
 * has taken effect (tm_htm_order). A transaction sees what the last holder wrote, because it reads 0, that holder's
 * release, before anything else.
 *
 * Why every section ends: a section fails no more often than its budget says and then waits in a fair queue, in which
 * nobody waits for a transaction. An inner section of a transaction waits a bounded time, then the outermost section
 * fails; after its budget it is exclusive, and what was its inner section is outermost. So locks want an order in
 * which they nest, as any spinlocks do, and nothing else.
 *
 * Without hardware transactions (tm_htm_kind) every section is exclusive.
 */
#ifndef TM_LOCK_CX_H
#define TM_LOCK_CX_H

#include <tm/htm.h>
#include <tm/lock/queued.h>

struct tm_cx_lock {
    struct tm_queued_lock queued;
};

#define TM_CX_LOCK_INITIALIZER {TM_QUEUED_LOCK_INITIALIZER}

/* The rest of cx_optimistic: the transaction has failed with `status`, or is open and has found the lock taken. */
void tm_cx_lock_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries);

/* The rest of cx_try, of a transaction that has failed. */
bool tm_cx_lock_try_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries);

/*
 * Enters a section that may be a transaction. Acquire, whichever it becomes. Not recursive. The caller cannot tell,
 * may be sent back to here any number of times while it is one (local variables as well), and is let through alone at
 * last. On Xmetatm output sends it back; on RTM every system call does.
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
 * Enters a section that holds the lock, and is alone in it. Acquire. For sections that are known to print or the
 * like; others of the same lock may be optimistic. Inside a transaction, that is sent back to its begin, which takes
 * its own lock instead.
 */
TM_INLINE void cx_exclusive(struct tm_cx_lock *lock)
{
    if (tm_htm_active())
        tm_htm_abort(TM_HTM_IO);
    tm_cx_lock_acquire(lock);
}

/*
 * As cx_optimistic, but where the lock is taken, or too many wait for it to be left: false, and the section is not
 * entered. Does not wait.
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

/* Leaves the section, however it was entered. Release. */
TM_INLINE void cx_end(struct tm_cx_lock *lock)
{
    if (__atomic_load_n(&lock->queued.word.value, __ATOMIC_RELAXED)) {
        tm_queued_lock_release(&lock->queued);
        return;
    }
#if TM_CHECKING
    if (!tm_htm_active())
        tm_lock_report("cx", lock, 0);
#endif
    tm_htm_section_commit();
}

#endif

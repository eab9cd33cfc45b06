/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactional spinlocks that are in no transaction's read set: a section is a hardware transaction under the read
 * side of a fair reader/writer lock, or runs without a transaction under its write side.
 *
 * After Long, "Unfair Queued Spinlocks and Transactional Locks", 2015, "Kernel Transactional Spinlocks". The advantage:
 * a section that has to run alone waits for the running transactions and makes none of them fail, while a lock in the
 * read set ends them all. Departures:
 * - Sections nest, which the original lacks; see below.
 * - Budgets bound tries by the cause of failure (tm_htm_budgets); tx_spin_lock_retry lowers them all.
 * - Without hardware transactions every section takes the write side.
 *
 * The read side is taken before the transaction begins and released after it has ended, so it is in no set, and has a
 * cache line of its own.
 *
 *   outside  --tx_spin_lock------>  reads, open transaction
 *   outside  --tx_spin_lock_non-->  writes, `alone` is 1
 *   open     --tx_spin_unlock---->  commits, then reads no more: outside
 *   open     --fails------------->  open again, while its budget lasts; after that reads no more, and then writes
 *   writes   --tx_spin_unlock---->  `alone` is 0, then writes no more: outside
 *
 * Nesting. An inner section, of another lock, in an open transaction takes nothing. If it took the read side inside the
 * transaction, the lock would be in its write set, and each of the lock's readers would make the others fail. Nor could
 * it wait there for writers while it holds an outer read side. The inner section needs that no processor is in the
 * section under the write side, from its begin to the commit. `alone` provides this: a writer sets it after it has
 * taken the write side and clears it before it releases that. The inner section has `alone` equal to 0 in the
 * transaction's read set.
 *
 *   open     --tx_spin_lock, `alone` 0-->  open, one level deeper, `alone` in the read set
 *   open     --tx_spin_lock, `alone` 1-->  waits a bounded time inside (Xmetatm), then fails with TM_HTM_TAKEN
 *   open     --tx_spin_lock_non--------->  fails with TM_HTM_IO: the outermost section then writes
 *   writes   --tx_spin_lock------------->  as outside
 *
 * Safety: a writer's store of 1 makes every transaction fail that is in an inner section of its lock, before the writer
 * reads guarded data (tm_htm_order); and a transaction that reads 0 sees the stores of the last writer. Only nested
 * readers pay for a writer; other transactions of the lock never read `alone`.
 *
 * Freedom from deadlock, if locks nest in one order: a processor that waits without bound holds no open transaction. It
 * waits in a fair lock's queue, for holders of that lock. A reader among the holders is in a transaction, in which
 * every wait is bounded, and which is tried a bounded number of times before the read side is released; a writer among
 * them waits only for later locks. No processor can wait for an inner section, which holds nothing. No section starves,
 * for the same reason: the reader/writer lock is fair, and a section that has failed often enough writes.
 *
 * Sections end in the reverse order in which they began: the section that commits is the one whose read side is
 * released. A lock that interrupt handlers take is taken with interrupts off, also for reading: a writer waits between
 * both.
 */
#ifndef TM_LOCK_TX_H
#define TM_LOCK_TX_H

#include <tm/htm.h>
#include <tm/lock/queued_rw.h>

TM_DECLARATIONS_BEGIN

struct tm_tx_lock {
    struct tm_queued_rw_lock rw TM_ALIGNED_TO_LINE;
    /* 1 while a processor writes. It is in the read sets of inner sections, so it has another line than the lock. */
    uint32_t alone TM_ALIGNED_TO_LINE;
};

#define TM_TX_LOCK_INITIALIZER {TM_QUEUED_RW_LOCK_INITIALIZER, 0}

/* The rest of tx_spin_lock_retry for a transaction that has failed under the read side. */
void tm_tx_lock_slow(struct tm_tx_lock *lock, unsigned long status, struct tm_htm_tries tries, unsigned retry);

/*
 * Enters a section alone: under the write side. Acquire. For sections that are known to do what a transaction cannot
 * do. An open transaction fails here, and its outermost section is then entered alone.
 */
TM_INLINE void tx_spin_lock_non(struct tm_tx_lock *lock)
{
    if (tm_htm_active())
        tm_htm_abort(TM_HTM_IO);
    tm_queued_rw_lock_write_acquire(&lock->rw);
    if (tm_htm_kind() != TM_HTM_NONE) {
        /* 0 -> 1: open transactions in inner sections fail. */
        __atomic_exchange_n(&lock->alone, 1, __ATOMIC_ACQ_REL);
        tm_htm_order();
    }
}

/*
 * Enters a section as a transaction, and after at most `retry` failures alone. Acquire in both cases. Not recursive.
 * The caller may be sent back to here while it is a transaction.
 */
TM_INLINE void tx_spin_lock_retry(struct tm_tx_lock *lock, unsigned retry)
{
    struct tm_htm_tries tries;
    unsigned long status;

    if (tm_htm_kind() == TM_HTM_NONE) {
        tx_spin_lock_non(lock);
    } else if (tm_htm_active()) {
        /* One level deeper, where tm_htm_wait does not return false. */
        tm_htm_begin();
        if (!tm_htm_test(&lock->alone, 0))
            tm_htm_wait(&lock->alone, 0);
    } else {
        tm_queued_rw_lock_read_acquire(&lock->rw);
        tries = tm_htm_tries();
        status = tm_htm_section_begin();
        if (TM_UNLIKELY(status != TM_HTM_STARTED))
            tm_tx_lock_slow(lock, status, tries, retry);
    }
}

/* Enters a section as a transaction, and alone after the number of failures that tm_htm_budgets allows. Acquire. */
TM_INLINE void tx_spin_lock(struct tm_tx_lock *lock)
{
    tx_spin_lock_retry(lock, UINT32_MAX);
}

/* Leaves the section that was entered last, in either form. Release. */
TM_INLINE void tx_spin_unlock(struct tm_tx_lock *lock)
{
    if (tm_htm_active()) {
        tm_htm_section_commit();
        if (!tm_htm_active())
            tm_queued_rw_lock_read_release(&lock->rw);
    } else {
        /* 1 -> 0, after the section's stores. */
        __atomic_store_n(&lock->alone, 0, __ATOMIC_RELEASE);
        tm_queued_rw_lock_write_release(&lock->rw);
    }
}

TM_DECLARATIONS_END

#endif

/*
 * Cooperative transactional spinlocks ("TxLinux", SOSP 2007, section 4 and figure 2). Any number of harts enter a
 * section as transactions, or one hart alone enters it with the lock.
 *
 *     cx_optimistic(&lock);    tries a transaction, and takes the lock if the transaction cannot go on
 *     cx_exclusive(&lock);     takes the lock, for a section that will do I/O
 *     cx_end(&lock);           ends the section, whichever way it began
 *
 * Why this is safe: a transaction has the free lock in its read set. A hart that takes the lock writes it, so the
 * transaction loses, goes back to its xbegin, and waits there until the lock is free.
 *
 * Sections nest. The original also disables interrupts in a section; these programs never enable them.
 */
#pragma once

#include "bare.h"
#include "../include/xmetatm.h"

/* A lock is a byte, as in early spinlocks of Linux. Its initial value must be CX_FREE. */
typedef u8 cx_lock;
#define CX_TAKEN 0
#define CX_FREE 1

/* Inside a section: returns whether the section holds the lock, that is, runs in no transaction. */
static inline int cx_is_exclusive(void)
{
    return xgettxid() == 0;
}

static inline void cx_exclusive(cx_lock *lock)
{
    /*
     * The machine would do the same to a transaction that prints: back to the outermost xbegin, which then takes its
     * lock.
     */
    if (xgettxid() != 0)
        xrestart(XMETATM_CAUSE_NEED_EXCLUSIVE);
    do {
        while (__atomic_load_n(lock, __ATOMIC_RELAXED) != CX_FREE)
            ;
        /*
         * An ordinary store would win over every transaction in the section. xcas asks the contention manager first,
         * which refuses (XCAS_REFUSED) if it prefers a transaction.
         */
    } while (xcas_b(lock, CX_FREE, CX_TAKEN) != XCAS_SWAPPED);
}

/* Returns whether the unchanged transaction may succeed at another try. */
static inline int cx_may_retry(u64 status)
{
    switch (xmetatm_cause(status)) {
    case XMETATM_CAUSE_NONE:
    case XMETATM_CAUSE_CONFLICT:
    case XMETATM_CAUSE_NONTRANSACTIONAL:
    case XMETATM_CAUSE_EXPLICIT:
        return 1;
    default:
        /* It did I/O, or it was too large or too long for best-effort mode. Another try would end in the same way. */
        return 0;
    }
}

static inline void cx_optimistic(cx_lock *lock)
{
    /* A transaction that restarts returns here again, with the cause in status. */
    u64 status = xbegin();
    if (!cx_may_retry(status)) {
        /*
         * Only the outermost xbegin returns such a status, so this xend ends the transaction, which has done nothing
         * yet.
         */
        xend();
        cx_exclusive(lock);
        return;
    }
    /*
     * A load would add the taken lock to the read set, so that its release restarts us. xtest adds it only when it is
     * free.
     */
    while (!xtest_b(lock, CX_FREE))
        ;
}

static inline void cx_end(cx_lock *lock)
{
    if (xgettxid() != 0)
        xend();
    else
        __atomic_store_n(lock, CX_FREE, __ATOMIC_RELEASE);
}

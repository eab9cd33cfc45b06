/*
 * Cooperative transactional spinlocks ("TxLinux", SOSP 2007, section 4 and figure 2): one section, entered as a transaction by as many
 * harts as like to, or with the lock held by one hart alone.
 *
 *     cx_optimistic(&lock);    tries a transaction, and takes the lock where the transaction cannot go on
 *     cx_exclusive(&lock);     takes the lock, for a section that is known to print or the like
 *     cx_end(&lock);           leaves the section, however it was entered
 *
 * Why this is safe: a transaction has the free lock in its read set. Whoever takes the lock writes it, and the transaction loses,
 * goes back to its xbegin, and waits there until the lock is free.
 *
 * Sections nest. The original also keeps interrupts off in a section; these programs have none on to begin with.
 */
#pragma once

#include "bare.h"
#include "../include/xmetatm.h"

/* A lock is a byte, as Linux's own spinlocks were. It has to begin as CX_FREE. */
typedef u8 cx_lock;
#define CX_TAKEN 0
#define CX_FREE 1

/* Inside a section: whether it was entered with the lock, and is no transaction. */
static inline int cx_is_exclusive(void)
{
    return xgettxid() == 0;
}

static inline void cx_exclusive(cx_lock *lock)
{
    /* The machine's own answer to a transaction that prints, given early: back to the outermost xbegin, which takes its lock. */
    if (xgettxid() != 0)
        xrestart(XMETATM_CAUSE_NEED_EXCLUSIVE);
    do {
        while (__atomic_load_n(lock, __ATOMIC_RELAXED) != CX_FREE)
            ;
        /*
         * An ordinary store would win over every transaction in the section. xcas asks the contention manager first, and is refused
         * (XCAS_REFUSED) where it is a transaction's turn.
         */
    } while (xcas_b(lock, CX_FREE, CX_TAKEN) != XCAS_SWAPPED);
}

/* Whether trying the transaction again, as it is, may help. */
static inline int cx_may_retry(u64 status)
{
    switch (xmetatm_cause(status)) {
    case XMETATM_CAUSE_NONE:
    case XMETATM_CAUSE_CONFLICT:
    case XMETATM_CAUSE_NONTRANSACTIONAL:
    case XMETATM_CAUSE_EXPLICIT:
        return 1;
    default:
        /* It printed; or it was too large or too long for a machine in best-effort mode, which it will be again. */
        return 0;
    }
}

static inline void cx_optimistic(cx_lock *lock)
{
    /* A transaction that restarts comes back to here, and this time status says why. */
    u64 status = xbegin();
    if (!cx_may_retry(status)) {
        /* Only the outermost xbegin returns such a status, so this leaves the transaction, which has done nothing yet. */
        xend();
        cx_exclusive(lock);
        return;
    }
    /* A load would have the taken lock in the read set, and letting it go would restart us. xtest adds it only when it is free. */
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

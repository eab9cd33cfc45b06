/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Hardware transactions, whichever the processor has: Xmetatm on riscv64 (docs/xmetatm.md), RTM on x86-64 (Intel's
 * Architectures Software Developer's Manual, volume 1, chapter 16), or none. Their common interface is used like this:
 *
 *     struct tm_htm_tries tries = tm_htm_tries();
 *     for (unsigned long status = tm_htm_begin(); status != TM_HTM_STARTED; status = tm_htm_again())
 *         if (!tm_htm_may_retry(status, &tries, UINT32_MAX)) {
 *             tm_htm_abandon();
 *             ... the same with a lock ...
 *         }
 *     ... in the transaction ...
 *     tm_htm_commit();
 *
 * A transaction that loses goes back to where it began, which gives its status. It has *failed* then: RTM has ended
 * it; Xmetatm has started it once more, and its contention manager remembers the past attempts. A failed transaction
 * either goes on (`tm_htm_again`) or ends (`tm_htm_abandon`). Until then the program may access memory for it only
 * through `tm_htm_test` and `tm_htm_count`.
 *
 * Transactions nest flatly: inner begins and commits only count levels, and a failure is always that of the outermost
 * transaction. No other processor sees the stores of an open transaction. Neither processor promises that a transaction
 * ever commits, so every use needs a lock to fall back to.
 *
 * Functions that begin a transaction may return inside it. A failure restores the registers and the memory that the
 * transaction wrote. On Xmetatm a trap handler may not store to the interrupted stack (docs/xmetatm.md, section 17.1).
 * On RTM any trap, system call and `pause` ends the transaction.
 */
#ifndef TM_HTM_H
#define TM_HTM_H

#include <tm/statistics.h>

TM_DECLARATIONS_BEGIN

enum tm_htm_kind {
    TM_HTM_UNKNOWN,
    TM_HTM_NONE,
    TM_HTM_RTM,
    TM_HTM_XMETATM,
};

/* Why a transaction failed. */
enum tm_htm_cause {
    /* Another transaction won the conflict (on RTM, perhaps another access: RTM cannot tell). */
    TM_HTM_CONFLICT,
    /* An access outside transactions won the conflict. */
    TM_HTM_NONTRANSACTIONAL,
    /* It asked for the failure: tm_htm_abort. */
    TM_HTM_EXPLICIT,
    /* It found a lock taken, and asked for the failure. */
    TM_HTM_TAKEN,
    /* It needs exclusion: it was about to do something that cannot be undone (Xmetatm), or asked for the failure. */
    TM_HTM_IO,
    TM_HTM_CAPACITY,
    TM_HTM_INTERRUPT,
    /* More levels than the processor counts: 255 on Xmetatm, 7 on Intel's processors, where it shows as OTHER. */
    TM_HTM_NESTING,
    /* RTM does not say: traps, system calls, `pause`, ... */
    TM_HTM_OTHER,
    TM_HTM_CAUSES,
};

/* The answer of tm_htm_begin and tm_htm_again when the transaction is open and has done nothing yet. */
#define TM_HTM_STARTED 0UL

/* The number of tests of a taken lock, in a transaction that has done nothing yet, and in one that has. */
extern unsigned tm_htm_wait_turns;
extern unsigned tm_htm_nested_wait_turns;

/* The number of refusals after which a processor takes the lock without asking (tm_htm_acquire). */
extern unsigned tm_htm_refusals_max;

/* Answers of tm_htm_acquire. */
enum tm_htm_answer {
    TM_HTM_SWAPPED,
    TM_HTM_DIFFERED,
    TM_HTM_REFUSED,
};

/*
 * The number of failures after which a section takes its lock, by the cause of the last failure. Programs may change
 * these data before they start their threads. A conflict may end well the next time; a section that needs exclusion,
 * room or another level will need it again.
 */
extern unsigned tm_htm_budgets[TM_HTM_CAUSES];

/*
 * The kind, once it has been found; tm_htm_kind returns it. Every transaction reads it, so it has its own cache line.
 */
extern struct tm_htm_found {
    enum tm_htm_kind kind;
} TM_ALIGNED_TO_LINE tm_htm_found;

TM_STATIC_ASSERT(TM_STATISTIC_ABORTS_OTHER - TM_STATISTIC_ABORTS_CONFLICT == TM_HTM_OTHER, "a counter for each cause");

/*
 * Finds the kind: RTM where CPUID names it and one of several transactions commits, Xmetatm where the port says that
 * the device tree names it. Called by tm_htm_kind, at its first use; several threads may find the same at once.
 */
enum tm_htm_kind tm_htm_find(void);

/* Turns transactions off from here on, for comparisons. Before the first use of a lock. */
void tm_htm_disable(void);

/* Names for reports: "none", "rtm", "xmetatm"; and the name of a cause. */
const char *tm_htm_kind_name(enum tm_htm_kind kind);
const char *tm_htm_cause_name(enum tm_htm_cause cause);

/* The kind of this processor's hardware transactions. Never TM_HTM_UNKNOWN, and always the same. */
TM_INLINE enum tm_htm_kind tm_htm_kind(void);

#if defined(TM_HTM_OFF) || !(defined(__x86_64__) || (defined(__riscv) && __riscv_xlen == 64))
#include <tm/htm/none.h>
#elif defined(__x86_64__)
#include <tm/htm/rtm.h>
#else
#include <tm/htm/xmetatm.h>
#endif

/*
 * Every kind has these. Where the kind is TM_HTM_NONE only tm_htm_active, tm_htm_test, tm_htm_acquire and
 * tm_htm_order may be called.
 *
 * unsigned long tm_htm_begin(void)
 *     Begins a transaction, or another level of the one that is open: TM_HTM_STARTED. Returns again when the
 *     outermost fails, with another status. The outermost is ordered as by a full fence.
 * enum tm_htm_cause tm_htm_cause(unsigned long status)
 *     The cause in a status other than TM_HTM_STARTED.
 * unsigned long tm_htm_again(void)
 *     Continues a failed transaction; like tm_htm_begin.
 * void tm_htm_abandon(void)
 *     Ends a failed transaction without a commit.
 * void tm_htm_commit(void)
 *     Ends a level; at the outermost all stores take effect at once, ordered as by a full fence.
 * void tm_htm_abort(enum tm_htm_cause cause)
 *     In a transaction: makes it fail with TM_HTM_EXPLICIT, TM_HTM_TAKEN or TM_HTM_IO. Does not return.
 * bool tm_htm_active(void)
 *     Whether a transaction is open. (A failed one of RTM does not count: it has ended.)
 * bool tm_htm_test(const uint32_t *word, uint32_t value)
 *     Whether the word has the value. If so, in a transaction, the word joins the read set: a processor that changes it
 *     makes the transaction fail. Acquire.
 * bool tm_htm_wait(const uint32_t *word, uint32_t value)
 *     In a transaction, after tm_htm_test has returned false: returns true once the word has the value and is in the
 *     read set. Xmetatm tests tm_htm_wait_turns times, and then returns false; in a nested transaction it tests
 *     tm_htm_nested_wait_turns times and then fails with TM_HTM_TAKEN. RTM fails with TM_HTM_TAKEN at once, because the
 *     word is in its read set already.
 * void tm_htm_count(uint64_t *counter)
 *     For a failed transaction: adds one to a counter of this processor, permanently, and in no transaction's sets.
 * struct tm_htm_tries tm_htm_tries(void), unsigned tm_htm_tries_failed(struct tm_htm_tries *tries)
 *     Count failures of one outermost transaction in a way that survives them. tm_htm_tries comes before tm_htm_begin,
 *     tm_htm_tries_failed after each failure.
 * enum tm_htm_answer tm_htm_acquire(uint32_t *word, uint32_t value)
 *     Outside transactions: 0 -> value, acquire. A contention manager may refuse, in favour of the transactions that
 *     have read the word.
 * void tm_htm_order(void)
 *     Orders a lock's acquisition, which made transactions fail, before the first access to their data.
 */

/* Counts. The count survives a later failure of the transaction. */
TM_INLINE void tm_htm_statistics_add(enum tm_statistic statistic)
{
#if TM_STATISTICS
    tm_htm_count(&tm_statistics[tm_port_processor()].counts[statistic]);
#else
    (void)statistic;
#endif
}

/*
 * After a failure: whether the transaction's budget allows another try, and `limit` failures in all. Adds the failure
 * to `tries`.
 */
TM_INLINE bool tm_htm_may_retry(unsigned long status, struct tm_htm_tries *tries, unsigned limit)
{
    enum tm_htm_cause cause = tm_htm_cause(status);
    unsigned budget = tm_htm_budgets[cause] < limit ? tm_htm_budgets[cause] : limit;
    bool retry = tm_htm_tries_failed(tries) <= budget;

    tm_htm_statistics_add((enum tm_statistic)(TM_STATISTIC_ABORTS_CONFLICT + cause));
    if (retry)
        tm_htm_statistics_add(TM_STATISTIC_HTM_ATTEMPTS);
    return retry;
}

/* tm_htm_begin and tm_htm_commit for locks: the outermost are counted. */
#if TM_STATISTICS
#define tm_htm_section_begin() \
    (tm_htm_active() ? (void)0 : tm_statistics_add(TM_STATISTIC_HTM_ATTEMPTS), tm_htm_begin())
#define tm_htm_section_commit() \
    (tm_htm_commit(), tm_htm_active() ? (void)0 : tm_statistics_add(TM_STATISTIC_HTM_COMMITS))
#else
#define tm_htm_section_begin() tm_htm_begin()
#define tm_htm_section_commit() tm_htm_commit()
#endif

TM_DECLARATIONS_END

#endif

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

enum tm_htm_kind {
    TM_HTM_UNKNOWN,
    TM_HTM_NONE,
    TM_HTM_RTM,
    TM_HTM_XMETATM,
};

/* Why a transaction failed. */
enum tm_htm_cause {
    /* Another transaction had the better of it (RTM: or any other access did, it cannot tell). */
    TM_HTM_CONFLICT,
    /* An access outside transactions had. */
    TM_HTM_NONTRANSACTIONAL,
    /* It asked: tm_htm_abort. */
    TM_HTM_EXPLICIT,
    /* It found a lock taken, and asked. */
    TM_HTM_TAKEN,
    /* It needs exclusion: it was about to do what cannot be undone (Xmetatm), or asked. */
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

/* How often one waits for a lock that is taken, in a transaction that has done nothing yet, and in one that has. */
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
 * How often one section fails before it takes its lock, by the cause of the last failure: data, for programs to
 * change before they start their threads. A conflict may end well the next time; what needs exclusion, room or
 * another level will need it again.
 */
extern unsigned tm_htm_budgets[TM_HTM_CAUSES];

/* The kind, where it has been found out; tm_htm_kind gives it. Every transaction reads it, so nobody shares its line. */
extern struct tm_htm_found {
    enum tm_htm_kind kind;
} TM_ALIGNED_TO_LINE tm_htm_found;

TM_STATIC_ASSERT(TM_STATISTIC_ABORTS_OTHER - TM_STATISTIC_ABORTS_CONFLICT == TM_HTM_OTHER, "a counter for each cause");

/*
 * Finds the kind: RTM where CPUID names it and one of several transactions commits, Xmetatm where the port says that
 * the device tree names it. Called by tm_htm_kind, at its first use; several threads may find the same at once.
 */
enum tm_htm_kind tm_htm_find(void);

/* From here on there are no transactions: for comparisons. Before the first use of a lock. */
void tm_htm_disable(void);

/* "none", "rtm", "xmetatm"; and a cause's name, as reports print it. */
const char *tm_htm_kind_name(enum tm_htm_kind kind);
const char *tm_htm_cause_name(enum tm_htm_cause cause);

/* The hardware transactions of this processor. Never TM_HTM_UNKNOWN, and always the same. */
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
 *     Of a status that is not TM_HTM_STARTED.
 * unsigned long tm_htm_again(void)
 *     Goes on with a failed transaction; as tm_htm_begin.
 * void tm_htm_abandon(void)
 *     Leaves a failed transaction.
 * void tm_htm_commit(void)
 *     Leaves a level; at the outermost everything takes effect at once, ordered as by a full fence.
 * void tm_htm_abort(enum tm_htm_cause cause)
 *     In a transaction: makes it fail with TM_HTM_EXPLICIT, TM_HTM_TAKEN or TM_HTM_IO. Does not return.
 * bool tm_htm_active(void)
 *     In a transaction. (A failed one of RTM does not count: it has ended.)
 * bool tm_htm_test(const uint32_t *word, uint32_t value)
 *     The word has the value. If so, in a transaction, it joins the read set: who changes it makes the transaction
 *     fail. Acquire.
 * bool tm_htm_wait(const uint32_t *word, uint32_t value)
 *     In a transaction, after tm_htm_test said no: true when the word has come to have the value, and is in the read
 *     set. Xmetatm: tests tm_htm_wait_turns times, and after that says no; a nested one tests
 *     tm_htm_nested_wait_turns times and then fails with TM_HTM_TAKEN. RTM: fails with TM_HTM_TAKEN at once, because
 *     the word is in its read set already.
 * void tm_htm_count(uint64_t *counter)
 *     For a failed transaction: adds one to a counter of this processor, for good, and in no transaction's sets.
 * struct tm_htm_tries tm_htm_tries(void), unsigned tm_htm_tries_failed(struct tm_htm_tries *tries)
 *     Count failures of one outermost transaction in a way that survives them: made before tm_htm_begin, told of each
 *     failure.
 * enum tm_htm_answer tm_htm_acquire(uint32_t *word, uint32_t value)
 *     Outside transactions: 0 -> value, acquire. A contention manager may refuse, in favour of the transactions that
 *     have read the word.
 * void tm_htm_order(void)
 *     Stands between a lock's acquisition, which made transactions fail, and the first access to what they wrote.
 */

/* Counts, and what is counted stays where the transaction fails again. */
TM_INLINE void tm_htm_statistics_add(enum tm_statistic statistic)
{
#if TM_STATISTICS
    tm_htm_count(&tm_statistics[tm_port_processor()].counts[statistic]);
#else
    (void)statistic;
#endif
}

/*
 * A transaction has failed: true when it is worth another try by its budget, and by `limit` failures in all. Adds the
 * failure to `tries`.
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

#endif

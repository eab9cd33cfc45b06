/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counters of locks and hardware transactions. They need -DTM_STATISTICS=1 for the library and its callers. Otherwise
 * counting compiles to nothing, and reading gives zeros.
 *
 * Each processor has its own counters, so counting shares no line. If an interrupt handler counts during a count, one
 * of the two may be lost.
 */
#ifndef TM_STATISTICS_H
#define TM_STATISTICS_H

#include <tm/port.h>

TM_DECLARATIONS_BEGIN

#ifndef TM_STATISTICS
#define TM_STATISTICS 0
#endif

/*
 * The registry: X(NAME, name, description). The twelve steals by position are those of Long, "Unfair Queued Spinlocks
 * and Transactional Locks", 2015; the last also counts steals from further back. The aborts are in the order of enum
 * tm_htm_cause.
 */
#define TM_STATISTICS_REGISTRY(X) \
    X(ACQUISITIONS, acquisitions, "locks taken, by any way") \
    X(TRY_STEALS, try_steals, "locks taken past a queue by who had just come") \
    X(STEALS_0, steals_0, "unfair: locks taken by the head of the queue") \
    X(STEALS_1, steals_1, "unfair: locks taken by the one behind the head") \
    X(STEALS_2, steals_2, "unfair: locks taken from position 2") \
    X(STEALS_3, steals_3, "unfair: locks taken from position 3") \
    X(STEALS_4, steals_4, "unfair: locks taken from position 4") \
    X(STEALS_5, steals_5, "unfair: locks taken from position 5") \
    X(STEALS_6, steals_6, "unfair: locks taken from position 6") \
    X(STEALS_7, steals_7, "unfair: locks taken from position 7") \
    X(STEALS_8, steals_8, "unfair: locks taken from position 8") \
    X(STEALS_9, steals_9, "unfair: locks taken from position 9") \
    X(STEALS_10, steals_10, "unfair: locks taken from position 10") \
    X(STEALS_11, steals_11, "unfair: locks taken from position 11 and further back") \
    X(QUEUED, queued, "waits in a queue") \
    X(UNQUEUED, unqueued, "waits without a queue, because all nodes of the processor were in use") \
    X(HALTS, halts, "paravirtualized: sleeps") \
    X(KICKS, kicks, "paravirtualized: releases that woke the head of the queue") \
    X(HTM_ATTEMPTS, htm_attempts, "hardware transactions begun") \
    X(HTM_COMMITS, htm_commits, "hardware transactions committed") \
    X(ABORTS_CONFLICT, aborts_conflict, "hardware transactions aborted by another transaction") \
    X(ABORTS_NONTRANSACTIONAL, aborts_nontransactional, "hardware transactions aborted by a plain access") \
    X(ABORTS_EXPLICIT, aborts_explicit, "hardware transactions that aborted themselves") \
    X(ABORTS_TAKEN, aborts_taken, "hardware transactions that found a lock taken") \
    X(ABORTS_IO, aborts_io, "hardware transactions aborted by input or output") \
    X(ABORTS_CAPACITY, aborts_capacity, "hardware transactions that were too large") \
    X(ABORTS_INTERRUPT, aborts_interrupt, "hardware transactions aborted by an interrupt or a trap") \
    X(ABORTS_NESTING, aborts_nesting, "hardware transactions that were nested too deep") \
    X(ABORTS_OTHER, aborts_other, "hardware transactions aborted for no known cause")

enum tm_statistic {
#define X(NAME, name, description) TM_STATISTIC_##NAME,
    TM_STATISTICS_REGISTRY(X)
#undef X
    TM_STATISTICS_COUNT
};

#define TM_STATISTICS_POSITIONS 12u

/* Adds up the counters of all processors. The sums belong to one moment only if no processor counts meanwhile. */
void tm_statistics_read(uint64_t counts[TM_STATISTICS_COUNT]);

/* Sets all counters to 0. Counts made meanwhile may be kept or lost. */
void tm_statistics_reset(void);

/* The counter's name, as in the registry; NULL if there is no such counter. */
const char *tm_statistics_name(enum tm_statistic statistic);

/* The description of a counter; NULL if there is no such counter. */
const char *tm_statistics_description(enum tm_statistic statistic);

#if TM_STATISTICS
extern struct tm_statistics {
    uint64_t counts[TM_STATISTICS_COUNT];
} TM_ALIGNED_TO_LINE tm_statistics[TM_PROCESSORS_MAX];

/*
 * Only the processor itself writes, so the addition need not be atomic. The accesses are atomic for readers of the
 * sums.
 */
TM_INLINE void tm_statistics_add(enum tm_statistic statistic)
{
    uint64_t *count = &tm_statistics[tm_port_processor()].counts[statistic];

    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}
#else
TM_INLINE void tm_statistics_add(enum tm_statistic statistic)
{
    (void)statistic;
}
#endif

TM_DECLARATIONS_END

#endif

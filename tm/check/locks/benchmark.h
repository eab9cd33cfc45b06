/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The interface between benchmark.c, compiled for each lock, and benchmark_main.c. */
#ifndef TM_CHECK_LOCKS_BENCHMARK_H
#define TM_CHECK_LOCKS_BENCHMARK_H

#include <tm/port.h>

#include "../host.h"

struct benchmark {
    const char *name;
    /* The group of locks that it is compared with, and whether it belongs to another library. */
    const char *kind;
    bool comparator;
    /* With more threads than processors each hand-over takes time slices, because waiters never offer theirs. */
    bool one_thread_a_processor;
    void (*setup)(void);
    /* Takes and releases the lock this number of times, with nothing between, on the calling thread. */
    void (*pairs)(uint64_t count);
    /* The same for reading; NULL if readers do not share. */
    void (*read_pairs)(uint64_t count);
    /* Bodies for host_run: sections for the duration, and a loop that contains only the lock. */
    void (*throughput)(unsigned thread);
    void (*loop)(unsigned thread);
};

/* Parameters of the bodies: the turns of work in a section, and after it. */
struct benchmark_parameters {
    unsigned threads;
    uint64_t duration;
    unsigned section_turns;
    unsigned pause_turns;
    uint64_t loop_iterations;
};

extern struct benchmark_parameters benchmark_parameters;

/* The result of each thread: the number of its sections, and the time they took, waits included. */
extern struct benchmark_thread {
    uint64_t sections TM_ALIGNED_TO_LINE;
    uint64_t time;
} benchmark_threads[HOST_THREADS_MAX];

/*
 * The meeting of the threads of a measurement. Thread 0 takes the lock, and releases it once all others are about to
 * take it, so that none runs alone before the others have begun. Set to 0 before.
 */
extern struct benchmark_meeting {
    /* Threads that are about to take the lock. */
    unsigned arrived TM_ALIGNED_TO_LINE;
    uint64_t begin;
    /* Not 0 when the duration is over. */
    unsigned over TM_ALIGNED_TO_LINE;
} benchmark_meeting;

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What benchmark.c makes of each lock, and what benchmark_main.c tells it. */
#ifndef TM_CHECK_LOCKS_BENCHMARK_H
#define TM_CHECK_LOCKS_BENCHMARK_H

#include <tm/port.h>

#include "../host.h"

struct benchmark {
    const char *name;
    /* With which others it is compared, and whether it is another library's. */
    const char *kind;
    bool comparator;
    /* With more threads than processors each hand-over takes it time slices, because waiters never offer theirs. */
    bool one_thread_a_processor;
    void (*setup)(void);
    /* Takes and releases the lock this often, with nothing between, on the calling thread. */
    void (*pairs)(uint64_t count);
    /* The same for reading; NULL where readers do not share. */
    void (*read_pairs)(uint64_t count);
    /* Bodies for host_run: sections for the duration, and a loop that is empty but for the lock. */
    void (*throughput)(unsigned thread);
    void (*loop)(unsigned thread);
};

/* What the bodies are told: sections work for some turns with the lock, and some after it. */
struct benchmark_parameters {
    unsigned threads;
    uint64_t duration;
    unsigned section_turns;
    unsigned pause_turns;
    uint64_t loop_iterations;
};

extern struct benchmark_parameters benchmark_parameters;

/* What each thread tells: how many sections it has been in, and the time they took, waits included. */
extern struct benchmark_thread {
    uint64_t sections TM_ALIGNED_TO_LINE;
    uint64_t time;
} benchmark_threads[HOST_THREADS_MAX];

/*
 * Where the threads of a measurement meet. Thread 0 takes the lock, and releases it once all others are about to: so
 * that none is alone while the others have not begun. Set to 0 before.
 */
extern struct benchmark_meeting {
    /* Threads that are about to take the lock. */
    unsigned arrived TM_ALIGNED_TO_LINE;
    uint64_t begin;
    /* Not 0 when the duration is over. */
    unsigned over TM_ALIGNED_TO_LINE;
} benchmark_meeting;

#endif

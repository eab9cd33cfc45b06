/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Measures one lock, whose adapter is included first; see adapter.h. */
#include "adapter.h"
#include "benchmark.h"

/* Sections between two looks at the clock, as long as they are short compared with the duration. */
#define CLOCK_SECTIONS 16

static LOCK_TYPE lock TM_ALIGNED_TO_LINE = LOCK_INITIALIZER;
static uint64_t guarded TM_ALIGNED_TO_LINE;

static void work(unsigned turns)
{
    while (turns--)
        __asm__ volatile("" : : : "memory");
}

static void setup(void)
{
    LOCK_SETUP();
}

static void pairs(uint64_t count)
{
    while (count--) {
        LOCK_CONTEXT context;

        (void)context;
        LOCK_ACQUIRE(&lock, &context);
        __asm__ volatile("" : : : "memory");
        LOCK_RELEASE(&lock, &context);
    }
}

#ifdef LOCK_READ_ACQUIRE
static void read_pairs(uint64_t count)
{
    while (count--) {
        LOCK_CONTEXT context;

        (void)context;
        LOCK_READ_ACQUIRE(&lock, &context);
        __asm__ volatile("" : : : "memory");
        LOCK_READ_RELEASE(&lock, &context);
    }
}
#endif

/* Takes part in the meeting, and returns at the first moment of the measurement. */
static uint64_t meet(unsigned thread)
{
    LOCK_CONTEXT context;
    unsigned turns = 0;

    (void)context;
    if (thread == 0) {
        LOCK_ACQUIRE(&lock, &context);
        __atomic_fetch_add(&benchmark_meeting.arrived, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&benchmark_meeting.arrived, __ATOMIC_RELAXED) < benchmark_parameters.threads)
            tm_port_wait(&turns);
        /* For threads that have announced themselves and are not in the queue yet. */
        for (unsigned i = 0; i < benchmark_parameters.threads; i++)
            host_yield();
        benchmark_meeting.begin = host_clock();
        LOCK_RELEASE(&lock, &context);
    } else {
        while (!__atomic_load_n(&benchmark_meeting.arrived, __ATOMIC_RELAXED))
            tm_port_wait(&turns);
        __atomic_fetch_add(&benchmark_meeting.arrived, 1, __ATOMIC_RELAXED);
        LOCK_ACQUIRE(&lock, &context);
        LOCK_RELEASE(&lock, &context);
    }
    return benchmark_meeting.begin;
}

static void throughput(unsigned thread)
{
    uint64_t begin = meet(thread), last = begin, sections = 0;
    unsigned unlooked = 1;

    while (!__atomic_load_n(&benchmark_meeting.over, __ATOMIC_RELAXED)) {
        LOCK_CONTEXT context;

        (void)context;
        LOCK_ACQUIRE(&lock, &context);
        guarded++;
        work(benchmark_parameters.section_turns);
        LOCK_RELEASE(&lock, &context);
        work(benchmark_parameters.pause_turns);
        sections++;
        if (--unlooked == 0) {
            uint64_t now = host_clock();

            if (now - begin >= benchmark_parameters.duration)
                __atomic_store_n(&benchmark_meeting.over, 1, __ATOMIC_RELAXED);
            unlooked = (now - last) * 64 < benchmark_parameters.duration ? CLOCK_SECTIONS : 1;
            last = now;
        }
    }
    benchmark_threads[thread].sections = sections;
    benchmark_threads[thread].time = host_clock() - begin;
}

static void loop(unsigned thread)
{
    uint64_t begin = meet(thread);

    pairs(benchmark_parameters.loop_iterations);
    benchmark_threads[thread].time = host_clock() - begin;
}

const struct benchmark JOINED(benchmark_, LOCK_NAME) = {
    .name = TEXT(LOCK_WORD),
    .kind = TEXT(LOCK_KIND),
    .comparator = LOCK_COMPARATOR,
    .one_thread_a_processor = LOCK_COMPARATOR && LOCK_FAIR,
    .setup = setup,
    .pairs = pairs,
#ifdef LOCK_READ_ACQUIRE
    .read_pairs = read_pairs,
#endif
    .throughput = throughput,
    .loop = loop,
};

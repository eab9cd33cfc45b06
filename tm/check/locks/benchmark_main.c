/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measures locks. Words:
 *
 *     locks=a,b                 of all
 *     tests=uncontended,throughput,loop
 *     runs=N (15)               of each; the locks take turns, so that a disturbance affects all locks alike
 *     threads=1,2,4,8,16,32     of throughput and loop
 *     pairs=N (50000)           of uncontended: on one thread, with nothing between acquisition and release
 *     duration_ms=N (50)        of throughput: an addition in the section
 *     section_turns=N (0)       turns of work in the section
 *     pause_turns=N (0)         turns of work after it
 *     iterations=N (1000000)    of loop: each thread's, with nothing between acquisition and release
 *     htm=off                   no hardware transactions
 *     seed=N (1)                only repeated in the results, to tell runs of a machine apart
 *
 * The loop is that of Long, "Unfair Queued Spinlocks and Transactional Locks", 2015. The slides give "average run times
 * (a 1 million lock-unlock loop) for different number of contending threads" and a standard deviation. Here each thread
 * loops a million times: 37 s for 32 threads are then 1.2 us for an acquisition of the byte lock, and would be 37 us if
 * all threads together looped a million times. Average and deviation are over the threads of all runs; threads of an
 * unfair lock end at different times.
 *
 * LOCKS is X(name) for each lock, from the makefile.
 */
#include "benchmark.h"

#include <tm/htm.h>
#include <tm/statistics.h>

#include "../output.h"
#include "../words.h"

#define LOCKS_MAX 48
#define RUNS_MAX 64
#define COUNTS_MAX 12
/* Of results: nanoseconds and cycles come with three decimals. */
#define THOUSAND 1000

#define X(name) extern const struct benchmark benchmark_##name;
LOCKS
#undef X

static const struct benchmark *const all[] = {
#define X(name) &benchmark_##name,
    LOCKS
#undef X
};

struct benchmark_parameters benchmark_parameters;
struct benchmark_thread benchmark_threads[HOST_THREADS_MAX];
struct benchmark_meeting benchmark_meeting;

static const struct benchmark *locks[LOCKS_MAX];
static unsigned locks_count;
static unsigned runs;

/* The requested numbers of threads that are possible. */
static uint64_t counts[COUNTS_MAX];
static unsigned counts_count;

/* Results of a measurement, for each lock and run, and the counters, if they are compiled in, over all runs. */
static uint64_t results[LOCKS_MAX][RUNS_MAX];
static uint64_t counters[LOCKS_MAX][TM_STATISTICS_COUNT];

static uint64_t median(uint64_t *values, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        for (unsigned j = i; j && values[j - 1] > values[j]; j--) {
            uint64_t value = values[j];

            values[j] = values[j - 1];
            values[j - 1] = value;
        }
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static uint64_t square_root(uint64_t value)
{
    uint64_t root = 0;

    for (uint64_t bit = 1ull << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= value)
            root |= bit;
    return root;
}

/* A member whose name ends with the clock's unit. */
static void add_time(struct output *output, const char *name, uint64_t thousandths)
{
    struct output member = OUTPUT_INITIALIZER;

    output_text(&member, name);
    output_text(&member, "_");
    output_text(&member, host_clock_unit());
    output_member_thousandths(output, member.text, thousandths);
}

static void add_head(struct output *output, const char *test, const struct benchmark *lock, uint64_t threads)
{
    output_member_text(output, "benchmark", "lock");
    output_member_text(output, "lock", lock->name);
    output_member_text(output, "test", test);
    output_member_text(output, "kind", lock->kind);
    output_member_text(output, "htm", tm_htm_kind_name(tm_htm_kind()));
    output_member_number(output, "seed", host_number("seed", 1));
    output_member_number(output, "threads", threads);
    output_member_number(output, "runs", runs);
}

static bool reading;
static uint64_t pairs_count;
static const struct benchmark *measured;

static void uncontended_body(unsigned thread)
{
    uint64_t begin = host_clock();

    (void)thread;
    (reading ? measured->read_pairs : measured->pairs)(pairs_count);
    benchmark_threads[0].time = host_clock() - begin;
}

/* The shortest median among the comparators of a kind; 0 where there is none. */
static uint64_t best_of_kind(const char *kind, const uint64_t *medians)
{
    uint64_t best = 0;

    for (unsigned i = 0; i < locks_count; i++)
        if (locks[i]->comparator && words_equal(locks[i]->kind, kind) && medians[i] && (!best || medians[i] < best))
            best = medians[i];
    return best;
}

static void uncontended(const char *test)
{
    uint64_t medians[LOCKS_MAX];

    for (unsigned run = 0; run < runs; run++)
        for (unsigned i = 0; i < locks_count; i++) {
            measured = locks[i];
            if (reading && !measured->read_pairs)
                continue;
            host_run(1, uncontended_body);
            results[i][run] = benchmark_threads[0].time * THOUSAND / pairs_count;
        }
    for (unsigned i = 0; i < locks_count; i++)
        medians[i] = reading && !locks[i]->read_pairs ? 0 : median(results[i], runs);
    for (unsigned i = 0; i < locks_count; i++) {
        struct output output = OUTPUT_INITIALIZER;
        uint64_t best = best_of_kind(locks[i]->kind, medians);

        if (!medians[i])
            continue;
        add_head(&output, test, locks[i], 1);
        add_time(&output, "latency_median", medians[i]);
        add_time(&output, "latency_min", results[i][0]);
        add_time(&output, "latency_max", results[i][runs - 1]);
        if (best)
            output_member_thousandths(&output, "ratio_to_best_of_kind", medians[i] * THOUSAND / best);
        output_object_end(&output);
    }
}

/* Whether a lock is measured with this number of threads. */
static bool is_measured(const struct benchmark *lock, unsigned threads)
{
    return !lock->one_thread_a_processor || threads <= host_processors();
}

static void counters_clear(void)
{
    for (unsigned i = 0; i < locks_count; i++)
        for (unsigned j = 0; j < TM_STATISTICS_COUNT; j++)
            counters[i][j] = 0;
}

/* The counters that are not 0. */
static void add_counters(struct output *output, unsigned index)
{
    for (unsigned i = 0; i < TM_STATISTICS_COUNT; i++)
        if (counters[index][i])
            output_member_number(output, tm_statistics_name(i), counters[index][i]);
}

/*
 * Runs a body of this lock on this number of threads, and adds to its counters. Returns the time from the meeting to
 * the end of the last thread.
 */
static uint64_t run_together(unsigned index, void (*body)(unsigned thread), unsigned threads)
{
    uint64_t time_max = 0, counts_of_run[TM_STATISTICS_COUNT];

    tm_statistics_reset();
    benchmark_parameters.threads = threads;
    benchmark_meeting.arrived = benchmark_meeting.over = 0;
    host_run(threads, body);
    tm_statistics_read(counts_of_run);
    for (unsigned i = 0; i < TM_STATISTICS_COUNT; i++)
        counters[index][i] += counts_of_run[i];
    for (unsigned i = 0; i < threads; i++)
        if (benchmark_threads[i].time > time_max)
            time_max = benchmark_threads[i].time;
    return time_max;
}

/* The sections of the thread that had fewest in a run and of the one that had most, summed over the runs. */
static struct {
    uint64_t least;
    uint64_t most;
} served[LOCKS_MAX];

static void throughput(unsigned threads)
{
    counters_clear();
    for (unsigned i = 0; i < locks_count; i++)
        served[i].least = served[i].most = 0;
    for (unsigned run = 0; run < runs; run++)
        for (unsigned i = 0; i < locks_count; i++) {
            uint64_t time, sections = 0, least = UINT64_MAX, most = 0;

            if (!is_measured(locks[i], threads))
                continue;
            time = run_together(i, locks[i]->throughput, threads);
            for (unsigned thread = 0; thread < threads; thread++) {
                uint64_t of_thread = benchmark_threads[thread].sections;

                sections += of_thread;
                least = of_thread < least ? of_thread : least;
                most = of_thread > most ? of_thread : most;
            }
            served[i].least += least;
            served[i].most += most;
            results[i][run] = time * THOUSAND / (sections ? sections : 1);
        }
    for (unsigned i = 0; i < locks_count; i++) {
        struct output output = OUTPUT_INITIALIZER;

        if (!is_measured(locks[i], threads))
            continue;
        add_head(&output, "throughput", locks[i], threads);
        add_time(&output, "section_median", median(results[i], runs));
        add_time(&output, "section_min", results[i][0]);
        add_time(&output, "section_max", results[i][runs - 1]);
        output_member_number(&output, "sections_least", served[i].least);
        output_member_number(&output, "sections_most", served[i].most);
        add_counters(&output, i);
        output_object_end(&output);
    }
}

static void loop(unsigned index, unsigned threads)
{
    static uint64_t times[RUNS_MAX * HOST_THREADS_MAX];
    uint64_t elapsed = 0, mean = 0, variance = 0, least = UINT64_MAX, most = 0;
    unsigned count = 0;
    struct output output = OUTPUT_INITIALIZER;

    counters_clear();
    for (unsigned run = 0; run < runs; run++) {
        elapsed += run_together(index, locks[index]->loop, threads) / runs;
        for (unsigned thread = 0; thread < threads; thread++)
            times[count++] = benchmark_threads[thread].time;
    }
    for (unsigned i = 0; i < count; i++) {
        mean += times[i] / count;
        least = times[i] < least ? times[i] : least;
        most = times[i] > most ? times[i] : most;
    }
    for (unsigned i = 0; i < count; i++) {
        /* In thousands, so that the squares of minutes fit. */
        uint64_t difference = (times[i] > mean ? times[i] - mean : mean - times[i]) / THOUSAND;

        variance += difference * difference / count;
    }
    add_head(&output, "loop", locks[index], threads);
    output_member_number(&output, "iterations", benchmark_parameters.loop_iterations);
    add_time(&output, "elapsed", elapsed * THOUSAND);
    add_time(&output, "thread_mean", mean * THOUSAND);
    add_time(&output, "thread_deviation", square_root(variance) * THOUSAND * THOUSAND);
    add_time(&output, "thread_least", least * THOUSAND);
    add_time(&output, "thread_most", most * THOUSAND);
    add_counters(&output, index);
    output_object_end(&output);
}

int check_main(void)
{
    host_watchdog(0);
    if (words_equal(host_text("htm", ""), "off"))
        tm_htm_disable();
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (words_wants("locks", all[i]->name) && locks_count < LOCKS_MAX)
            locks[locks_count++] = all[i];
    runs = (unsigned)host_number("runs", 15);
    if (runs < 1 || runs > RUNS_MAX)
        runs = RUNS_MAX;
    counts_count = words_numbers("threads", "1,2,4,8,16,32", host_threads_max(), counts, COUNTS_MAX);
    pairs_count = host_number("pairs", 50000);
    benchmark_parameters.duration = host_number("duration_ms", 50) * (host_clock_frequency_hz() / 1000);
    benchmark_parameters.section_turns = (unsigned)host_number("section_turns", 0);
    benchmark_parameters.pause_turns = (unsigned)host_number("pause_turns", 0);
    benchmark_parameters.loop_iterations = host_number("iterations", 1000000);
    for (unsigned i = 0; i < locks_count; i++)
        locks[i]->setup();
    if (words_wants("tests", "uncontended")) {
        uncontended("uncontended");
        reading = true;
        uncontended("uncontended-reading");
    }
    for (unsigned i = 0; words_wants("tests", "throughput") && i < counts_count; i++)
        throughput((unsigned)counts[i]);
    for (unsigned i = 0; words_wants("tests", "loop") && i < counts_count; i++)
        for (unsigned j = 0; j < locks_count; j++)
            if (is_measured(locks[j], (unsigned)counts[i]))
                loop(j, (unsigned)counts[i]);
    return 0;
}

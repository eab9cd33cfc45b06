/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measures the workloads of one backend: the time of an operation, over all threads together. The final state of the
 * data has to be consistent.
 *
 *     bench [workloads=A,B] [threads=N] [idle_peer=1] [duration_ms=N | operations=N, of each] [rounds=N] [seed=N]
 *           [name=TEXT] [method=TEXT]
 *
 * A thread that is the only one of its process with transactions runs them more cheaply; with idle_peer there is
 * another thread, which does nothing after its first transaction. `name` and `method` label the result: a line of JSON
 * for each workload, with the median and the minimum of the rounds, and the library's counts over all of them.
 */
#include "workload.h"

#include <tm/tm.h>

#include "../../host.h"
#include "../../output.h"
#include "../../words.h"

/* Missing if another library runs the transactions. */
__attribute__((weak)) void tm_read_counts(struct tm_counts *counts);

static const struct workload *const workloads[] = {&increment,  &read16_write4, &read16, &list,
                                                   &hash_table, &tree,          &bank};
#define WORKLOADS_COUNT (sizeof workloads / sizeof workloads[0])

/* Operations between looks at the clock. */
#define BATCH 256
#define ROUNDS_MAX 101
/* An operation is given in thousandths of the clock's unit. */
#define THOUSAND 1000
/* The unit of rates, in units of the clock. */
#define RATE_UNITS 1000000000ull

/* In the order of enum tm_cause. */
static const char *const causes[] = {
    "restarts_locked",   "restarts_invalid", "restarts_doomed",    "restarts_serial",
    "restarts_explicit", "restarts_full",    "restarts_read_only", "restarts_irrevocable",
};
#define CAUSES_COUNT (sizeof causes / sizeof causes[0])

static struct {
    const struct workload *workload;
    unsigned threads;
    bool has_idle_peer;
    uint64_t duration;
    uint64_t operations; /* 0: the number that the duration has room for. */
    uint64_t seed;
    bool adds_up;
    unsigned peer_is_ready;
    unsigned ended;
} run;

static struct thread {
    uint64_t operations;
    uint64_t begin, end;
    struct tm_counts counts;
} TM_ALIGNED_TO_LINE threads[HOST_THREADS_MAX];

static void idle(void)
{
    /* Its first, and only, transaction. */
    uint64_t random = random_state(run.seed, run.threads);
    read16.operate(&random);
    __atomic_store_n(&run.peer_is_ready, 1, __ATOMIC_RELEASE);
    tm_port_park(&run.ended, 0);
    while (__atomic_load_n(&run.ended, __ATOMIC_ACQUIRE) != run.threads)
        tm_port_park(&run.ended, __atomic_load_n(&run.ended, __ATOMIC_ACQUIRE));
}

static struct tm_counts read_counts(void)
{
    struct tm_counts counts = {0};
    if (tm_read_counts)
        tm_read_counts(&counts);
    return counts;
}

/* to += counts - before */
static void add_counts(struct tm_counts *to, const struct tm_counts *counts, const struct tm_counts *before)
{
    to->commits += counts->commits - before->commits;
    to->cancels += counts->cancels - before->cancels;
    for (unsigned cause = 0; cause < CAUSES_COUNT; cause++)
        to->restarts[cause] += counts->restarts[cause] - before->restarts[cause];
}

static void work(uint64_t *random, struct thread *thread)
{
    void (*operate)(uint64_t *) = run.workload->operate;
    thread->begin = host_clock();
    if (run.operations) {
        for (uint64_t turn = 0; turn < run.operations; turn++)
            operate(random);
        thread->operations = run.operations;
        thread->end = host_clock();
        return;
    }
    do {
        for (unsigned turn = 0; turn < BATCH; turn++)
            operate(random);
        thread->operations += BATCH;
        thread->end = host_clock();
    } while (thread->end - thread->begin < run.duration);
}

static void body(unsigned number)
{
    if (number == run.threads) {
        idle();
        return;
    }
    unsigned turns = 0;
    while (run.has_idle_peer && !__atomic_load_n(&run.peer_is_ready, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
    uint64_t random = random_state(run.seed, number);
    struct tm_counts before = read_counts();
    struct thread thread = {0};
    work(&random, &thread);
    thread.counts = threads[number].counts;
    struct tm_counts after = read_counts();
    add_counts(&thread.counts, &after, &before);
    threads[number] = thread;
    __atomic_fetch_add(&run.ended, 1, __ATOMIC_RELEASE);
    if (run.has_idle_peer)
        tm_port_unpark(&run.ended, 0);
}

static void prepare(unsigned number)
{
    (void)number;
    run.workload->prepare();
}

static void look_at_the_rest(unsigned number)
{
    (void)number;
    uint64_t operations = 0;
    for (unsigned each = 0; each < run.threads; each++)
        operations += threads[each].operations;
    run.adds_up = run.workload->adds_up(operations);
}

/* The time of an operation, in thousandths. The calling thread has no transactions itself: they would add a context. */
static uint64_t measure(void)
{
    run.peer_is_ready = run.ended = 0;
    host_run(1, prepare);
    host_run(run.threads + run.has_idle_peer, body);
    host_run(1, look_at_the_rest);
    /* Each thread's rate over its own time: threads do not end together. */
    uint64_t rate = 0;
    for (unsigned number = 0; number < run.threads; number++)
        rate += threads[number].operations * RATE_UNITS / (threads[number].end - threads[number].begin);
    if (!run.adds_up) {
        host_print(run.workload->name);
        host_print(": what is left does not add up\n");
        host_exit(1);
    }
    return RATE_UNITS * THOUSAND / rate;
}

static void sort(uint64_t *times, unsigned count)
{
    for (unsigned next = 1; next < count; next++) {
        uint64_t moved = times[next];
        unsigned place = next;
        for (; place && times[place - 1] > moved; place--)
            times[place] = times[place - 1];
        times[place] = moved;
    }
}

static void report_counts(struct output *output)
{
    static const struct tm_counts none;
    struct tm_counts sum = none;
    uint64_t restarts = 0;
    for (unsigned number = 0; number < run.threads; number++)
        add_counts(&sum, &threads[number].counts, &none);
    for (unsigned cause = 0; cause < CAUSES_COUNT; cause++)
        restarts += sum.restarts[cause];
    output_member_number(output, "commits", sum.commits);
    output_member_number(output, "cancels", sum.cancels);
    output_member_number(output, "restarts", restarts);
    for (unsigned cause = 0; cause < CAUSES_COUNT; cause++)
        output_member_number(output, causes[cause], sum.restarts[cause]);
}

static void report(uint64_t *times, unsigned rounds)
{
    struct output output = OUTPUT_INITIALIZER;
    bool is_cycles = words_equal(host_clock_unit(), "cycles");
    sort(times, rounds);
    output_member_text(&output, "benchmark", "stm");
    output_member_text(&output, "workload", run.workload->name);
    output_member_text(&output, "backend", BACKEND_NAME);
    output_member_text(&output, "library", host_text("name", ""));
    output_member_text(&output, "method", host_text("method", ""));
    output_member_number(&output, "threads", run.threads);
    output_member_number(&output, "idle_peer", run.has_idle_peer);
    output_member_number(&output, "seed", run.seed);
    output_member_number(&output, "rounds", rounds);
    output_member_thousandths(&output, is_cycles ? "operation_cycles" : "operation_ns", times[rounds / 2]);
    output_member_thousandths(&output, is_cycles ? "operation_least_cycles" : "operation_least_ns", times[0]);
    if (tm_read_counts)
        report_counts(&output);
    output_object_end(&output);
}

int check_main(void)
{
    uint64_t times[ROUNDS_MAX];
    uint64_t rounds = host_number("rounds", 5);
    run.threads = (unsigned)host_number("threads", 1);
    run.has_idle_peer = host_number("idle_peer", 0);
    run.duration = host_number("duration_ms", 50) * host_clock_frequency_hz() / 1000;
    run.operations = host_number("operations", 0);
    run.seed = host_number("seed", 1);
    if (!rounds || rounds > ROUNDS_MAX || !run.threads || run.threads + run.has_idle_peer > host_threads_max()) {
        host_print("rounds has to be 1 to 101, and threads at least 1 and no more than there can be\n");
        return 2;
    }
    for (unsigned number = 0; number < WORKLOADS_COUNT; number++) {
        run.workload = workloads[number];
        if (!words_wants("workloads", run.workload->name))
            continue;
        for (unsigned thread = 0; thread < run.threads; thread++)
            threads[thread].counts = (struct tm_counts){0};
        for (unsigned round = 0; round < rounds; round++)
            times[round] = measure();
        report(times, (unsigned)rounds);
    }
    return 0;
}

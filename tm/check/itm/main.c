/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs the suites: alone, beside a thread that has had its first transaction, and at last contended transactions of all
 * threads.
 *
 *     itm [threads=N] [turns=N, of each thread] [step=N, over alignments of blocks] [seed=N]
 */
#include "check.h"

#include "../host.h"
#include "../output.h"

#define THREADS 4
#define TURNS 100000
/* Longer than any suite takes. */
#define SECONDS_MAX 120

static unsigned checks, failures;

static struct {
    unsigned threads, turns, step;
    uint64_t seed;
    /* The number of the two threads beside each other. */
    unsigned peer_is_ready, suites_have_run;
} run;

void check(bool holds, const char *condition, const char *file, int line)
{
    struct output output = OUTPUT_INITIALIZER;
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (holds)
        return;
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    output_text(&output, file);
    output_text(&output, ":");
    output_number(&output, (uint64_t)line);
    output_text(&output, ": does not hold: ");
    output_text(&output, condition);
    output_end(&output);
}

long *escape(long *address)
{
    return address;
}

void restart_once(unsigned *restarts)
{
    if (_ITM_inTransaction() != IN_RETRYABLE_TRANSACTION || (*restarts)++)
        return;
    _ITM_abortTransaction(USER_RETRY);
}

static void run_suites(void)
{
    check_accesses();
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        check_vectors();
#endif
    check_blocks(run.step);
    check_nesting();
    check_locals();
    check_irrevocable();
    check_clones();
    check_memory();
    check_logs();
    check_calls();
}

static void run_beside_peer(unsigned thread)
{
    static long word;
    unsigned turns = 0;
    if (thread == 0) {
        while (!__atomic_load_n(&run.peer_is_ready, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
        run_suites();
        __atomic_store_n(&run.suites_have_run, 1, __ATOMIC_RELEASE);
        return;
    }
    __transaction_atomic
    {
        word++;
    }
    __atomic_store_n(&run.peer_is_ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&run.suites_have_run, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
}

static void run_torture(unsigned thread)
{
    torture(thread, run.threads, run.turns, run.seed);
}

int check_main(void)
{
    unsigned threads_max = host_threads_max();
    run.threads = (unsigned)host_number("threads", threads_max < THREADS ? threads_max : THREADS);
    run.turns = (unsigned)host_number("turns", TURNS);
    run.step = (unsigned)host_number("step", 1);
    run.seed = host_number("seed", 1);
    host_watchdog(SECONDS_MAX);
    run_suites();
    if (threads_max > 1)
        host_run(2, run_beside_peer);
    prepare_torture();
    host_run(run.threads, run_torture);
    check_torture(run.threads, run.turns);

    struct output output = OUTPUT_INITIALIZER;
    output_member_text(&output, "validate", "itm");
    output_member_text(&output, "library", _ITM_libraryVersion());
    output_member_number(&output, "threads", run.threads);
    output_member_number(&output, "seed", run.seed);
    output_member_number(&output, "checks", checks);
    output_member_number(&output, "failures", failures);
    output_member_text(&output, "result", failures ? "failed" : "passed");
    output_object_end(&output);
    return failures != 0;
}

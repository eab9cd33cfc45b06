/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Runs the tests: threads, timers, and the verdict. */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <tm/port.h>

#include "../linux.h"
#include "test.h"

/*
 * Nanoseconds between two interrupts of a worker's timer, for each worker: all handlers together leave time for the
 * threads.
 */
#define PERIOD_MIN_NS 20000
#define PERIOD_WORKER_MAX_NS 40000

atomic64_t notes[PLACES][NOTES_MAX];
atomic64_t disorders;

static const struct test *running;
static struct worker *workers;
static unsigned workers_count;
static unsigned iterations_count;
static atomic_t ready;
static atomic_t busy;
static DECLARE_COMPLETION(finished);

u64 noted(unsigned index)
{
    u64 sum = 0;
    unsigned place;

    for (place = 0; place < PLACES; place++)
        sum += atomic64_read(&notes[place][index]);
    return sum;
}

bool pair_is_right(const struct pair *pair, const char *name, u64 expected)
{
    if (pair->one == expected && pair->two == expected)
        return true;
    pr_err("%s: %llu and %llu instead of %llu\n", name, pair->one, pair->two, expected);
    return false;
}

static enum hrtimer_restart again(struct worker *worker, struct hrtimer *timer, enum place place)
{
    u32 delay_ns = PERIOD_MIN_NS + random_below(&worker->random[place], workers_count * PERIOD_WORKER_MAX_NS);

    running->work(worker, place);
    hrtimer_forward_now(timer, ns_to_ktime(delay_ns));
    return HRTIMER_RESTART;
}

static enum hrtimer_restart soft_handler(struct hrtimer *timer)
{
    return again(container_of(timer, struct worker, soft), timer, IN_SOFT_INTERRUPT);
}

static enum hrtimer_restart hard_handler(struct hrtimer *timer)
{
    return again(container_of(timer, struct worker, hard), timer, IN_HARD_INTERRUPT);
}

static void own_handler(struct irq_work *own)
{
    running->work(container_of(own, struct worker, own), IN_OWN_INTERRUPT);
}

static void start_timers(struct worker *worker)
{
    hrtimer_init(&worker->soft, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
    worker->soft.function = soft_handler;
    hrtimer_init(&worker->hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
    worker->hard.function = hard_handler;
    hrtimer_start(&worker->soft, ns_to_ktime(PERIOD_MIN_NS), HRTIMER_MODE_REL_PINNED_SOFT);
    hrtimer_start(&worker->hard, ns_to_ktime(PERIOD_MIN_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

static void stop_interrupts(struct worker *worker)
{
    hrtimer_cancel(&worker->soft);
    hrtimer_cancel(&worker->hard);
    irq_work_sync(&worker->own);
}

static int work(void *data)
{
    struct worker *worker = data;
    unsigned iteration;

    /* All threads begin together, so that they compete. */
    atomic_inc(&ready);
    while (atomic_read(&ready) < workers_count)
        cond_resched();
    start_timers(worker);
    for (iteration = 0; iteration < iterations_count; iteration++) {
        running->work(worker, IN_THREAD);
        cond_resched();
    }
    stop_interrupts(worker);
    if (atomic_dec_and_test(&busy))
        complete(&finished);
    wait_for_stop();
    return 0;
}

static void prepare_worker(unsigned number, u64 *random)
{
    struct worker *worker = &workers[number];
    unsigned place;

    worker->number = number;
    init_irq_work(&worker->own, own_handler);
    for (place = 0; place < PLACES; place++)
        worker->random[place] = random_next(random);
}

static void stop_workers(unsigned number)
{
    while (number--)
        kthread_stop(workers[number].task);
}

static int run_workers(u64 seed)
{
    unsigned number;

    atomic_set(&ready, 0);
    atomic_set(&busy, workers_count);
    reinit_completion(&finished);
    for (number = 0; number < workers_count; number++) {
        prepare_worker(number, &seed);
        workers[number].task = kthread_create(work, &workers[number], "concord_tm/%u", number);
        if (IS_ERR(workers[number].task)) {
            int error = PTR_ERR(workers[number].task);

            stop_workers(number);
            return error;
        }
    }
    for (number = 0; number < workers_count; number++)
        wake_up_process(workers[number].task);
    wait_for_completion(&finished);
    stop_workers(workers_count);
    return 0;
}

static int run(const struct test *test, u64 seed)
{
    bool is_right;
    int error;

    memset(notes, 0, sizeof(notes));
    atomic64_set(&disorders, 0);
    running = test;
    if (!test->prepare())
        return -ENOMEM;
    error = run_workers(seed);
    is_right = test->is_right();
    if (error)
        return error;
    if (atomic64_read(&disorders)) {
        pr_err("%s: %lld times a context saw a forbidden state\n", test->name, (long long)atomic64_read(&disorders));
        is_right = false;
    }
    if (!is_right) {
        pr_err("%s: failed\n", test->name);
        return -EILSEQ;
    }
    pr_info("%s: passed\n", test->name);
    return 0;
}

int tm_linux_test(unsigned threads, unsigned iterations, u64 seed)
{
    unsigned index;
    int error = 0;

    workers_count = threads;
    iterations_count = iterations;
    workers = kcalloc(threads, sizeof(*workers), GFP_KERNEL);
    if (!workers)
        return -ENOMEM;
    for (index = 0; index < lock_tests_count && !error; index++)
        error = run(&lock_tests[index], seed);
    for (index = 0; index < transaction_tests_count && !error; index++)
        error = run(&transaction_tests[index], seed);
    kfree(workers);
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Validates one lock, whose adapter is included first; see adapter.h. */
#include "adapter.h"
#include "validate.h"

#include <tm/htm.h>
#include <tm/statistics.h>

#include "../host.h"
#include "../random.h"
#include "../words.h"

#define LINES 4
/* Threads of the tests that give each thread its own part. */
#define WAITERS 4
/* Nesting levels that all wait at once: one more than the queue nodes of a processor. */
#define LEVELS 5
/* Threads that wait at each level ahead of the interrupted thread. */
#define LEVEL_WAITERS 2

static const char lock_name[] = TEXT(LOCK_WORD);
static const char *test_name;

static LOCK_TYPE lock TM_ALIGNED_TO_LINE = LOCK_INITIALIZER;

/* The data that a lock guards: the same number in each line, which plain accesses read and write. */
struct guarded {
    struct {
        uint64_t value TM_ALIGNED_TO_LINE;
    } lines[LINES];
};

static struct guarded guarded;

static void failed(const char *what)
{
    /* In a transaction, a commit proves that the state was real, and the report is not undone. */
    while (LOCK_TRANSACTIONAL && tm_htm_active())
        tm_htm_commit();
    validate_report(lock_name, test_name, what);
}

static void expect(bool condition, const char *what)
{
    if (!condition)
        failed(what);
}

/* Takes some time without making a transaction fail. */
static void work(unsigned turns)
{
    while (turns--)
        __asm__ volatile("" : : : "memory");
}

static void guarded_check(const struct guarded *data)
{
    for (unsigned i = 1; i < LINES; i++)
        expect(data->lines[i].value == data->lines[0].value, "a section saw what another had not finished");
}

/* With `yields` other threads run in the middle of it, if they can: not from within a transaction. */
static void guarded_add(struct guarded *data, unsigned turns, bool yields)
{
    uint64_t value;

    guarded_check(data);
    value = data->lines[0].value;
    data->lines[0].value = value + 1;
    work(turns);
    if (yields && !LOCK_TRANSACTIONAL)
        host_yield();
    for (unsigned i = 1; i < LINES; i++)
        data->lines[i].value = value + 1;
}

static void guarded_expect(struct guarded *data, uint64_t value)
{
    guarded_check(data);
    expect(data->lines[0].value == value, "a section's change was lost");
    for (unsigned i = 0; i < LINES; i++)
        data->lines[i].value = 0;
}

/* Steps of a test in which threads take turns. */
static unsigned step;

static inline void step_to(unsigned number)
{
    __atomic_store_n(&step, number, __ATOMIC_RELEASE);
}

static inline void step_wait(unsigned number)
{
    unsigned turns = 0;

    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < number)
        tm_port_wait(&turns);
}

/* Parameters of a stress test. */
static struct {
    uint64_t sections;
    unsigned turns;
} stress;

static void stress_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t i = 0; i < stress.sections; i++) {
        LOCK_CONTEXT context;
        bool taken = false;

        (void)context;
#ifdef LOCK_TRY_ACQUIRE
        if (random_below(&random, 4) == 0)
            taken = LOCK_TRY_ACQUIRE(&lock, &context);
#endif
        if (!taken)
            LOCK_ACQUIRE(&lock, &context);
        guarded_add(&guarded, stress.turns, random_below(&random, 16) == 0);
        LOCK_RELEASE(&lock, &context);
        work(random_below(&random, 64));
    }
}

/* Every thread ends, and no thread's changes are lost. */
static void run_stress(unsigned threads, unsigned turns)
{
    uint64_t counts[TM_STATISTICS_COUNT], steals = 0;

    if (threads > host_threads_max())
        return;
    tm_statistics_reset();
    stress.sections = validate_sections / threads + 1;
    stress.turns = turns;
    host_run(threads, stress_body);
    guarded_expect(&guarded, stress.sections * threads);
    expect(LOCK_IS_IDLE(&lock), "the lock is not idle though nobody wants it");
    tm_statistics_read(counts);
    if (TM_STATISTICS && !LOCK_TRANSACTIONAL)
        expect(counts[TM_STATISTIC_ACQUISITIONS] == stress.sections * threads, "an acquisition was not counted");
    for (unsigned i = 0; i < TM_STATISTICS_POSITIONS; i++)
        steals += counts[TM_STATISTIC_STEALS_0 + i];
    expect(!steals || steals == counts[TM_STATISTIC_QUEUED], "who waited did not take the lock from one position");
}

static void test_exclusion(void)
{
    run_stress(1, 0);
    for (unsigned threads = 2; threads <= 8; threads *= 2) {
        run_stress(threads, 0);
        run_stress(threads, 300);
    }
    run_stress(3, 20);
}

/* With 16 threads to a processor, so that holders, waiters and threads that hand over are stopped anywhere. */
static void test_oversubscription(void)
{
    unsigned threads = 16 * host_processors();

    if (threads > host_threads_max())
        threads = host_threads_max();
    run_stress(threads, 0);
    run_stress(threads, 300);
}

#if defined(LOCK_TRY_ACQUIRE) && !LOCK_TRANSACTIONAL
static void try_body(unsigned thread)
{
    LOCK_CONTEXT context;

    (void)context;
    if (thread == 0) {
        expect(LOCK_TRY_ACQUIRE(&lock, &context), "a try did not take the free lock");
        step_to(1);
        step_wait(2);
        LOCK_RELEASE(&lock, &context);
        step_to(3);
        step_wait(4);
        expect(!LOCK_TRY_ACQUIRE(&lock, &context), "a try took a held lock");
        step_to(5);
    } else {
        step_wait(1);
        for (unsigned i = 0; i < 100; i++)
            expect(!LOCK_TRY_ACQUIRE(&lock, &context), "a try took a held lock");
        step_to(2);
        step_wait(3);
        expect(LOCK_TRY_ACQUIRE(&lock, &context), "a try did not take a released lock");
        step_to(4);
        step_wait(5);
        LOCK_RELEASE(&lock, &context);
    }
}

static void test_try(void)
{
    if (host_threads_max() < 2)
        return;
    step_to(0);
    host_run(2, try_body);
}
#endif

#ifdef LOCK_WAITERS
/* Waits until there is one more waiter than when it had this value, and returns the new value. */
static uint64_t waiter_wait(LOCK_TYPE *awaited, uint64_t waiters)
{
    unsigned turns = 0;

    while ((uint64_t)LOCK_WAITERS(awaited) == waiters)
        tm_port_wait(&turns);
    return LOCK_WAITERS(awaited);
}
#endif

#if LOCK_FAIR
static unsigned order_next;

static void order_body(unsigned thread)
{
    LOCK_CONTEXT context;

    (void)context;
    if (thread == 0) {
        uint64_t waiters;

        LOCK_ACQUIRE(&lock, &context);
        for (unsigned i = 1; i <= WAITERS; i++) {
            waiters = LOCK_WAITERS(&lock);
            step_to(i);
            waiter_wait(&lock, waiters);
        }
        LOCK_RELEASE(&lock, &context);
    } else {
        step_wait(thread);
        LOCK_ACQUIRE(&lock, &context);
        expect(++order_next == thread, "who came later was served first");
        LOCK_RELEASE(&lock, &context);
    }
}

static void test_order(void)
{
    if (host_threads_max() < WAITERS + 1)
        return;
    for (unsigned i = 0; i < 20 && host_threads_max() > WAITERS; i++) {
        order_next = 0;
        step_to(0);
        host_run(WAITERS + 1, order_body);
    }
}
#endif

/* A lock for each depth of interrupt handlers, because the interrupted code may hold its own, or wait for it. */
static struct {
    LOCK_TYPE lock TM_ALIGNED_TO_LINE;
    struct guarded guarded;
    uint64_t sections;
} levels[LEVELS] = {[0 ... LEVELS - 1] = {.lock = LOCK_INITIALIZER}};

static void level_section(unsigned depth, unsigned turns)
{
    LOCK_CONTEXT context;

    (void)context;
    LOCK_ACQUIRE(&levels[depth].lock, &context);
    guarded_add(&levels[depth].guarded, turns, turns == 0);
    levels[depth].sections++;
    LOCK_RELEASE(&levels[depth].lock, &context);
}

static unsigned interrupts_handled;

static void interrupts_handler(unsigned depth)
{
    if (depth < LEVELS)
        level_section(depth, 200);
    __atomic_fetch_add(&interrupts_handled, 1, __ATOMIC_RELAXED);
}

static void interrupts_body(unsigned thread)
{
    (void)thread;
    host_interrupts_begin(interrupts_handler, 300);
    while (__atomic_load_n(&interrupts_handled, __ATOMIC_RELAXED) < validate_sections / 10)
        level_section(0, 200);
    host_interrupts_end();
}

/* Interrupt handlers that take locks, in threads that hold other locks or wait for them. */
static void test_interrupts(void)
{
    unsigned threads = host_threads_max() < 4 ? host_threads_max() : 4;

    if (!host_interrupt_levels())
        return;
    interrupts_handled = 0;
    host_run(threads, interrupts_body);
    for (unsigned i = 0; i < LEVELS; i++) {
        guarded_expect(&levels[i].guarded, levels[i].sections);
        levels[i].sections = 0;
    }
}

#if defined(LOCK_WAITERS) && !LOCK_TRANSACTIONAL
/* The depths whose lock the interrupted thread may ask for, and the number of its handlers that are about to. */
static unsigned depths_allowed, depths_entered;

static void nested_section(unsigned depth)
{
    if (depth == __atomic_load_n(&depths_entered, __ATOMIC_RELAXED) &&
        depth < __atomic_load_n(&depths_allowed, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&depths_entered, depth + 1, __ATOMIC_RELEASE);
        level_section(depth, 0);
    }
}

/* Whether the surplus waits have found no node, if that is counted. */
static bool nesting_is_unqueued(void)
{
    uint64_t counts[TM_STATISTICS_COUNT];

    if (!TM_STATISTICS || !LOCK_NODES)
        return true;
    tm_statistics_read(counts);
    return counts[TM_STATISTIC_UNQUEUED] == LEVELS - LOCK_NODES;
}

static void nesting_holder(void)
{
    LOCK_CONTEXT contexts[LEVELS];
    uint64_t waiters;

    (void)contexts;
    for (unsigned depth = 0; depth < LEVELS; depth++) {
        LOCK_ACQUIRE(&levels[depth].lock, &contexts[depth]);
        waiters = LOCK_WAITERS(&levels[depth].lock);
        for (unsigned i = 0; i < LEVEL_WAITERS; i++) {
            step_to(depth * LEVEL_WAITERS + i + 1);
            waiters = waiter_wait(&levels[depth].lock, waiters);
        }
        __atomic_store_n(&depths_allowed, depth + 1, __ATOMIC_RELEASE);
        /* The last level has no node to wait in if the lock needs one, and its wait is not visible. */
        if (depth < LEVELS - 1) {
            waiter_wait(&levels[depth].lock, waiters);
        } else {
            unsigned turns = 0;

            while (__atomic_load_n(&depths_entered, __ATOMIC_ACQUIRE) < LEVELS || !nesting_is_unqueued())
                tm_port_wait(&turns);
        }
    }
    for (unsigned depth = LEVELS; depth-- > 0;)
        LOCK_RELEASE(&levels[depth].lock, &contexts[depth]);
}

static void nesting_body(unsigned thread)
{
    if (thread == 0) {
        nesting_holder();
    } else if (thread <= LEVELS * LEVEL_WAITERS) {
        /* The first waiter needs no node in some locks, and the second waits for no other node. */
        step_wait(thread);
        level_section((thread - 1) / LEVEL_WAITERS, 0);
    } else {
        unsigned turns = 0;

        while (!__atomic_load_n(&depths_allowed, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
        host_interrupts_begin(nested_section, 500);
        nested_section(0);
        host_interrupts_end();
    }
}

/* A thread waits for a lock, and handlers that wait for other locks interrupt it, as deep as the host allows. */
static void test_nesting(void)
{
    if (host_interrupt_levels() < LEVELS - 1 || host_threads_max() < LEVELS * LEVEL_WAITERS + 2)
        return;
    step_to(0);
    depths_allowed = depths_entered = 0;
    tm_statistics_reset();
    host_run(LEVELS * LEVEL_WAITERS + 2, nesting_body);
    for (unsigned i = 0; i < LEVELS; i++) {
        expect(LOCK_IS_IDLE(&levels[i].lock), "the lock is not idle though nobody wants it");
        expect(levels[i].sections == LEVEL_WAITERS + 1, "a nested wait did not end");
        guarded_expect(&levels[i].guarded, LEVEL_WAITERS + 1);
        levels[i].sections = 0;
    }
}
#endif

#if TM_CHECKING && !LOCK_TRANSACTIONAL
static void release_free(void)
{
    LOCK_CONTEXT context = {0};

    (void)context;
    LOCK_RELEASE(&lock, &context);
}

static void release_strange_body(unsigned thread)
{
    if (thread == 0) {
        LOCK_CONTEXT context;

        (void)context;
        LOCK_ACQUIRE(&lock, &context);
        step_to(1);
        step_wait(2);
    } else {
        step_wait(1);
        release_free();
        step_to(2);
    }
}

static void release_strange(void)
{
    host_run(2, release_strange_body);
}

static void expect_report(void (*misuse)(void), const char *holder)
{
    const char *text = host_fatal(misuse);

    expect(!text || (words_contain(text, TEXT(LOCK_WORD) " lock 0x") &&
                     words_contain(text, "is released by processor") && words_contain(text, holder)),
           "a misuse was not reported");
}

#ifdef LOCK_READ_ACQUIRE
static void release_free_reading(void)
{
    LOCK_READ_RELEASE(&lock, NULL);
}
#endif

/* The checking build reports a release by a thread that does not hold the lock. */
static void test_misuse(void)
{
    step_to(0);
    expect_report(release_free, "held by nobody");
    expect_report(release_strange, "held by processor");
#ifdef LOCK_READ_ACQUIRE
    expect_report(release_free_reading, "held by nobody");
#endif
}
#endif

#ifdef LOCK_READ_ACQUIRE
#include "validate_readers.h"
#endif

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"exclusion", test_exclusion},
#if defined(LOCK_TRY_ACQUIRE) && !LOCK_TRANSACTIONAL
    {"try", test_try},
#endif
#if LOCK_FAIR
    {"order", test_order},
#endif
#ifdef LOCK_READ_ACQUIRE
    {"readers", test_readers},
    {"sharing", test_sharing},
#endif
    {"interrupts", test_interrupts},
#if defined(LOCK_WAITERS) && !LOCK_TRANSACTIONAL
    {"nesting", test_nesting},
#endif
    {"oversubscription", test_oversubscription},
#if TM_CHECKING && !LOCK_TRANSACTIONAL
    {"misuse", test_misuse},
#endif
};

static void run(void)
{
    LOCK_SETUP();
    for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        test_name = tests[i].name;
        if (!words_wants("tests", test_name))
            continue;
        tests[i].run();
        validate_report(lock_name, test_name, NULL);
    }
}

const struct validation JOINED(validation_, LOCK_NAME) = {lock_name, run};

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Checks one lock whose sections may be transactions, and whose adapter (cx.h, tx.h) is included first: sections that
 * conflict, nest, need exclusion in their midst, and nest deeper than any processor counts, as transactions and alone.
 */
#include "sections.h"

#include <tm/htm.h>

#include "../host.h"
#include "../random.h"
#include "../words.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOINED_OF(a, b) a##b
#define JOINED(a, b) JOINED_OF(a, b)

#define LOCKS 3
#define LINES 3
/* Deeper than Xmetatm counts (255), and RTM (7). */
#define LEVELS 260

/* In the order in which they nest. */
static struct {
    SECTION_LOCK lock TM_ALIGNED_TO_LINE;
    /* The data that it guards: the same number in each line. */
    struct {
        uint64_t value TM_ALIGNED_TO_LINE;
    } lines[LINES];
} guarded[LOCKS];

/* Additions, by thread and lock. */
static struct {
    uint64_t additions[LOCKS];
} TM_ALIGNED_TO_LINE done[HOST_THREADS_MAX];

static const char *test_name;

/* A failure seen by a transaction that cannot commit did not happen; a failure in one that can commit did. */
static void expect(bool condition, const char *what)
{
    if (condition)
        return;
    while (tm_htm_active())
        tm_htm_commit();
    sections_report(TEXT(SECTION_NAME), test_name, what);
}

static void work(unsigned turns)
{
    while (turns--)
        __asm__ volatile("" : : : "memory");
}

/* An action that cannot be undone: a system call, or a call of the SBI. */
static void act(void)
{
    static uint32_t nobody_sleeps_here;

    tm_port_unpark(&nobody_sleeps_here, tm_port_processor());
    expect(!tm_htm_active(), "a transaction outlived what cannot be undone");
}

/* In a section of this lock. */
static void add(unsigned index, unsigned turns)
{
    uint64_t value = guarded[index].lines[0].value;

    for (unsigned line = 1; line < LINES; line++)
        expect(guarded[index].lines[line].value == value, "a section saw what another had not finished");
    work(turns);
    for (unsigned line = 0; line < LINES; line++) {
        guarded[index].lines[line].value = value + 1;
        work(turns / 4);
    }
}

static void enter(unsigned index, bool alone)
{
    if (alone) {
        SECTION_ENTER_ALONE(&guarded[index].lock);
        expect(!tm_htm_active(), "a section that runs alone is a transaction");
    } else {
        SECTION_ENTER(&guarded[index].lock);
    }
}

static void leave(unsigned index)
{
    SECTION_LEAVE(&guarded[index].lock);
}

static void single(unsigned index, unsigned turns, bool alone, bool acts)
{
    enter(index, alone);
    add(index, turns);
    if (acts)
        act();
    leave(index);
}

/* Enters the section only if it need not wait. */
static bool single_try(unsigned index, unsigned turns)
{
    if (!SECTION_TRY(&guarded[index].lock))
        return false;
    add(index, turns);
    leave(index);
    return true;
}

/* The outer section ends first if the lock allows it, and the section entered in between belongs to another lock. */
static void pair(unsigned outer, unsigned inner, unsigned turns, unsigned kind)
{
    enter(outer, kind & 1);
    add(outer, turns);
    enter(inner, kind & 2);
    add(inner, turns);
    if (kind & 4)
        act();
    if (SECTION_ANY_ORDER && kind & 8) {
        leave(outer);
        leave(inner);
    } else {
        leave(inner);
        leave(outer);
    }
}

static void all(unsigned turns, bool acts)
{
    for (unsigned index = 0; index < LOCKS; index++) {
        enter(index, false);
        add(index, turns);
    }
    if (acts)
        act();
    for (unsigned index = LOCKS; index-- > 0;)
        leave(index);
}

static void mix_body(unsigned thread)
{
    uint64_t random = random_state(sections_seed, thread);

    for (uint64_t i = 0; i < sections_count; i++) {
        unsigned which = random_below(&random, 16), turns = random_below(&random, 64);
        unsigned index = random_below(&random, LOCKS), kind = random_below(&random, 16);
        unsigned inner = index + 1 + random_below(&random, LOCKS - 1);

        /* Most sections are entered as transactions and remain transactions. */
        if (which < 8) {
            single(index, turns, false, false);
            done[thread].additions[index]++;
        } else if (which < 10) {
            single(index, turns, kind & 1, kind & 2);
            done[thread].additions[index]++;
        } else if (which < 12) {
            done[thread].additions[index] += single_try(index, turns);
        } else if (which < 15 && inner < LOCKS) {
            pair(index, inner, turns, kind);
            done[thread].additions[index]++;
            done[thread].additions[inner]++;
        } else {
            all(turns, kind == 0);
            for (unsigned each = 0; each < LOCKS; each++)
                done[thread].additions[each]++;
        }
        work(random_below(&random, 64));
    }
}

/* No change is lost, and no change is seen half done. */
static void test_mix(void)
{
    host_run(sections_threads, mix_body);
    for (unsigned index = 0; index < LOCKS; index++) {
        uint64_t additions = 0;

        for (unsigned thread = 0; thread < sections_threads; thread++)
            additions += done[thread].additions[index];
        for (unsigned line = 0; line < LINES; line++)
            expect(guarded[index].lines[line].value == additions, "a section's change was lost");
    }
}

static SECTION_LOCK levels[LEVELS];
static uint64_t deepest TM_ALIGNED_TO_LINE;

static void descend(unsigned level)
{
    if (level == LEVELS) {
        deepest++;
        return;
    }
    SECTION_ENTER(&levels[level]);
    descend(level + 1);
    SECTION_LEAVE(&levels[level]);
}

static void depth_body(unsigned thread)
{
    (void)thread;
    descend(0);
    expect(!tm_htm_active(), "a transaction is open behind the outermost section");
}

/* The outer sections take their locks, as many as necessary for the rest to be a transaction. */
static void test_depth(void)
{
    unsigned threads = sections_threads < 4 ? sections_threads : 4;

    deepest = 0;
    host_run(threads, depth_body);
    expect(deepest == threads, "a section's change was lost");
}

#if SECTION_ALONE_WAITS && TM_STATISTICS
static uint64_t own[HOST_THREADS_MAX][TM_CACHE_LINE_SIZE / sizeof(uint64_t)] TM_ALIGNED_TO_LINE;

static void alone_body(unsigned thread)
{
    for (uint64_t i = 0; i < sections_count; i++) {
        enter(0, thread == 0);
        own[thread][0]++;
        work(100);
        leave(0);
    }
}

/*
 * A section that runs alone waits for transactions of its lock, and makes none of them fail. RTM fails for many
 * reasons.
 */
static void test_alone(void)
{
    uint64_t counts[TM_STATISTICS_COUNT];

    if (tm_htm_kind() != TM_HTM_XMETATM || sections_threads < 2)
        return;
    tm_statistics_reset();
    host_run(sections_threads, alone_body);
    tm_statistics_read(counts);
    for (unsigned thread = 0; thread < sections_threads; thread++)
        expect(own[thread][0] == sections_count, "a section's change was lost");
    expect(counts[TM_STATISTIC_HTM_COMMITS] == sections_count * (sections_threads - 1), "a section was no transaction");
    expect(counts[TM_STATISTIC_ABORTS_NONTRANSACTIONAL] == 0, "a section that runs alone made a transaction fail");
}
#endif

#if TM_CHECKING
static void leave_free(void)
{
    leave(0);
}

static uint32_t entered;

static void leave_strange_body(unsigned thread)
{
    unsigned turns = 0;

    if (thread == 0) {
        enter(0, true);
        __atomic_store_n(&entered, 1, __ATOMIC_RELEASE);
        for (;;)
            tm_port_wait(&turns);
    }
    while (!__atomic_load_n(&entered, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
    leave(0);
}

static void leave_strange(void)
{
    host_run(2, leave_strange_body);
}

/* The checking build reports the end of a section that the caller is not in. */
static void test_misuse(void)
{
    const char *text = host_fatal(leave_free);

    expect(!text || words_contain(text, "held by nobody"), "a section that nobody is in was left");
    text = host_fatal(leave_strange);
    expect(!text || words_contain(text, "held by processor"), "another's section was left");
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"mix", test_mix},
    {"depth", test_depth},
#if SECTION_ALONE_WAITS && TM_STATISTICS
    {"alone", test_alone},
#endif
#if TM_CHECKING
    {"misuse", test_misuse},
#endif
};

static void run(void)
{
    for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        test_name = tests[i].name;
        tests[i].run();
        sections_report(TEXT(SECTION_NAME), test_name, NULL);
    }
}

const struct sections JOINED(sections_, SECTION_NAME) = {TEXT(SECTION_NAME), run};

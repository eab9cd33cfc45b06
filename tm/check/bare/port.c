/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Checks the port to bare harts: processor numbers, sleeping and waking, interrupts that nest, and transactions that
 * they interrupt.
 *
 * Harts pass a turn around, and each sleeps until it has the turn: a lost wake-up leaves all asleep, which the machine
 * reports. They do so once more while the timer interrupts them. Then each waits for an interrupt in a transaction, and
 * so do the handlers of the first two levels. The functions that began those transactions have returned by then, and
 * their frames must be there when the transactions restart.
 */
#include <tm/htm.h>

#include "bare.h"
#include "harts.h"
#include "../random.h"

/*
 * Times the number of harts. All handlers add to one word, one after the other, so that with a fixed period many harts
 * would find the timer expired at each return from a handler, and execute one instruction between two interrupts.
 */
#define TIMER_PERIOD_TICKS 20
#define DELAY_TURNS_MAX 200
#define DELAY_SEED 1
#define LEVELS_MAX 3
#define FRAME_WORDS 16
#define FRAME_PATTERN 0x11feed5afe000000ul

#define FAILURE_PROCESSOR 10
#define FAILURE_INTERRUPTS 11
#define FAILURE_LEVEL 12
#define FAILURE_SUM 13
#define FAILURE_FRAME 14

static uint32_t turn TM_ALIGNED_TO_LINE;

static struct {
    /* Written by handlers of every level. */
    uint32_t interrupts;
    uint32_t deepest;
    bool nests;
    bool frame_lost;
    /* The words that transactions write, by the level that they began in. */
    uint64_t words[LEVELS_MAX][TM_CACHE_LINE_SIZE / sizeof(uint64_t)];
} TM_ALIGNED_TO_LINE harts[TM_PROCESSORS_MAX];

static uint64_t sum TM_ALIGNED_TO_LINE;

static void add(uint64_t *word)
{
    if (tm_htm_kind() == TM_HTM_NONE) {
        __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
        return;
    }
    /* Handlers always win over the code that they interrupted, so the conflicts among harts end. */
    for (unsigned long status = tm_htm_begin(); status != TM_HTM_STARTED; status = tm_htm_again())
        ;
    ++*word;
    tm_htm_commit();
}

/* Returns inside the transaction. */
static NAMED unsigned long begin(unsigned processor)
{
    volatile uint64_t frame[FRAME_WORDS];
    unsigned long status;

    for (unsigned word = 0; word < FRAME_WORDS; word++)
        frame[word] = FRAME_PATTERN + word;
    status = tm_htm_begin();
    for (unsigned word = 0; word < FRAME_WORDS; word++)
        if (frame[word] != FRAME_PATTERN + word)
            harts[processor].frame_lost = true;
    return status;
}

/* Waits until the innermost handler has run. Turns interrupts on; a restart turns them off again. */
static void wait_for_interrupts(unsigned processor, uint32_t awaited)
{
    tm_bare_interrupts_enable();
    while (!tm_htm_test(&harts[processor].interrupts, awaited))
        tm_port_relax();
}

/* The innermost level ends the timer, so exactly as many interrupts come as there are levels left. */
static void be_interrupted(unsigned processor, unsigned level)
{
    uint32_t awaited = __atomic_load_n(&harts[processor].interrupts, __ATOMIC_RELAXED) + LEVELS_MAX - level;

    if (tm_htm_kind() == TM_HTM_NONE) {
        wait_for_interrupts(processor, awaited);
        tm_port_interrupts_disable();
        return;
    }
    if (begin(processor) != TM_HTM_STARTED)
        tm_htm_again();
    for (unsigned word = 0; word < TM_CACHE_LINE_SIZE / sizeof(uint64_t); word++)
        harts[processor].words[level][word]++;
    /* The attempt that has seen the interrupts come fails. Their count is in no set as long as it has another value. */
    if (!tm_htm_test(&harts[processor].interrupts, awaited)) {
        wait_for_interrupts(processor, awaited);
        tm_htm_abort(TM_HTM_EXPLICIT);
    }
    tm_htm_commit();
}

static void tick(void)
{
    unsigned processor = tm_port_processor();
    unsigned level = tm_bare_interrupt_level();

    __atomic_fetch_add(&harts[processor].interrupts, 1, __ATOMIC_RELAXED);
    if (harts[processor].deepest < level)
        harts[processor].deepest = level;
    add(&sum);
    if (level == LEVELS_MAX)
        tm_bare_timer(0, NULL);
    else if (harts[processor].nests)
        be_interrupted(processor, level);
    if (tm_bare_interrupt_level() != level || tm_port_processor() != processor)
        finish(FAILURE_LEVEL);
}

static void delay(u64 *random)
{
    for (u64 turns = random_below(random, DELAY_TURNS_MAX); turns; turns--)
        tm_port_relax();
}

/* With delays, so that a turn is passed both just before and just after a hart goes to sleep. */
static void pass_the_turn(unsigned processor, unsigned count, u64 iterations)
{
    u64 random = random_state(DELAY_SEED, processor);

    for (u64 round = 0; round < iterations; round++) {
        uint32_t now;

        delay(&random);
        while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) % count != processor)
            tm_port_park(&turn, now);
        delay(&random);
        __atomic_store_n(&turn, now + 1, __ATOMIC_RELEASE);
        tm_port_unpark(&turn, (processor + 1) % count);
    }
}

void run(u64 index, u64 count, u64 iterations)
{
    unsigned processor = (unsigned)index;

    tm_bare_hart_start(processor);
    if (tm_port_processor() != processor)
        finish(FAILURE_PROCESSOR);
    pass_the_turn(processor, (unsigned)count, iterations);
    tm_bare_timer(TIMER_PERIOD_TICKS * count, tick);
    tm_bare_interrupts_enable();
    pass_the_turn(processor, (unsigned)count, iterations);
    tm_port_interrupts_disable();
    harts[processor].nests = true;
    be_interrupted(processor, 0);
}

u32 verify(u64 count, u64 iterations)
{
    uint64_t interrupts = 0;

    for (u64 hart = 0; hart < count; hart++) {
        interrupts += harts[hart].interrupts;
        if (harts[hart].deepest != LEVELS_MAX)
            return FAILURE_INTERRUPTS;
        if (harts[hart].frame_lost)
            return FAILURE_FRAME;
        for (unsigned level = 0; level < LEVELS_MAX; level++)
            for (unsigned word = 0; word < TM_CACHE_LINE_SIZE / sizeof(uint64_t); word++)
                if (harts[hart].words[level][word] != (tm_htm_kind() != TM_HTM_NONE))
                    return FAILURE_SUM;
    }
    print_counted("turns ", turn);
    print_counted(" interrupts ", interrupts);
    print(" transactions ");
    print(tm_htm_kind_name(tm_htm_kind()));
    print("\n");
    return interrupts != sum || turn != 2 * count * iterations ? FAILURE_SUM : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The check programs on bare harts: a thread is a hart, the boot hart is thread 0 and runs check_main, and interrupts
 * are the timer's. The others sleep between two runs.
 *
 * There is no watchdog here: the machine detects deadlocks, and has limits for programs that do not end.
 */
#include "host.h"

#include <tm/lock/byte.h>

#include "bare.h"
#include "harts.h"

#define TEXTS_SIZE 512
#define TEXTS_MAX 16
/* The number of levels for which queue locks have nodes. The innermost keeps interrupts off. */
#define INTERRUPT_LEVELS 4
/* Interrupts come this many times as often as requested: a second of the machine is long. */
#define INTERRUPTS_FACTOR 10
#define NESTED_PERIOD_FACTOR 2
#define CALIBRATION_TICKS 100
#define MEGAHERTZ 1000000

#define THREADS_MASK 0xffu
#define GENERATION_ONE 0x100u
#define EVERYBODY_LEAVES THREADS_MASK

static struct {
    /*
     * The harts' task: the number of harts that run the body, and above that a number that differs each time. It is one
     * word, because a hart without a part in one run may look at it while the next run is prepared.
     */
    uint32_t order TM_ALIGNED_TO_LINE;
    void (*body)(unsigned thread);
    uint32_t started TM_ALIGNED_TO_LINE;
    uint32_t finished TM_ALIGNED_TO_LINE;
} job;

static int ends_with;

const char *host_text(const char *key, const char *otherwise)
{
    static char texts[TEXTS_SIZE];
    static unsigned used;
    static struct {
        const char *value, *text;
    } known[TEXTS_MAX];
    static unsigned known_count;
    const char *value = argument_text(key);
    char *text = texts + used;

    if (!value)
        return otherwise;
    for (unsigned i = 0; i < known_count; i++)
        if (known[i].value == value)
            return known[i].text;
    if (known_count == TEXTS_MAX)
        tm_port_fatal("too many texts are asked for");
    known[known_count].value = value;
    known[known_count++].text = text;
    for (; *value && *value != ' '; value++) {
        if (used == TEXTS_SIZE - 1)
            tm_port_fatal("the command line is too long");
        texts[used++] = *value;
    }
    texts[used++] = 0;
    return text;
}

uint64_t host_number(const char *key, uint64_t otherwise)
{
    return argument(key, otherwise);
}

static unsigned harts_count;

unsigned host_processors(void)
{
    return harts_count;
}

unsigned host_threads_max(void)
{
    return harts_count;
}

static void take_part(unsigned thread, unsigned threads)
{
    __atomic_fetch_add(&job.started, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&job.started, __ATOMIC_ACQUIRE) != threads)
        tm_port_relax();
    job.body(thread);
    __atomic_fetch_add(&job.finished, 1, __ATOMIC_RELEASE);
}

static void work(unsigned thread)
{
    uint32_t seen = 0, order, threads;

    for (;;) {
        while ((order = __atomic_load_n(&job.order, __ATOMIC_ACQUIRE)) == seen)
            tm_port_park(&job.order, seen);
        seen = order;
        threads = order & THREADS_MASK;
        if (threads == EVERYBODY_LEAVES)
            return;
        if (thread < threads)
            take_part(thread, threads);
    }
}

static void give_order(uint32_t threads)
{
    __atomic_store_n(&job.order, (job.order & ~THREADS_MASK) + GENERATION_ONE + threads, __ATOMIC_RELEASE);
    for (unsigned thread = 1; thread < threads && thread < harts_count; thread++)
        tm_port_unpark(&job.order, thread);
}

void host_run(unsigned threads, void (*body)(unsigned thread))
{
    if (threads > harts_count)
        tm_port_fatal("more threads are asked for than there are harts");
    job.body = body;
    job.started = 0;
    job.finished = 0;
    give_order(threads);
    take_part(0, threads);
    while (__atomic_load_n(&job.finished, __ATOMIC_ACQUIRE) != threads)
        tm_port_relax();
}

/* Harts share no processor. */
void host_yield(void)
{
    tm_port_relax();
}

/* The runtime calls it on every hart. */
void run(u64 index, u64 harts, u64 iterations)
{
    (void)iterations;
    tm_bare_hart_start((unsigned)index);
    if (index == 0) {
        harts_count = (unsigned)harts;
        ends_with = check_main();
        give_order(EVERYBODY_LEAVES);
    } else {
        work((unsigned)index);
    }
}

/* The runtime calls it for the result of the run. */
u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    return (u32)ends_with;
}

uint64_t host_clock(void)
{
    return tm_bare_cycles();
}

/* The device tree has only the frequency of the timer. */
uint64_t host_clock_frequency_hz(void)
{
    uint64_t ticks = tm_bare_ticks(), cycles;

    while (tm_bare_ticks() == ticks)
        ;
    cycles = tm_bare_cycles();
    while (tm_bare_ticks() <= ticks + CALIBRATION_TICKS)
        ;
    cycles = (tm_bare_cycles() - cycles) * timebase_hertz() / CALIBRATION_TICKS;
    return (cycles + MEGAHERTZ / 2) / MEGAHERTZ * MEGAHERTZ;
}

const char *host_clock_unit(void)
{
    return "cycles";
}

void host_print(const char *text)
{
    static struct tm_byte_lock lock;

    tm_byte_lock_acquire(&lock);
    print(text);
    tm_byte_lock_release(&lock);
}

void host_exit(int code)
{
    finish((u32)code);
}

void host_watchdog(unsigned seconds)
{
    (void)seconds;
}

const char *host_fatal(void (*body)(void))
{
    (void)body;
    return NULL;
}

unsigned host_interrupt_levels(void)
{
    return INTERRUPT_LEVELS;
}

static void (*interrupt_handler)(unsigned depth);
static unsigned long interrupt_period_ticks;

static void interrupted(void)
{
    unsigned depth = tm_bare_interrupt_level();

    /*
     * Handlers are interrupted seldom, and only from their ends on, so that the interrupted code makes progress at any
     * depth.
     */
    tm_bare_timer(NESTED_PERIOD_FACTOR * interrupt_period_ticks, interrupted);
    if (depth < INTERRUPT_LEVELS)
        tm_bare_interrupts_enable();
    interrupt_handler(depth);
    tm_port_interrupts_disable();
    tm_bare_timer(depth > 1 ? NESTED_PERIOD_FACTOR * interrupt_period_ticks : interrupt_period_ticks, interrupted);
}

void host_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us)
{
    __atomic_store_n(&interrupt_handler, handler, __ATOMIC_RELAXED);
    __atomic_store_n(&interrupt_period_ticks, timebase_hertz() * period_us / MEGAHERTZ / INTERRUPTS_FACTOR + 1,
                     __ATOMIC_RELAXED);
    tm_bare_timer(interrupt_period_ticks, interrupted);
    tm_bare_interrupts_enable();
}

void host_interrupts_end(void)
{
    tm_port_interrupts_disable();
    tm_bare_timer(0, NULL);
}

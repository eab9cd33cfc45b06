/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Handlers with transactions on the same words as the interrupted threads and as other handlers, on all threads at a
 * time.
 */
#include "validate.h"

#define WORDS 5u
/* One for each thread: threads share processors. */
#define PERIOD_US 50u
#define OPERATIONS_PER_INTERRUPTED 4

/* Two in a block. All are equal. */
static uint64_t words[4][8] TM_ALIGNED_TO_LINE;
/* The sum added by threads and by handlers of each depth. */
static struct {
    uint64_t counts[1 + VALIDATE_LEVELS_MAX];
    uint64_t interrupts;
    uint64_t random[1 + VALIDATE_LEVELS_MAX];
} TM_ALIGNED_TO_LINE tallies[HOST_THREADS_MAX];
static bool has_memory;
/* Maps a processor to its thread. */
static unsigned thread_of[TM_PROCESSORS_MAX];

static uint64_t *word(unsigned number)
{
    return number < 2 ? &words[0][number] : &words[number - 1][0];
}

static void check_equal(uint64_t value)
{
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(tm_load(word(number)) == value, "words differ that are only changed together");
}

static VALIDATE_NOINLINE void add_to_all(bool backward, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t value = tm_load(word(0));
    check_equal(value);
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(backward ? WORDS - 1 - number : number), value + 1);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void look(unsigned flags)
{
    VALIDATE_START(flags);
    check_equal(tm_load(word(2)));
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void give_up(unsigned flags)
{
    if (tm_start(flags) != TM_STARTED)
        return;
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(number), 12345);
    tm_cancel();
}

static VALIDATE_NOINLINE void add_irrevocably(void)
{
    VALIDATE_START(0);
    uint64_t value = tm_load(word(0));
    tm_store(word(0), value + 1);
    tm_become_irrevocable();
    for (unsigned number = 1; number < WORDS; number++) {
        VALIDATE(tm_load(word(number)) == value, "an irrevocable transaction saw words differ");
        tm_store(word(number), value + 1);
    }
    VALIDATE_COMMIT();
}

/* A block that is exchanged for another: handlers free what threads have allocated. */
static uint64_t *block;

static VALIDATE_NOINLINE void allocate_block(unsigned flags)
{
    VALIDATE_START(flags);
    if (!tm_load_pointer(&block)) {
        uint64_t *made = tm_alloc(sizeof *made, VALIDATE_GUARDED);
        VALIDATE(made, "no memory");
        *made = 1;
        tm_store_pointer(&block, made);
    } else {
        VALIDATE(tm_load(tm_load_pointer(&block)) == 1, "a transaction saw freed memory");
    }
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void free_block(void)
{
    VALIDATE_START(0);
    uint64_t *old = tm_load_pointer(&block);
    if (old) {
        VALIDATE(tm_load(old) == 1, "a handler saw freed memory");
        tm_store_pointer(&block, (uint64_t *)NULL);
        tm_free(old);
    }
    VALIDATE_COMMIT();
}

static void handle(unsigned depth)
{
    unsigned thread = thread_of[tm_port_processor()];
    uint64_t *random = &tallies[thread].random[depth];

    tallies[thread].interrupts++;
    switch (random_below(random, 4)) {
    case 0:
        look(0);
        break;
    case 1:
        if (has_memory) {
            free_block();
            break;
        }
        /* Fall through. */
    default:
        add_to_all(random_below(random, 2), 0);
        tallies[thread].counts[depth]++;
    }
}

static void interrupted_body(unsigned thread)
{
    uint64_t *random = &tallies[thread].random[0];

    for (unsigned depth = 0; depth <= VALIDATE_LEVELS_MAX; depth++)
        tallies[thread].random[depth] = random_state(validate_seed + depth, thread);
    thread_of[tm_port_processor()] = thread;
    validate_interrupts_begin(handle, PERIOD_US * validate_threads);
    /* At least this many, and until it has been interrupted. */
    for (uint64_t operation = 0; operation < validate_share() / OPERATIONS_PER_INTERRUPTED ||
                                 !*(volatile uint64_t *)&tallies[thread].interrupts; operation++) {
        unsigned flags = validate_flags(random);

        switch (random_below(random, 8)) {
        case 0:
            look(flags);
            break;
        case 1:
            give_up(flags & ~TM_SERIAL);
            break;
        case 2:
            add_irrevocably();
            tallies[thread].counts[0]++;
            break;
        case 3:
        case 4:
            if (has_memory) {
                allocate_block(flags);
                break;
            }
            /* Fall through. */
        default:
            add_to_all(random_below(random, 2), flags);
            tallies[thread].counts[0]++;
        }
    }
    validate_interrupts_end();
    /* Memory that handlers have freed since this thread's last commit is given back after the next. */
    look(0);
}

static void run(bool with_memory)
{
    uint64_t sum = 0;

    __builtin_memset(words, 0, sizeof words);
    __builtin_memset(tallies, 0, sizeof tallies);
    has_memory = with_memory;
    block = NULL;
    validate_run(interrupted_body);
    for (unsigned thread = 0; thread < validate_threads; thread++)
        for (unsigned depth = 0; depth <= VALIDATE_LEVELS_MAX; depth++)
            sum += tallies[thread].counts[depth];
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(*word(number) == sum, "what a thread or a handler added was lost, or added twice");
    if (block)
        tm_free(block);
}

static void run_handlers(void)
{
    run(false);
}

static void run_handlers_free(void)
{
    uint64_t before = validate_guarded_count();

    run(true);
    VALIDATE(validate_guarded_count() == before, "what handlers freed was not given back");
}

const struct validate_test validate_interrupts[] = {
    {"handlers", run_handlers},
    {"handlers_free", run_handlers_free},
    {0},
};

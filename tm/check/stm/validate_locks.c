/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* tm_lock and tm_weak_lock: sections that exclude transactions. */
#include "validate.h"

static uint64_t lock TM_ALIGNED_TO_LINE;
static uint64_t pair[2][8] TM_ALIGNED_TO_LINE;
static uint64_t counts[HOST_THREADS_MAX];
#define TURNS_MAX 100u

/* Plainly, under the lock. */
static void add_in_section(uint32_t turns)
{
    volatile uint64_t *first = &pair[0][0], *second = &pair[1][0];

    tm_lock(&lock);
    VALIDATE(*first == *second, "a locked section saw half of a transaction, or of another section");
    *first += 1;
    validate_wait(turns);
    *second += 1;
    tm_unlock(&lock);
}

static VALIDATE_NOINLINE void add_in_transaction(unsigned flags)
{
    VALIDATE_START(flags);
    tm_weak_lock(&lock);
    uint64_t first = tm_load(&pair[0][0]);
    VALIDATE(tm_load(&pair[1][0]) == first, "a transaction saw half of a locked section");
    tm_store(&pair[0][0], first + 1);
    tm_store(&pair[1][0], first + 1);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_in_transaction(uint32_t turns, unsigned flags)
{
    VALIDATE_START(flags);
    tm_weak_lock(&lock);
    uint64_t first = tm_load(&pair[0][0]);
    validate_wait(turns);
    VALIDATE(tm_load(&pair[1][0]) == first, "a transaction saw half of a locked section");
    VALIDATE_COMMIT();
}

static void exclusion_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share() / 2; operation++) {
        unsigned flags = validate_flags(&random);
        uint32_t kind = random_below(&random, 4), turns = random_below(&random, TURNS_MAX);

        if (kind == 0)
            add_in_section(turns);
        else if (kind == 1)
            add_in_transaction(flags);
        else
            read_in_transaction(turns, flags);
        counts[thread] += kind < 2;
    }
}

static void run_exclusion(void)
{
    uint64_t sum = 0;

    __builtin_memset(pair, 0, sizeof pair);
    __builtin_memset(counts, 0, sizeof counts);
    validate_run(exclusion_body);
    for (unsigned thread = 0; thread < validate_threads; thread++)
        sum += counts[thread];
    VALIDATE(pair[0][0] == sum && pair[1][0] == sum && lock == 0, "a section or a transaction was lost");
}

const struct validate_test validate_locks[] = {
    {"exclusion", run_exclusion},
    {0},
};

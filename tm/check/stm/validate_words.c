/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Words: no store is lost or torn, and no transaction, not even one that will restart, sees a state that never existed.
 */
#include "validate.h"

/*
 * Counters. Transactions increment one counter, for which the library has fast paths, or several.
 */
#define COUNTERS 6
/* Each in its own line, except the first two, which share a block. */
#define COUNTER_WORDS 8

static uint64_t counters[COUNTERS * COUNTER_WORDS] TM_ALIGNED_TO_LINE;
static uint64_t tallies[HOST_THREADS_MAX][COUNTERS];

static uint64_t *counter(unsigned number)
{
    return &counters[number < 2 ? number : number * COUNTER_WORDS];
}

static VALIDATE_NOINLINE void increment(uint32_t set, unsigned flags)
{
    VALIDATE_START(flags);
    for (unsigned number = 0; number < COUNTERS; number++)
        if (set >> number & 1)
            tm_store(counter(number), tm_load(counter(number)) + 1);
    VALIDATE_COMMIT();
}

static void increment_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share(); operation++) {
        uint32_t set = 1u << random_below(&random, COUNTERS);

        switch (random_below(&random, 4)) {
        case 0:
            set |= 1u << random_below(&random, COUNTERS);
            break;
        case 1:
            set |= random_below(&random, 1u << COUNTERS);
            break;
        }
        increment(set, validate_flags(&random));
        for (unsigned number = 0; number < COUNTERS; number++)
            tallies[thread][number] += set >> number & 1;
    }
}

static void run_counters(void)
{
    for (unsigned number = 0; number < COUNTERS; number++)
        *counter(number) = 0;
    __builtin_memset(tallies, 0, sizeof tallies);
    validate_run(increment_body);
    for (unsigned number = 0; number < COUNTERS; number++) {
        uint64_t sum = 0;

        for (unsigned thread = 0; thread < validate_threads; thread++)
            sum += tallies[thread][number];
        VALIDATE(*counter(number) == sum, "an increment was lost, or counted twice");
    }
}

/*
 * A bank. An account's balance is in two words whose sum is always the same, so that any two reads show a torn state.
 */
#define ACCOUNTS 24u
#define ACCOUNT_SUM 1000000u

static struct account {
    uint64_t balance;
    uint64_t apart[7];
    uint64_t owed;
} accounts[ACCOUNTS];

static VALIDATE_NOINLINE void transfer(struct account *from, struct account *to, uint64_t amount, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t balance = tm_load(&from->balance);
    VALIDATE(balance + tm_load(&from->owed) == ACCOUNT_SUM, "a transfer saw half of another");
    tm_store(&from->balance, balance - amount);
    tm_store(&to->owed, tm_load(&to->owed) - amount);
    tm_store(&from->owed, tm_load(&from->owed) + amount);
    tm_store(&to->balance, tm_load(&to->balance) + amount);
    VALIDATE(tm_load(&to->balance) + tm_load(&to->owed) == ACCOUNT_SUM, "a transfer did not see its own stores");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void audit(unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t sum = 0;
    for (unsigned number = 0; number < ACCOUNTS; number++) {
        uint64_t balance = tm_load(&accounts[number].balance);
        VALIDATE(balance + tm_load(&accounts[number].owed) == ACCOUNT_SUM, "an audit saw half of a transfer between two words");
        sum += balance;
    }
    VALIDATE(sum == (uint64_t)ACCOUNTS * ACCOUNT_SUM / 2, "an audit saw half of a transfer between two accounts");
    VALIDATE_COMMIT();
}

/* Looks at one account, which takes two reads: the second is the first that needs a snapshot. */
static VALIDATE_NOINLINE void look(struct account *account, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t owed = tm_load(&account->owed);
    VALIDATE(tm_load(&account->balance) + owed == ACCOUNT_SUM, "a transaction of two reads saw half of a transfer");
    VALIDATE_COMMIT();
}

static void bank_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share(); operation++) {
        struct account *from = &accounts[random_below(&random, ACCOUNTS)], *to = &accounts[random_below(&random, ACCOUNTS)];
        unsigned flags = validate_flags(&random);
        uint32_t kind = random_below(&random, 16);

        if (kind == 0)
            audit(flags);
        else if (kind < 6)
            look(from, flags);
        else if (from != to)
            transfer(from, to, random_below(&random, 100), flags);
    }
}

static void run_bank(void)
{
    for (unsigned number = 0; number < ACCOUNTS; number++)
        accounts[number] = (struct account){.balance = ACCOUNT_SUM / 2, .owed = ACCOUNT_SUM / 2};
    validate_run(bank_body);
    audit(0);
}

/*
 * Bytes, halves and words of one line, in loads and stores that overlap, aligned and not. The last word is the sum of all bytes before it.
 */
#define LINE_SIZE 48
#define SHADOW_OPERATIONS 12

static struct {
    uint8_t bytes[LINE_SIZE];
    uint64_t sum;
} TM_ALIGNED_TO_LINE line;

static uint64_t load_any(const uint8_t *address, unsigned size)
{
    switch (size) {
    case 1:
        return tm_load8(address);
    case 2:
        return tm_load16((const uint16_t *)(const void *)address);
    case 4:
        return tm_load32((const uint32_t *)(const void *)address);
    default:
        return tm_load64((const uint64_t *)(const void *)address);
    }
}

static void store_any(uint8_t *address, uint64_t value, unsigned size)
{
    switch (size) {
    case 1:
        tm_store8(address, (uint8_t)value);
        break;
    case 2:
        tm_store16((uint16_t *)(void *)address, (uint16_t)value);
        break;
    case 4:
        tm_store32((uint32_t *)(void *)address, (uint32_t)value);
        break;
    default:
        tm_store64((uint64_t *)(void *)address, value);
    }
}

static VALIDATE_NOINLINE void overlap(uint64_t seed, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t random = seed, sum = 0;
    uint8_t shadow[LINE_SIZE];
    for (unsigned byte = 0; byte < LINE_SIZE; byte++)
        sum += shadow[byte] = tm_load8(&line.bytes[byte]);
    VALIDATE(tm_load64(&line.sum) == sum, "bytes do not add up to what was stored with them");
    for (unsigned operation = 0; operation < SHADOW_OPERATIONS; operation++) {
        unsigned size = 1u << random_below(&random, 4);
        unsigned offset = random_below(&random, LINE_SIZE - size + 1);
        uint64_t value = random * 0x9e3779b97f4a7c15, expected = 0;
        /* Most are aligned. */
        if (random_below(&random, 4))
            offset &= ~(size - 1);
        if (random_below(&random, 2)) {
            store_any(&line.bytes[offset], value, size);
            __builtin_memcpy(&shadow[offset], &value, size);
        }
        __builtin_memcpy(&expected, &shadow[offset], size);
        VALIDATE(load_any(&line.bytes[offset], size) == expected, "a load did not see what was stored before");
    }
    sum = 0;
    for (unsigned byte = 0; byte < LINE_SIZE; byte++)
        sum += shadow[byte];
    tm_store64(&line.sum, sum);
    VALIDATE_COMMIT();
}

static void overlap_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share() / 8; operation++) {
        uint64_t seed = random;
        unsigned flags = validate_flags(&random);

        overlap(seed, flags);
    }
}

static void run_overlapping_sizes(void)
{
    __builtin_memset(&line, 0, sizeof line);
    validate_run(overlap_body);
    overlap(validate_seed | 1, 0);
}

/*
 * Neighbours: bytes that transactions store are beside bytes that their threads store plainly.
 */
#define NEIGHBOUR_WORDS 16

static struct {
    uint8_t shared;
    uint8_t plain;
    uint16_t shared_half;
    uint8_t plain_pair[2];
    uint8_t shared_pair[2];
} neighbours[NEIGHBOUR_WORDS] TM_ALIGNED_TO_LINE;
/* A thread's own plain bytes are in the word of its number; further threads have none. */
static uint64_t neighbour_counts[HOST_THREADS_MAX][NEIGHBOUR_WORDS];

static VALIDATE_NOINLINE void store_beside(unsigned word, unsigned flags)
{
    VALIDATE_START(flags);
    tm_store8(&neighbours[word].shared, (uint8_t)(tm_load8(&neighbours[word].shared) + 1));
    tm_store16(&neighbours[word].shared_half, (uint16_t)(tm_load16(&neighbours[word].shared_half) + 1));
    tm_store8(&neighbours[word].shared_pair[0], (uint8_t)(tm_load8(&neighbours[word].shared_pair[0]) + 1));
    tm_store8(&neighbours[word].shared_pair[1], (uint8_t)(tm_load8(&neighbours[word].shared_pair[1]) + 1));
    VALIDATE_COMMIT();
}

static void neighbour_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);
    uint8_t count = 0;

    for (uint64_t operation = 0; operation < validate_share(); operation++) {
        unsigned word = random_below(&random, validate_threads < NEIGHBOUR_WORDS ? validate_threads : NEIGHBOUR_WORDS);

        store_beside(word, validate_flags(&random));
        neighbour_counts[thread][word]++;
        if (thread >= NEIGHBOUR_WORDS)
            continue;
        VALIDATE(neighbours[thread].plain == count && neighbours[thread].plain_pair[0] == count &&
                     neighbours[thread].plain_pair[1] == count,
                 "a transaction stored to a neighbour of what it was told to");
        count++;
        *(volatile uint8_t *)&neighbours[thread].plain = count;
        *(volatile uint8_t *)&neighbours[thread].plain_pair[0] = count;
        *(volatile uint8_t *)&neighbours[thread].plain_pair[1] = count;
    }
}

static void run_neighbours(void)
{
    __builtin_memset(neighbours, 0, sizeof neighbours);
    __builtin_memset(neighbour_counts, 0, sizeof neighbour_counts);
    validate_run(neighbour_body);
    for (unsigned word = 0; word < NEIGHBOUR_WORDS; word++) {
        uint64_t sum = 0;

        for (unsigned thread = 0; thread < validate_threads; thread++)
            sum += neighbour_counts[thread][word];
        VALIDATE(neighbours[word].shared == (uint8_t)sum && neighbours[word].shared_half == (uint16_t)sum &&
                     neighbours[word].shared_pair[0] == (uint8_t)sum && neighbours[word].shared_pair[1] == (uint8_t)sum,
                 "a store of less than a word was lost");
    }
}

/*
 * Running alone: serial and irrevocable transactions do plain increments, which no other transaction may see.
 */
static uint64_t alone_plain, alone_shared[2];
/* Even, except for a time in a transaction that runs alone. */
static uint64_t alone_even;
#define ALONE_TURNS_MAX 50u
static uint64_t alone_counts[HOST_THREADS_MAX];

static VALIDATE_NOINLINE void be_alone(unsigned when, uint32_t turns, unsigned flags)
{
    VALIDATE_START(flags);
    if (when == 0)
        tm_become_irrevocable();
    uint64_t first = tm_load(&alone_shared[0]);
    if (when == 1)
        tm_become_irrevocable();
    tm_store(&alone_shared[0], first + 1);
    if (when == 2)
        tm_become_irrevocable();
    uint64_t second = tm_load(&alone_shared[1]);
    VALIDATE(second == first, "a transaction on its way to run alone saw half of another");
    tm_store(&alone_shared[1], second + 1);
    tm_become_irrevocable();
    /* It does not restart from here on. */
    *(volatile uint64_t *)&alone_plain += 1;
    tm_store(&alone_even, alone_even + 1);
    validate_wait(turns);
    tm_store(&alone_even, alone_even + 1);
    VALIDATE(tm_load(&alone_shared[0]) == alone_plain && tm_load(&alone_shared[1]) == alone_plain,
             "another transaction committed while one ran alone");
    VALIDATE_COMMIT();
}

/* The first read, before which a transaction is invisible to others. */
static VALIDATE_NOINLINE void read_beside(uint32_t turns, unsigned flags)
{
    VALIDATE_START(flags);
    validate_wait(turns);
    VALIDATE(tm_load(&alone_even) % 2 == 0, "the first read of a transaction was of one that ran alone");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void count_beside(uint32_t turns, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t second = tm_load(&alone_shared[1]);
    VALIDATE(tm_load(&alone_shared[1]) == second, "a transaction saw two values of a word");
    validate_wait(turns);
    VALIDATE(tm_load(&alone_shared[0]) == second, "a transaction saw half of one that ran alone");
    VALIDATE_COMMIT();
}

static void alone_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share(); operation++) {
        unsigned flags = validate_flags(&random);
        uint32_t turns = random_below(&random, ALONE_TURNS_MAX);

        switch (random_below(&random, 4)) {
        case 0:
            be_alone(random_below(&random, 4), turns, random_below(&random, 2) ? TM_SERIAL : flags);
            alone_counts[thread]++;
            break;
        case 1:
            count_beside(turns, flags);
            break;
        default:
            read_beside(turns, flags);
        }
    }
}

static void run_alone(void)
{
    uint64_t sum = 0;

    alone_plain = alone_even = alone_shared[0] = alone_shared[1] = 0;
    __builtin_memset(alone_counts, 0, sizeof alone_counts);
    validate_run(alone_body);
    for (unsigned thread = 0; thread < validate_threads; thread++)
        sum += alone_counts[thread];
    VALIDATE(alone_plain == sum && alone_shared[0] == sum && alone_shared[1] == sum,
             "an irrevocable transaction was run twice, or not at all");
}

const struct validate_test validate_words[] = {
    {"counters", run_counters},
    {"bank", run_bank},
    {"overlapping_sizes", run_overlapping_sizes},
    {"neighbours", run_neighbours},
    {"alone", run_alone},
    {0},
};

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Transactions on words: one, sixteen, and two accounts. */
#include "workload.h"

/* A counter that all threads increment. */
static uint64_t counter;

static void increment_prepare(void)
{
    counter = 0;
}

static NOINLINE void increment_operate(uint64_t *random)
{
    (void)random;
    TRANSACTION
        STORE(counter, LOAD(counter) + 1);
    END
}

static bool increment_adds_up(uint64_t operations)
{
    return counter == operations;
}

const struct workload increment = {"increment", increment_prepare, increment_operate, increment_adds_up};

/* Words so far apart that each has its own record, over 32 KiB. */
#define WORDS_COUNT 4096
#define READS 16
#define WRITES 4
#define STRIDE 61

static uint64_t words[WORDS_COUNT];
static volatile uint64_t sink;

static void words_prepare(void)
{
    for (unsigned word = 0; word < WORDS_COUNT; word++)
        words[word] = 0;
}

static NOINLINE uint64_t read_words(uint32_t first)
{
    uint64_t sum;
    READ_ONLY_TRANSACTION
        sum = 0;
        for (uint32_t i = 0; i < READS; i++)
            sum += LOAD(words[(first + i * STRIDE) % WORDS_COUNT]);
    END
    return sum;
}

static void read16_operate(uint64_t *random)
{
    sink = read_words(random_below(random, WORDS_COUNT));
}

static bool read16_adds_up(uint64_t operations)
{
    (void)operations;
    return sink == 0;
}

const struct workload read16 = {"read16", words_prepare, read16_operate, read16_adds_up};

/* The last four of the read words are written. */
static NOINLINE void write_words(uint32_t first)
{
    TRANSACTION
        uint64_t sum = 0;
        for (uint32_t i = 0; i < READS - WRITES; i++)
            sum += LOAD(words[(first + i * STRIDE) % WORDS_COUNT]);
        for (uint32_t i = READS - WRITES; i < READS; i++) {
            uint32_t word = (first + i * STRIDE) % WORDS_COUNT;
            STORE(words[word], LOAD(words[word]) + 1 + (sum & 0));
        }
    END
}

static void read16_write4_operate(uint64_t *random)
{
    write_words(random_below(random, WORDS_COUNT));
}

static bool read16_write4_adds_up(uint64_t operations)
{
    uint64_t sum = 0;
    for (unsigned word = 0; word < WORDS_COUNT; word++)
        sum += words[word];
    return sum == WRITES * operations;
}

const struct workload read16_write4 = {"read16-write4", words_prepare, read16_write4_operate, read16_write4_adds_up};

/* Transfers, and sometimes a sum of all accounts. */
#define ACCOUNTS_COUNT 256
#define BALANCE 1000
#define TRANSFERS_PER_LOOK 127

static long accounts[ACCOUNTS_COUNT];

static void bank_prepare(void)
{
    for (unsigned account = 0; account < ACCOUNTS_COUNT; account++)
        accounts[account] = BALANCE;
}

static NOINLINE void transfer(uint32_t from, uint32_t to, long amount)
{
    TRANSACTION
        long balance = LOAD(accounts[from]);
        if (balance >= amount) {
            STORE(accounts[from], balance - amount);
            STORE(accounts[to], LOAD(accounts[to]) + amount);
        }
    END
}

static NOINLINE long sum_accounts(void)
{
    long sum;
    READ_ONLY_TRANSACTION
        sum = 0;
        for (unsigned account = 0; account < ACCOUNTS_COUNT; account++)
            sum += LOAD(accounts[account]);
    END
    return sum;
}

static void bank_operate(uint64_t *random)
{
    if (random_below(random, TRANSFERS_PER_LOOK + 1))
        transfer(random_below(random, ACCOUNTS_COUNT), random_below(random, ACCOUNTS_COUNT), random_below(random, 100));
    else if (sum_accounts() != ACCOUNTS_COUNT * BALANCE)
        abort();
}

static bool bank_adds_up(uint64_t operations)
{
    (void)operations;
    return sum_accounts() == ACCOUNTS_COUNT * BALANCE;
}

const struct workload bank = {"bank", bank_prepare, bank_operate, bank_adds_up};

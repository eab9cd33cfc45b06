/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Contended transactions of every kind: no transaction may see an inconsistent state, and at the end all sums agree. */
#include "check.h"

#include "../random.h"

#define ACCOUNTS_COUNT 64
#define BALANCE 1000
#define KEYS 128

static long accounts[ACCOUNTS_COUNT];
/* The number of transfers, by transactions that may be cancelled, and by others. */
static long transfers;
static unsigned long irrevocable_transfers, irrevocable_calls;
static unsigned torn;

struct node {
    long key;
    struct node *next;
};
/* A sorted list of keys, and its length. */
static struct node *head;
static long length;

/*
 * Moves an amount, and is taken back where the account would be overdrawn. The inner transaction's half is taken back
 * sometimes.
 */
static NOINLINE bool transfer(unsigned from, unsigned to, long amount, bool cancel_fee)
{
    bool done = false;
    __transaction_atomic
    {
        accounts[from] -= amount;
        accounts[to] += amount;
        __transaction_atomic
        {
            accounts[to] -= 1;
            accounts[from] += 1;
            if (cancel_fee)
                __transaction_cancel;
        }
        transfers++;
        if (accounts[from] < 0)
            __transaction_cancel;
        done = true;
    }
    return done;
}

static NOINLINE long sum_all(void)
{
    long sum = 0;
    __transaction_atomic
    {
        for (unsigned account = 0; account < ACCOUNTS_COUNT; account++)
            sum += accounts[account];
    }
    return sum;
}

static NOINLINE __attribute__((transaction_unsafe)) void count_plainly(void)
{
    __asm__ volatile("" : : : "memory");
    /* Irrevocable transactions run alone. */
    irrevocable_calls++;
}

static NOINLINE void transfer_irrevocably(unsigned from, unsigned to)
{
    __transaction_relaxed
    {
        accounts[from] -= 1;
        count_plainly();
        accounts[to] += 1;
        irrevocable_transfers++;
    }
}

static NOINLINE void insert(long key)
{
    __transaction_atomic
    {
        struct node **place = &head;
        while (*place && (*place)->key < key)
            place = &(*place)->next;
        if (!*place || (*place)->key != key) {
            struct node *node = malloc(sizeof *node);
            node->key = key;
            node->next = *place;
            *place = node;
            length++;
        }
    }
}

static NOINLINE void remove_key(long key)
{
    __transaction_atomic
    {
        struct node **place = &head;
        while (*place && (*place)->key < key)
            place = &(*place)->next;
        struct node *node = *place;
        if (node && node->key == key) {
            *place = node->next;
            length--;
            /* No transaction may read this any more. */
            node->key = -1;
            free(node);
        }
    }
}

/* Whether the list is sorted and has the recorded length. */
static NOINLINE bool list_adds_up(void)
{
    bool good = true;
    __transaction_atomic
    {
        long count = 0, last = -1;
        for (struct node *node = head; node; node = node->next) {
            if (node->key <= last)
                good = false;
            last = node->key;
            count++;
        }
        if (count != length)
            good = false;
    }
    return good;
}

static void note_torn(void)
{
    __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
}

void torture(unsigned thread, unsigned threads, unsigned turns, uint64_t seed)
{
    uint64_t random = random_state(seed, thread);
    for (unsigned turn = 0; turn < turns; turn++) {
        unsigned from = random_below(&random, ACCOUNTS_COUNT);
        unsigned to = random_below(&random, ACCOUNTS_COUNT);
        long key = random_below(&random, KEYS);
        switch (random_below(&random, 16)) {
        default:
            transfer(from, to, random_below(&random, 200), turn & 1);
            break;
        case 0:
        case 1:
            if (sum_all() != ACCOUNTS_COUNT * BALANCE)
                note_torn();
            break;
        case 2:
        case 3:
        case 4:
            insert(key);
            break;
        case 5:
        case 6:
        case 7:
            remove_key(key);
            break;
        case 8:
            if (!list_adds_up())
                note_torn();
            break;
        case 9:
            if (turn % (4 * threads) == 0)
                transfer_irrevocably(from, to);
        }
    }
}

void prepare_torture(void)
{
    for (unsigned account = 0; account < ACCOUNTS_COUNT; account++)
        accounts[account] = BALANCE;
    transfers = 0;
    irrevocable_transfers = irrevocable_calls = 0;
    torn = 0;
}

void check_torture(unsigned threads, unsigned turns)
{
    CHECK(torn == 0);
    CHECK(sum_all() == ACCOUNTS_COUNT * BALANCE);
    CHECK(list_adds_up());
    CHECK(irrevocable_calls == irrevocable_transfers);
    CHECK(transfers > 0 && transfers < (long)threads * turns);
    for (long key = 0; key < KEYS; key++)
        remove_key(key);
    CHECK(!head && length == 0);
}

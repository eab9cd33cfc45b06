/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactions of threads and handlers on the same words. A thread also interrupts itself between two stores of a
 * transaction, and then the handler needs records that the transaction owns.
 */
#include <linux/gfp.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "test.h"

#include <tm/tm.h>

/* In every test, one piece of work in this many. */
#define INTERRUPT_ITSELF_EVERY 8

static bool interrupts_itself(struct worker *worker, enum place place)
{
    return place == IN_THREAD && random_below(&worker->random[place], INTERRUPT_ITSELF_EVERY) == 0;
}

/* The flags of a piece of work for tm_start; a handler's transactions are obstinate with any flags. */
static unsigned random_flags(struct worker *worker, enum place place)
{
    switch (random_below(&worker->random[place], 32)) {
    case 0:
        return place == IN_THREAD ? TM_SERIAL : 0;
    case 1:
        return TM_OBSTINATE;
    case 2:
    case 3:
        return TM_PESSIMISTIC;
    default:
        return 0;
    }
}

/* A transaction without memory is not counted, and must not have changed anything. */
static void note_answer(enum place place, unsigned answer, unsigned index)
{
    if (answer == TM_STARTED)
        note(place, index);
    else
        note_disorder(answer != TM_EXHAUSTED);
}

/* Counters: a transaction changes a pair as a whole, cancels a change, or looks at it. */
static struct pair counters;

enum { COUNTED, COUNTER_NOTES };

static bool counters_prepare(void)
{
    memset(&counters, 0, sizeof(counters));
    return true;
}

static __attribute__((__noinline__)) unsigned count(struct worker *worker, unsigned flags, bool interrupted,
                                                    bool cancelled)
{
    unsigned answer = tm_start(flags);

    if (answer == TM_STARTED) {
        u64 one = tm_load64(&counters.one);

        tm_store64(&counters.one, one + 1);
        if (interrupted)
            irq_work_queue(&worker->own);
        linger();
        note_disorder(tm_load64(&counters.two) != one);
        tm_store64(&counters.two, one + 1);
        if (cancelled)
            tm_cancel();
        tm_commit();
    }
    return answer;
}

static __attribute__((__noinline__)) void look(void)
{
    if (tm_start(TM_READ_ONLY) == TM_STARTED) {
        u64 one = tm_load64(&counters.one);

        linger();
        note_disorder(tm_load64(&counters.two) != one);
        tm_commit();
    }
}

static void counters_work(struct worker *worker, enum place place)
{
    unsigned flags = random_flags(worker, place);
    u32 choice = random_below(&worker->random[place], 8);

    if (choice == 0)
        look();
    else if (choice == 1 && !(flags & TM_SERIAL))
        note_disorder(count(worker, flags, interrupts_itself(worker, place), true) == TM_STARTED);
    else
        note_answer(place, count(worker, flags, interrupts_itself(worker, place), false), COUNTED);
}

static bool counters_are_right(void)
{
    return pair_is_right(&counters, "counters", noted(COUNTED));
}

/* A bank: money moves between accounts, and a transaction that adds up all accounts finds a constant sum. */
#define ACCOUNTS 64
#define OPENING_BALANCE 1000

static u64 accounts[ACCOUNTS];

static bool bank_prepare(void)
{
    unsigned account;

    for (account = 0; account < ACCOUNTS; account++)
        accounts[account] = OPENING_BALANCE;
    return true;
}

static __attribute__((__noinline__)) void transfer(struct worker *worker, u32 from, u32 to, u32 amount, unsigned flags,
                                                   bool interrupted)
{
    if (tm_start(flags) == TM_STARTED) {
        u64 balance = tm_load64(&accounts[from]);

        if (balance >= amount) {
            tm_store64(&accounts[from], balance - amount);
            if (interrupted)
                irq_work_queue(&worker->own);
            /* Nested: it commits with the outer one. */
            if (tm_start(0) == TM_STARTED) {
                tm_store64(&accounts[to], tm_load64(&accounts[to]) + amount);
                tm_commit();
            }
        }
        tm_commit();
    }
}

static __attribute__((__noinline__)) void audit(unsigned flags)
{
    if (tm_start(flags) == TM_STARTED) {
        u64 sum = 0;
        unsigned account;

        for (account = 0; account < ACCOUNTS; account++)
            sum += tm_load64(&accounts[account]);
        note_disorder(sum != ACCOUNTS * OPENING_BALANCE);
        tm_commit();
    }
}

static void bank_work(struct worker *worker, enum place place)
{
    u64 *random = &worker->random[place];

    if (random_below(random, 8) == 0)
        audit(random_below(random, 2) ? TM_READ_ONLY : 0);
    else
        transfer(worker, random_below(random, ACCOUNTS), random_below(random, ACCOUNTS), random_below(random, 10),
                 random_flags(worker, place), interrupts_itself(worker, place));
}

static bool bank_is_right(void)
{
    u64 sum = 0;
    unsigned account;

    for (account = 0; account < ACCOUNTS; account++)
        sum += accounts[account];
    if (sum != ACCOUNTS * OPENING_BALANCE)
        pr_err("accounts: %llu instead of %u\n", sum, ACCOUNTS * OPENING_BALANCE);
    return sum == ACCOUNTS * OPENING_BALANCE;
}

/*
 * A sorted list whose nodes transactions allocate and free. Freed memory is soon in use again, so a transaction that
 * still reads it is detected.
 */
#define KEYS 64

struct node {
    struct node *next;
    u64 key;
};

static struct node *list;

enum { INSERTED, REMOVED };

static bool list_prepare(void)
{
    list = NULL;
    return true;
}

/* In a transaction: returns the link to the first node whose key is not smaller. */
static struct node **find(u64 key, u64 *found)
{
    struct node **link = &list;
    struct node *node;
    u64 last = 0;

    while ((node = tm_load_pointer(link))) {
        *found = tm_load64(&node->key);
        note_disorder(*found <= last || *found > KEYS);
        last = *found;
        if (*found >= key)
            return link;
        link = &node->next;
    }
    *found = 0;
    return link;
}

static __attribute__((__noinline__)) bool insert(struct worker *worker, u64 key, unsigned flags, bool interrupted)
{
    bool volatile has_inserted = false;

    if (tm_start(flags) == TM_STARTED) {
        u64 found;
        struct node **link = find(key, &found);
        struct node *node;

        has_inserted = false;
        if (found != key && (node = tm_alloc(sizeof(*node), GFP_ATOMIC | __GFP_NOWARN))) {
            /* No other context sees the node yet. */
            node->key = key;
            node->next = tm_load_pointer(link);
            tm_store_pointer(link, node);
            if (interrupted)
                irq_work_queue(&worker->own);
            has_inserted = true;
        }
        tm_commit();
    } else {
        has_inserted = false;
    }
    return has_inserted;
}

static __attribute__((__noinline__)) bool remove(struct worker *worker, u64 key, unsigned flags, bool interrupted)
{
    bool volatile has_removed = false;

    if (tm_start(flags) == TM_STARTED) {
        u64 found;
        struct node **link = find(key, &found);

        has_removed = found == key;
        if (has_removed) {
            struct node *node = tm_load_pointer(link);

            tm_store_pointer(link, tm_load_pointer(&node->next));
            if (interrupted)
                irq_work_queue(&worker->own);
            tm_free(node);
        }
        tm_commit();
    } else {
        has_removed = false;
    }
    return has_removed;
}

static void list_work(struct worker *worker, enum place place)
{
    u64 key = 1 + random_below(&worker->random[place], KEYS);
    unsigned flags = random_flags(worker, place);
    bool interrupted = interrupts_itself(worker, place);

    if (random_below(&worker->random[place], 2)) {
        if (insert(worker, key, flags, interrupted))
            note(place, INSERTED);
    } else if (remove(worker, key, flags, interrupted)) {
        note(place, REMOVED);
    }
}

static bool list_is_right(void)
{
    u64 last = 0, count = 0, expected = noted(INSERTED) - noted(REMOVED);
    struct node *node;

    while ((node = list)) {
        note_disorder(node->key <= last);
        last = node->key;
        count++;
        list = node->next;
        tm_free(node);
    }
    if (count != expected)
        pr_err("list: %llu nodes instead of %llu\n", count, expected);
    return count == expected;
}

/* Locked sections that exclude transactions, like Bressler's TM_LOCK and TM_WEAK_LOCK. Handlers do not use them. */
static struct pair section;
static u64 section_lock;

enum { CHANGED };

static bool sections_prepare(void)
{
    memset(&section, 0, sizeof(section));
    section_lock = 0;
    return true;
}

static __attribute__((__noinline__)) void change_locked(void)
{
    tm_lock(&section_lock);
    note_disorder(section.one != section.two);
    section.one++;
    linger();
    section.two++;
    tm_unlock(&section_lock);
}

static __attribute__((__noinline__)) unsigned change_transactional(void)
{
    unsigned answer = tm_start(0);

    if (answer == TM_STARTED) {
        u64 one;

        tm_weak_lock(&section_lock);
        one = tm_load64(&section.one);
        note_disorder(tm_load64(&section.two) != one);
        tm_store64(&section.one, one + 1);
        tm_store64(&section.two, one + 1);
        tm_commit();
    }
    return answer;
}

static void sections_work(struct worker *worker, enum place place)
{
    if (place != IN_THREAD)
        return;
    if (random_below(&worker->random[place], 4)) {
        note_answer(place, change_transactional(), CHANGED);
    } else {
        change_locked();
        note(place, CHANGED);
    }
}

static bool sections_are_right(void)
{
    return pair_is_right(&section, "sections", noted(CHANGED));
}

const struct test transaction_tests[] = {
    {"counters", counters_prepare, counters_work, counters_are_right},
    {"bank", bank_prepare, bank_work, bank_is_right},
    {"list", list_prepare, list_work, list_is_right},
    {"sections", sections_prepare, sections_work, sections_are_right},
};
const unsigned transaction_tests_count = ARRAY_SIZE(transaction_tests);

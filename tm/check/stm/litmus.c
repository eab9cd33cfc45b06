/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Litmus programs, after Menon et al., "Practical Weak-Atomicity Semantics for Java STM", SPAA 2008, and Guerraoui,
 * Kapalka, "On the Correctness of Transactional Memory", PPoPP 2008: no outcome may appear that one global lock around
 * every transaction would forbid. Thread 0 has one role, thread 1 another if there are three roles, and all others the
 * last.
 */
#include "validate.h"

/* The turns of plain accesses to private memory. */
#define PRIVATE_TURNS_MAX 200u

static uint64_t shared[8][8] TM_ALIGNED_TO_LINE;
#define FLAG shared[0][0]
#define X shared[1][0]
#define Y shared[2][0]
#define Z shared[3][0]

/* Whether thread 0 has finished. */
static bool has_ended;

static void begin_litmus(void (*body)(unsigned thread))
{
    __builtin_memset(shared, 0, sizeof shared);
    has_ended = false;
    validate_run(body);
}

static void end_litmus(void)
{
    __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
}

static bool is_over(void)
{
    return __atomic_load_n(&has_ended, __ATOMIC_ACQUIRE);
}

static VALIDATE_NOINLINE void store_one(uint64_t *address, uint64_t value, unsigned flags)
{
    VALIDATE_START(flags);
    tm_store(address, value);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE uint64_t load_one(const uint64_t *address, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t value = tm_load(address);
    VALIDATE_COMMIT();
    return value;
}

static void dawdle(uint64_t *random)
{
    validate_wait(random_below(random, PRIVATE_TURNS_MAX));
}

/*
 * Privatization and publication. X and Y belong to transactions while FLAG is 0, and to thread 0 while it is 1.
 */
static VALIDATE_NOINLINE void use_if_public(uint32_t turns, bool stores, bool gives_up, unsigned flags)
{
    switch (tm_start(flags)) {
    case TM_STARTED:
        if (tm_load(&FLAG) == 0) {
            uint64_t value = tm_load(&X);
            validate_wait(turns);
            if (stores)
                tm_store(&X, value + 1);
            VALIDATE(tm_load(&Y) == value, "a transaction saw private memory, or half of another transaction");
            if (stores)
                tm_store(&Y, value + 1);
            validate_wait(turns);
        }
        if (gives_up)
            tm_cancel();
        VALIDATE_COMMIT();
        break;
    case TM_CANCELLED:
        break;
    default:
        validate_failed("a transaction did not begin");
    }
}

static void use_plainly(uint64_t *random, uint64_t number)
{
    volatile uint64_t *x = &X, *y = &Y;

    VALIDATE(*x == *y, "private memory is half of a transaction's");
    *x = number;
    dawdle(random);
    *y = ~number;
    dawdle(random);
    VALIDATE(*x == number && *y == ~number, "a transaction wrote to private memory");
    *y = number;
}

static void privatize_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    if (thread) {
        while (!is_over()) {
            uint32_t kind = random_below(&random, 4);

            use_if_public(random_below(&random, PRIVATE_TURNS_MAX), kind, kind == 1, validate_flags_cancellable(&random));
        }
        return;
    }
    for (uint64_t operation = 0; operation < validate_share() / 100; operation++) {
        store_one(&FLAG, 1, validate_flags(&random) & ~TM_NOT_PRIVATIZING);
        use_plainly(&random, operation * 1000);
        store_one(&FLAG, 0, validate_flags(&random));
        dawdle(&random);
    }
    end_litmus();
}

static void run_privatize(void)
{
    begin_litmus(privatize_body);
}

/*
 * By proxy: thread 0 privatizes X and Y, and hands them to thread 1, whose transaction takes them. FLAG: 0 public, 1
 * handed over, 2 owned by thread 1.
 */
static VALIDATE_NOINLINE bool exchange(uint64_t *address, uint64_t old, uint64_t value, unsigned flags)
{
    VALIDATE_START(flags);
    bool is_old = tm_load(address) == old;
    if (is_old)
        tm_store(address, value);
    VALIDATE_COMMIT();
    return is_old;
}

static void proxy_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);
    uint64_t number = 0;
    unsigned turns = 0;

    if (thread == 0) {
        for (uint64_t operation = 0; operation < validate_share() / 100; operation++) {
            while (!exchange(&FLAG, 0, 1, 0) && !is_over())
                tm_port_wait(&turns);
            dawdle(&random);
        }
        end_litmus();
        return;
    }
    while (!is_over()) {
        if (thread == 1) {
            if (exchange(&FLAG, 1, 2, 0)) {
                use_plainly(&random, number += 1000);
                store_one(&FLAG, 0, 0);
            } else {
                tm_port_wait(&turns);
            }
        } else {
            use_if_public(random_below(&random, PRIVATE_TURNS_MAX), true, random_below(&random, 2), 0);
        }
    }
}

static void run_proxy(void)
{
    /* Thread 1 may be in the middle when thread 0 ends; that is allowed. */
    begin_litmus(proxy_body);
}

/*
 * Publication: thread 0 fills a slot plainly and publishes it in a transaction. Of two slots it fills the one that no
 * transaction can find any more, because the commit before waited for the transactions that had found it.
 */
static VALIDATE_NOINLINE void look_at_slot(unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t number = tm_load(&FLAG);
    VALIDATE(tm_load(&shared[1 + number % 2][0]) == number, "a transaction saw what was not published yet, or not any more");
    VALIDATE(tm_load(&shared[3 + number % 2][0]) == ~number || !number, "a transaction saw half of what was published");
    VALIDATE_COMMIT();
}

static void publish_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    if (thread) {
        while (!is_over())
            look_at_slot(validate_flags(&random));
        return;
    }
    for (uint64_t number = 1; number < validate_share() / 20; number++) {
        *(volatile uint64_t *)&shared[1 + number % 2][0] = number;
        *(volatile uint64_t *)&shared[3 + number % 2][0] = ~number;
        store_one(&FLAG, number, validate_flags(&random) & ~TM_NOT_PRIVATIZING);
    }
    end_litmus();
}

static void run_publish(void)
{
    begin_litmus(publish_body);
}

/*
 * Zombies: while X <= Y a loop over them ends, and the table is not left. A transaction that sees an inconsistent state
 * loops without end, or faults.
 */
#define TABLE_SIZE 64u

static uint64_t *table;

static VALIDATE_NOINLINE void run_along(unsigned flags)
{
    static uint64_t nothing[TABLE_SIZE];

    VALIDATE_START(flags);
    uint64_t begin = tm_load(&X), steps = 0;
    uint64_t *places = table ? table : nothing;
    for (uint64_t at = begin; at != tm_load(&Y); at++) {
        VALIDATE(steps++ < TABLE_SIZE, "a transaction runs away");
        tm_load(&places[at % TABLE_SIZE]);
    }
    VALIDATE(tm_load(&Z) == steps, "a transaction saw words of different times");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void move_along(uint64_t begin, uint64_t length, bool upwards, unsigned flags)
{
    VALIDATE_START(flags);
    if (upwards) {
        tm_store(&Y, begin + length);
        tm_store(&X, begin);
    } else {
        tm_store(&X, begin);
        tm_store(&Y, begin + length);
    }
    tm_store(&Z, length);
    VALIDATE_COMMIT();
}

static void zombie_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    if (thread) {
        while (!is_over())
            run_along(validate_flags(&random));
        return;
    }
    for (uint64_t operation = 0; operation < validate_share(); operation++)
        move_along(random_below(&random, 1u << 20), random_below(&random, TABLE_SIZE), random_below(&random, 2),
                   validate_flags(&random));
    end_litmus();
}

static void run_zombie(void)
{
    table = NULL;
    begin_litmus(zombie_body);
}

/*
 * Write skew: of two transactions that both read X and Y and store one of them, the second sees the first.
 */
static VALIDATE_NOINLINE void set_if_none(uint64_t *mine, uint64_t *other, uint32_t turns, unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t theirs = tm_load(other), own = tm_load(mine);
    VALIDATE(!(own && theirs), "two transactions each did what the other forbids");
    validate_wait(turns);
    tm_store(mine, theirs ? 0 : !own);
    VALIDATE_COMMIT();
}

static void skew_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share(); operation++)
        set_if_none(thread % 2 ? &X : &Y, thread % 2 ? &Y : &X, random_below(&random, PRIVATE_TURNS_MAX),
                    validate_flags(&random));
}

static void run_write_skew(void)
{
    begin_litmus(skew_body);
}

/*
 * Stores alone: two transactions store to X and Y without having read them; the same transaction is the last for both.
 */
static VALIDATE_NOINLINE void store_both(uint64_t value, bool backward, unsigned flags)
{
    VALIDATE_START(flags);
    tm_store(backward ? &Y : &X, value);
    tm_store(backward ? &X : &Y, value);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void load_both(unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t value = tm_load(&X);
    VALIDATE(tm_load(&Y) == value, "of two transactions that store only each is the last once");
    VALIDATE_COMMIT();
}

static void stores_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share(); operation++) {
        unsigned flags = validate_flags(&random);

        if (random_below(&random, 2))
            load_both(flags);
        else
            store_both(random, thread % 2, flags);
    }
}

static void run_stores(void)
{
    begin_litmus(stores_body);
}

/*
 * Causes come before effects, also between transactions of one read, which take no snapshot: thread 0 stores X, thread
 * 1 stores to Y the value that it has read from X, and a thread that has read Y reads no older X.
 */
static VALIDATE_NOINLINE void load_effect_and_cause(unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t effect = tm_load(&Y);
    VALIDATE(tm_load(&X) >= effect, "a transaction saw an effect without its cause");
    VALIDATE_COMMIT();
}

static void causality_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);
    uint64_t effect, last = 0;

    if (thread == 0) {
        for (uint64_t number = 1; number < validate_share(); number++)
            store_one(&X, number, validate_flags(&random));
        end_litmus();
        return;
    }
    while (!is_over()) {
        if (thread == 1) {
            store_one(&Y, load_one(&X, validate_flags(&random)), validate_flags(&random));
            continue;
        }
        effect = load_one(&Y, validate_flags(&random));
        VALIDATE(effect >= last, "a transaction of one read went back in time");
        last = effect;
        VALIDATE(load_one(&X, validate_flags(&random)) >= effect, "transactions of one read saw an effect without its cause");
        load_effect_and_cause(validate_flags(&random));
    }
}

static void run_causality(void)
{
    unsigned threads = validate_threads;

    if (validate_threads < 3 && host_threads_max() >= 3)
        validate_threads = 3;
    begin_litmus(causality_body);
    validate_threads = threads;
}

static void run_proxy_of_three(void)
{
    unsigned threads = validate_threads;

    if (validate_threads < 3 && host_threads_max() >= 3)
        validate_threads = 3;
    run_proxy();
    validate_threads = threads;
}

const struct validate_test validate_litmus[] = {
    {"privatize", run_privatize},
    {"proxy", run_proxy_of_three},
    {"publish", run_publish},
    {"zombie", run_zombie},
    {"write_skew", run_write_skew},
    {"stores", run_stores},
    {"causality", run_causality},
    {0},
};

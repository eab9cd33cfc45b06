/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Nested transactions, cancels, requested restarts, stores to private memory, and misuse. */
#include "validate.h"

#define HERE_TURNS 5000u

/* Words that are equal in every valid state. Cancelled transactions make them differ. */
static uint64_t equal[3] TM_ALIGNED_TO_LINE;
static uint64_t equal_counts[HOST_THREADS_MAX];
static struct {
    uint64_t words[4];
    uint8_t bytes[16];
} TM_ALIGNED_TO_LINE own[HOST_THREADS_MAX];

static void add_to_equal(uint64_t amount)
{
    for (unsigned word = 0; word < 3; word++)
        tm_store(&equal[word], tm_load(&equal[word]) + amount);
}

static void check_equal(const char *what)
{
    uint64_t first = tm_load(&equal[0]);

    VALIDATE(tm_load(&equal[2]) == first && tm_load(&equal[1]) == first, what);
}

static VALIDATE_NOINLINE void give_up(unsigned thread, uint64_t number, unsigned flags)
{
    switch (tm_start(flags)) {
    case TM_STARTED:
        check_equal("a transaction saw what was given up");
        tm_store(&equal[number % 3], number);
        tm_store8((uint8_t *)&equal[(number + 1) % 3] + 3, (uint8_t)number);
        tm_store_local(&own[thread].words[0], number);
        tm_store_local16((uint16_t *)(void *)&own[thread].bytes[3], (uint16_t)number);
        VALIDATE(tm_load(&equal[number % 3]) == number, "a transaction did not see its own store");
        tm_cancel();
        validate_failed("tm_cancel returned");
    case TM_CANCELLED:
        break;
    default:
        validate_failed("tm_start answered something else than TM_STARTED and TM_CANCELLED");
    }
    VALIDATE(!tm_in_transaction(), "a transaction is open after it was cancelled");
    VALIDATE(own[thread].words[0] == 0 && own[thread].bytes[3] == 0 && own[thread].bytes[4] == 0,
             "a cancel did not bring a local store back");
}

static VALIDATE_NOINLINE void give_inner_up(unsigned thread, uint64_t number)
{
    switch (tm_start(0)) {
    case TM_STARTED:
        tm_store(&equal[number % 3], number);
        tm_store8((uint8_t *)&equal[(number + 1) % 3] + 3, (uint8_t)number);
        tm_store_local(&own[thread].words[1], number);
        VALIDATE(tm_alloc(100, 0), "no memory");
        tm_cancel();
        validate_failed("tm_cancel returned");
    case TM_CANCELLED:
        VALIDATE(tm_in_transaction(), "the outer transaction is gone after the inner one was cancelled");
        return;
    default:
        validate_failed("the inner tm_start answered something else than TM_STARTED and TM_CANCELLED");
    }
}

static VALIDATE_NOINLINE void commit_inner(void)
{
    VALIDATE_START(0);
    add_to_equal(1);
    VALIDATE_COMMIT();
}

/* 2 more in each word. */
static VALIDATE_NOINLINE void nest(unsigned thread, uint64_t number, unsigned flags)
{
    VALIDATE_START(flags);
    check_equal("an outer transaction saw what was given up");
    uint64_t before = tm_load(&equal[0]);
    tm_store_local(&own[thread].words[1], before);
    add_to_equal(1);
    give_inner_up(thread, number);
    check_equal("an inner cancel did not bring the outer transaction's stores back");
    VALIDATE(tm_load(&equal[1]) == before + 1, "an inner cancel brought back something else than what there was");
    VALIDATE(own[thread].words[1] == before, "an inner cancel did not bring a local store back");
    commit_inner();
    give_inner_up(thread, ~number);
    check_equal("an inner commit and an inner cancel together went wrong");
    VALIDATE(tm_load(&equal[1]) == before + 2, "an inner commit is lost");
    tm_store_local(&own[thread].words[1], 0);
    VALIDATE_COMMIT();
}

/* The effects of the inner transaction are undone with those of the outer one. */
static VALIDATE_NOINLINE void give_all_up(unsigned thread, uint64_t number, unsigned flags)
{
    switch (tm_start(flags)) {
    case TM_STARTED:
        check_equal("a transaction saw what was given up");
        commit_inner();
        give_inner_up(thread, number);
        commit_inner();
        tm_cancel();
        validate_failed("tm_cancel returned");
    case TM_CANCELLED:
        return;
    default:
        validate_failed("tm_start answered something else than TM_STARTED and TM_CANCELLED");
    }
}

/* Restarts until it has been run three times. */
static VALIDATE_NOINLINE void restart(unsigned thread, unsigned flags)
{
    volatile unsigned attempts = 0;

    VALIDATE_START(flags);
    attempts++;
    check_equal("a transaction saw what was taken back at a restart");
    VALIDATE(own[thread].words[2] == 0, "a restart did not bring a local store back");
    tm_store_local(&own[thread].words[2], 7);
    add_to_equal(1);
    if (attempts < 3) {
        tm_store(&equal[0], 0);
        tm_abort();
    }
    tm_store_local(&own[thread].words[2], 0);
    VALIDATE_COMMIT();
}

static void nesting_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share() / 2; operation++) {
        uint64_t number = (uint64_t)random_below(&random, 1u << 31) << 20 | 0x55501;
        unsigned flags = validate_flags_cancellable(&random);

        switch (random_below(&random, 4)) {
        case 0:
            give_up(thread, number, flags);
            break;
        case 1:
            nest(thread, number, flags);
            equal_counts[thread] += 2;
            break;
        case 2:
            give_all_up(thread, number, flags);
            break;
        default:
            restart(thread, flags);
            equal_counts[thread]++;
        }
    }
}

static void check_nesting(unsigned threads)
{
    uint64_t sum = 0;

    for (unsigned thread = 0; thread < threads; thread++)
        sum += equal_counts[thread];
    VALIDATE(equal[0] == sum && equal[1] == sum && equal[2] == sum, "what was committed, or cancelled, does not add up");
}

static void prepare_nesting(void)
{
    __builtin_memset(equal, 0, sizeof equal);
    __builtin_memset(equal_counts, 0, sizeof equal_counts);
    __builtin_memset(own, 0, sizeof own);
}

static void run_nesting(void)
{
    prepare_nesting();
    validate_run(nesting_body);
    check_nesting(validate_threads);
}

/* The same for a single thread: transactions may store directly. */
static void run_nesting_of_one(void)
{
    unsigned threads = validate_threads;

    validate_threads = 1;
    prepare_nesting();
    validate_run(nesting_body);
    check_nesting(1);
    validate_threads = threads;
}

/* Nests to the deepest level; one more is refused, and has no effect. */
static VALIDATE_NOINLINE void descend(unsigned depth)
{
    unsigned answer = tm_start(0);

    if (depth == TM_DEPTH_MAX) {
        VALIDATE(answer == TM_TOO_DEEP, "tm_start went deeper than TM_DEPTH_MAX");
        return;
    }
    VALIDATE(answer == TM_STARTED, "tm_start answered something else than TM_STARTED");
    tm_store(&equal[0], tm_load(&equal[0]) + 1);
    descend(depth + 1);
    VALIDATE_COMMIT();
}

static void depth_body(unsigned thread)
{
    (void)thread;
    for (unsigned turn = 0; turn < 20; turn++) {
        descend(0);
        VALIDATE(!tm_in_transaction(), "a transaction is open after its commit");
    }
}

static void run_depth(void)
{
    prepare_nesting();
    validate_run(depth_body);
    VALIDATE(equal[0] == 20ul * TM_DEPTH_MAX * validate_threads, "deeply nested transactions lost increments");
}

/* Calls without a transaction. */
static void outside_body(unsigned thread)
{
    uint8_t bytes[16] = {0};
    uint64_t *word = (uint64_t *)(void *)&bytes[3];
    void *memory = tm_alloc(10, 0);

    (void)thread;
    VALIDATE(!tm_in_transaction(), "a transaction is open that nobody began");
    VALIDATE(tm_commit() == TM_NO_TRANSACTION, "a commit without a transaction");
    tm_abort();
    tm_cancel();
    tm_become_irrevocable();
    VALIDATE(!tm_in_transaction() && tm_commit() == TM_NO_TRANSACTION, "misuse opened a transaction");
    tm_store64(word, 0x1122334455667788);
    VALIDATE(tm_load64(word) == 0x1122334455667788 && bytes[3] == 0x88 && bytes[10] == 0x11 && !bytes[2] && !bytes[11],
             "plain access by bytes");
    tm_store_local32((uint32_t *)(void *)&bytes[5], 1);
    VALIDATE(tm_load8(&bytes[5]) == 1 && tm_load16((uint16_t *)(void *)&bytes[6]) == 0, "plain local store");
    VALIDATE(memory, "no memory");
    tm_free(memory);
    tm_free(NULL);
}

static void run_outside(void)
{
    validate_run(outside_body);
}

/* tm_restart_here: the function that began the transaction has returned, and each answer comes from the last call. */
static VALIDATE_NOINLINE void begin_and_return(void)
{
    VALIDATE_START(0);
}

static VALIDATE_NOINLINE unsigned add_here(uint64_t *word, uint64_t amount)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_store(word, tm_load(word) + amount);
    return answer;
}

static VALIDATE_NOINLINE unsigned commit_here(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        VALIDATE_COMMIT();
    return answer;
}

static VALIDATE_NOINLINE unsigned abort_here(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_abort();
    return answer;
}

static VALIDATE_NOINLINE unsigned cancel_here(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_cancel();
    return answer;
}

/* Adds 2 to all, in spite of a restart on purpose, restarts of conflicts, and an inner transaction that is cancelled. */
static void add_without_jumps(uint64_t number)
{
    bool is_restarted = number % 4 != 0;

    begin_and_return();
    for (;;) {
        unsigned answer = add_here(&equal[0], 2);
        for (unsigned word = 1; word < 3 && answer == TM_STARTED; word++)
            answer = add_here(&equal[word], 2);
        if (answer == TM_STARTED && !is_restarted) {
            is_restarted = true;
            VALIDATE(abort_here() == TM_RESTARTED, "tm_restart_here did not answer to a restart");
            continue;
        }
        if (answer == TM_STARTED) {
            begin_and_return();
            answer = add_here(&equal[1], number);
            if (answer == TM_STARTED)
                VALIDATE(cancel_here() == TM_CANCELLED, "tm_restart_here did not answer to a cancel");
        }
        if (answer == TM_STARTED && commit_here() == TM_STARTED)
            return;
        VALIDATE(tm_in_transaction(), "a restarted transaction is not open");
    }
}

static void here_body(unsigned thread)
{
    for (uint64_t turn = 0; turn < HERE_TURNS; turn++)
        add_without_jumps(turn + thread);
}

static void run_here(void)
{
    for (unsigned word = 0; word < 3; word++)
        equal[word] = 0;
    VALIDATE(tm_restart_here() == TM_STARTED, "tm_restart_here without a transaction");
    validate_run(here_body);
    for (unsigned word = 0; word < 3; word++)
        VALIDATE(equal[word] == 2 * HERE_TURNS * validate_threads, "an addition is lost");
}

static VALIDATE_NOINLINE void cancel_irrevocable(void)
{
    VALIDATE_START(TM_SERIAL);
    tm_cancel();
}

static VALIDATE_NOINLINE void abort_irrevocable(void)
{
    VALIDATE_START(0);
    tm_become_irrevocable();
    tm_abort();
}

static void run_misuse(void)
{
    validate_dies(cancel_irrevocable, "an irrevocable transaction was cancelled");
    validate_dies(abort_irrevocable, "an irrevocable transaction was aborted");
}

const struct validate_test validate_nesting[] = {
    {"nesting", run_nesting},
    {"nesting_of_one", run_nesting_of_one},
    {"depth", run_depth},
    {"outside", run_outside},
    {"restart_here", run_here},
    {"misuse", run_misuse},
    {0},
};

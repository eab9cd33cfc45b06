/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactions to step through, the transactions that interrupt them, and the conditions that both must fulfil
 * afterwards.
 */
#include "../../stm/transaction.h"
#include "stepping.h"

#define WORDS STEPPING_WORDS
#define INTERRUPT_AMOUNT 100

/* The first two share a block. */
static uint64_t places[WORDS][8] TM_ALIGNED_TO_LINE;

static uint64_t *word(unsigned number)
{
    return number < 2 ? &places[0][number] : &places[number][0];
}

/* A node whose address a transaction finds. Its words are equal. */
struct node {
    uint64_t value;
    uint64_t apart[7];
    uint64_t same;
};
static struct node *shared_node, *taken_node;
static struct node private_nodes[2];

/* The number of committed transactions of the interrupting kind. */
static unsigned interrupts_done;

/* Checks of both kinds begin with it. `amounts` of the stepped transaction have been added to all words, or to none. */
static void check_words(void)
{
    uint64_t last = tm_load(word(WORDS - 1));
    bool is_before = true, is_after = true;

    for (unsigned number = 0; number < WORDS - 1; number++) {
        uint64_t difference = tm_load(word(number)) - last;
        is_before = is_before && difference == 0;
        is_after = is_after && difference == stepping_current->adds[number];
    }
    VALIDATE(is_before || is_after, "a transaction saw words that never were so together");
}

/* Versions of the words' records after the last interrupt. From there on they only grow. */
static uint64_t versions[WORDS];

static void look_at_records(void)
{
    for (unsigned number = 0; number < WORDS; number++) {
        uint64_t version = __atomic_load_n(tm_orec_of(word(number)), __ATOMIC_ACQUIRE);

        VALIDATE(version >= versions[number] || (versions[number] & TM_OREC_OWNED), "the version of a record went back");
        versions[number] = version;
    }
}

static VALIDATE_NOINLINE void add_to_words(unsigned begin, unsigned end)
{
    VALIDATE_START(0);
    for (unsigned number = begin; number < end; number++)
        tm_store(word(number), tm_load(word(number)) + INTERRUPT_AMOUNT);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void interrupt_words(void)
{
    if (stepping_variant == 3) {
        /* The first word's record may be free while others are still owned. */
        add_to_words(0, 1);
        add_to_words(1, WORDS);
        interrupts_done++;
        look_at_records();
        return;
    }
    /* Handlers cannot run alone. */
    VALIDATE_START(stepping_mode >= STEPPING_THREAD && stepping_variant == 1 ? TM_SERIAL : 0);
    check_words();
    switch (stepping_variant) {
    case 0:
        for (unsigned number = 0; number < WORDS; number++)
            tm_store(word(number), tm_load(word(number)) + INTERRUPT_AMOUNT);
        break;
    case 1:
        for (unsigned number = WORDS; number-- != 0;)
            tm_store(word(number), tm_load(word(number)) + INTERRUPT_AMOUNT);
        break;
    default:
        /* Reads only, twice. */
        check_words();
    }
    VALIDATE_COMMIT();
    if (stepping_variant < 2)
        interrupts_done++;
    /* Not where another handler may look at an intermediate state. */
    if (stepping_mode != STEPPING_HANDLERS)
        look_at_records();
}

static void check_all_words(void)
{
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(*word(number) == stepping_current->adds[number] + (uint64_t)INTERRUPT_AMOUNT * interrupts_done,
                 "words are not what the committed transactions make of them");
}

/*
 * Stepped transactions on words.
 */

static VALIDATE_NOINLINE void add_one_word(void)
{
    VALIDATE_START(stepping_current->flags);
    tm_store(word(0), tm_load(word(0)) + stepping_current->adds[0]);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_words(void)
{
    VALIDATE_START(stepping_current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "a stepped transaction saw half of the one that interrupted it");
        tm_store(word(number), last + stepping_current->adds[number]);
    }
    VALIDATE_COMMIT();
}

/* Bytes, without reading them before. */
static VALIDATE_NOINLINE void store_bytes(void)
{
    VALIDATE_START(stepping_current->flags);
    for (unsigned number = 0; number < WORDS - 1; number++)
        tm_store8((uint8_t *)word(number) + 6, 1);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_one_word(void)
{
    VALIDATE_START(stepping_current->flags);
    tm_load(word(0));
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_words(void)
{
    VALIDATE_START(stepping_current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < 2 * WORDS; number++)
        VALIDATE(tm_load(word(number % WORDS)) == last, "a stepped reader saw half of the one that interrupted it");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void cancel_words(void)
{
    if (tm_start(stepping_current->flags) != TM_STARTED)
        return;
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(number), tm_load(word(number)) + number);
    tm_cancel();
}

static VALIDATE_NOINLINE void cancel_inner(void)
{
    if (tm_start(0) != TM_STARTED)
        return;
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(number), 77);
    tm_cancel();
}

static VALIDATE_NOINLINE void add_around_cancel(void)
{
    VALIDATE_START(stepping_current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + stepping_current->adds[0]);
    cancel_inner();
    tm_store(word(1), last + stepping_current->adds[1]);
    VALIDATE(tm_load(word(2)) == last, "a stepped transaction saw half of the one that interrupted it");
    tm_store(word(2), last + stepping_current->adds[2]);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_after_abort(void)
{
    volatile bool is_first = true;

    VALIDATE_START(stepping_current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++)
        tm_store(word(number), last + stepping_current->adds[number]);
    if (is_first) {
        is_first = false;
        tm_abort();
    }
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_irrevocably(void)
{
    volatile unsigned runs = 0;

    VALIDATE_START(stepping_current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + stepping_current->adds[0]);
    tm_become_irrevocable();
    runs++;
    for (unsigned number = 1; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "an irrevocable transaction saw half of another");
        tm_store(word(number), last + stepping_current->adds[number]);
    }
    VALIDATE_COMMIT();
    VALIDATE(runs == 1, "what follows tm_become_irrevocable ran twice");
}

static VALIDATE_NOINLINE void add_local(void)
{
    uint64_t own[2] = {5, 6};

    VALIDATE_START(stepping_current->flags);
    VALIDATE(own[0] == 5 && own[1] == 6, "a restart did not bring a local store back");
    tm_store_local(&own[0], 7);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + stepping_current->adds[0]);
    tm_store_local(&own[1], last);
    tm_store(word(1), last + stepping_current->adds[1]);
    VALIDATE(tm_load(word(2)) == last, "a stepped transaction saw half of the one that interrupted it");
    tm_store(word(2), last + stepping_current->adds[2]);
    VALIDATE_COMMIT();
    VALIDATE(own[0] == 7, "a local store of a committed transaction was taken back");
}

/*
 * Stepped transactions on a node that the other thread takes out, frees, or publishes.
 */

static struct node *make_node(void)
{
    struct node *node = tm_alloc(sizeof *node, VALIDATE_GUARDED);

    VALIDATE(node, "no memory");
    *node = (struct node){.value = 1, .same = 1};
    return node;
}

static void prepare_guarded_node(void)
{
    shared_node = make_node();
    taken_node = NULL;
}

static void check_guarded_node(void)
{
    tm_free(shared_node);
}

/* Another node replaces it, and it is freed: accesses to it are faults. */
static VALIDATE_NOINLINE void exchange_node(void)
{
    VALIDATE_START(0);
    struct node *old = tm_load_pointer(&shared_node);
    tm_store_pointer(&shared_node, make_node());
    tm_free(old);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_node(void)
{
    VALIDATE_START(stepping_current->flags);
    struct node *node = tm_load_pointer(&shared_node);
    uint64_t value = tm_load(&node->value);
    VALIDATE(tm_load(&node->same) == value, "a stepped reader saw a node that was not so");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void write_node(void)
{
    VALIDATE_START(stepping_current->flags);
    struct node *node = tm_load_pointer(&shared_node);
    uint64_t value = tm_load(&node->value) + 1;
    tm_store(&node->value, value);
    tm_store(&node->same, value);
    VALIDATE_COMMIT();
}

/* Writes a node of which it knows only the address. */
static VALIDATE_NOINLINE void write_node_first(void)
{
    VALIDATE_START(stepping_current->flags);
    struct node *node = tm_load_pointer(&shared_node);
    tm_store(&node->same, 9);
    tm_store(&node->value, 9);
    VALIDATE_COMMIT();
}

static void prepare_private_node(void)
{
    private_nodes[0] = private_nodes[1] = (struct node){.value = 1, .same = 1};
    shared_node = &private_nodes[0];
    taken_node = NULL;
}

/* Takes the node out, and accesses it plainly. */
static VALIDATE_NOINLINE void take_node(void)
{
    VALIDATE_START(0);
    struct node *old = tm_load_pointer(&shared_node);
    tm_store_pointer(&shared_node, &private_nodes[1]);
    VALIDATE_COMMIT();
    VALIDATE(old->value == old->same, "a private node is half of another transaction's");
    old->value = 1000;
    old->same = 2000;
    taken_node = old;
}

static void check_private_node(void)
{
    VALIDATE(!taken_node || (taken_node->value == 1000 && taken_node->same == 2000), "a transaction wrote to a private node");
    VALIDATE(shared_node->value == shared_node->same, "a transaction wrote half of a node");
}

/* Fills a node plainly, and publishes it. */
static void publish_node(void)
{
    private_nodes[1].value = private_nodes[1].same = 3;
    if (tm_start(0) != TM_STARTED)
        validate_failed("a transaction did not begin");
    tm_store_pointer(&shared_node, &private_nodes[1]);
    VALIDATE_COMMIT();
}

/*
 * A transaction that a locked section excludes.
 */
static uint64_t section_lock;

static VALIDATE_NOINLINE void add_excluded(void)
{
    VALIDATE_START(stepping_current->flags);
    tm_weak_lock(&section_lock);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "a transaction saw half of a locked section");
        tm_store(word(number), last + stepping_current->adds[number]);
    }
    VALIDATE_COMMIT();
}

static void add_in_section(void)
{
    tm_lock(&section_lock);
    for (unsigned number = 0; number < WORDS; number++)
        *word(number) += INTERRUPT_AMOUNT;
    tm_unlock(&section_lock);
    interrupts_done++;
}

/* Write skew: each stores a function of the word that the other stores. */
static VALIDATE_NOINLINE void store_second(void)
{
    VALIDATE_START(stepping_current->flags);
    tm_store(word(2), tm_load(word(0)) + 1);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void store_first(void)
{
    VALIDATE_START(0);
    tm_store(word(0), tm_load(word(2)) + INTERRUPT_AMOUNT);
    VALIDATE_COMMIT();
    interrupts_done++;
}

static void check_skew(void)
{
    bool is_alone = !interrupts_done && *word(0) == 0 && *word(2) == 1;

    VALIDATE(is_alone || (*word(0) == INTERRUPT_AMOUNT && *word(2) == INTERRUPT_AMOUNT + 1) ||
                 (*word(0) == INTERRUPT_AMOUNT + 1 && *word(2) == 1),
             "two transactions did not see each other's stores");
}

/* The other thread stores, waits a little, and takes it back. */
static VALIDATE_NOINLINE void store_and_cancel(void)
{
    if (tm_start(0) != TM_STARTED)
        return;
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(number), 1000 + number);
    stepping_pause();
    tm_cancel();
}

#define ON_WORDS .interrupting = interrupt_words, .check = check_all_words
#define ADDS .adds = {1, 2, 3, 0}
#define BYTE (1ull << 48)

const struct stepping_case stepping_cases[] = {
    {"one_word", .adds = {1}, .stepped = add_one_word, ON_WORDS},
    {"words", ADDS, .stepped = add_words, ON_WORDS},
    {"bytes", .adds = {BYTE, BYTE, BYTE, 0}, .stepped = store_bytes, ON_WORDS},
    {"read_one_word", .stepped = read_one_word, ON_WORDS},
    {"read_words", .stepped = read_words, ON_WORDS},
    {"read_only", .flags = TM_READ_ONLY, .stepped = read_words, ON_WORDS},
    {"read_only_wrong", ADDS, .flags = TM_READ_ONLY, .stepped = add_words, ON_WORDS},
    {"cancel", .stepped = cancel_words, ON_WORDS},
    {"cancel_inner", ADDS, .stepped = add_around_cancel, ON_WORDS},
    {"abort", ADDS, .stepped = add_after_abort, ON_WORDS},
    {"irrevocable", ADDS, .stepped = add_irrevocably, ON_WORDS},
    {"pessimistic", ADDS, .flags = TM_PESSIMISTIC, .stepped = add_words, ON_WORDS},
    {"obstinate", ADDS, .flags = TM_OBSTINATE, .stepped = add_words, ON_WORDS},
    {"serial", ADDS, .flags = TM_SERIAL, .stepped = add_words, ON_WORDS},
    {"local", ADDS, .stepped = add_local, ON_WORDS},
    {"weak_lock", ADDS, .stepped = add_excluded, .interrupting = add_in_section, .check = check_all_words,
     .is_for_threads_only = true},
    {"skew", .stepped = store_second, .interrupting = store_first, .check = check_skew},
    {"read_cancelled", .stepped = read_words, .interrupting = store_and_cancel, .check = check_all_words,
     .is_for_threads_only = true, .has_pause = true},
    {"read_freed", .stepped = read_node, .interrupting = exchange_node, .prepare = prepare_guarded_node,
     .check = check_guarded_node, .is_for_threads_only = true},
    {"read_only_freed", .flags = TM_READ_ONLY, .stepped = read_node, .interrupting = exchange_node,
     .prepare = prepare_guarded_node, .check = check_guarded_node, .is_for_threads_only = true},
    {"write_freed", .stepped = write_node, .interrupting = exchange_node, .prepare = prepare_guarded_node,
     .check = check_guarded_node, .is_for_threads_only = true},
    {"exchange_freed", .stepped = exchange_node, .interrupting = exchange_node, .prepare = prepare_guarded_node,
     .check = check_guarded_node, .is_for_threads_only = true},
    {"write_private", .stepped = write_node, .interrupting = take_node, .prepare = prepare_private_node,
     .check = check_private_node, .is_for_threads_only = true},
    {"write_private_first", .stepped = write_node_first, .interrupting = take_node, .prepare = prepare_private_node,
     .check = check_private_node, .is_for_threads_only = true},
    {"read_published", .stepped = read_node, .interrupting = publish_node, .prepare = prepare_private_node,
     .check = check_private_node, .is_for_threads_only = true},
};
const unsigned stepping_cases_count = sizeof stepping_cases / sizeof stepping_cases[0];

/* For interrupting transactions. The last consists of two, and no state between them may be seen. */
unsigned stepping_variants(void)
{
    return stepping_current->interrupting != interrupt_words ? 1 : stepping_mode == STEPPING_HANDLER ? 4 : 3;
}

void stepping_prepare(void)
{
    for (unsigned number = 0; number < WORDS; number++)
        *word(number) = 0;
    interrupts_done = 0;
    if (stepping_current->prepare)
        stepping_current->prepare();
}

void stepping_check(void)
{
    stepping_current->check();
    look_at_records();
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(!(versions[number] & TM_OREC_OWNED), "a record is owned though no transaction is open");
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory of transactions: freed memory is not accessed, memory of undone allocations is freed, sets grow, and the
 * memory for them may run out.
 */
#include "validate.h"

/*
 * The allocator of all of the library, through the linker's --wrap.
 */
static unsigned failing_period, allocations;
static uint64_t guarded_count;

void *__real_tm_port_allocate(size_t size_bytes, unsigned flags);
void __real_tm_port_free(void *memory);
void *__wrap_tm_port_allocate(size_t size_bytes, unsigned flags);
void __wrap_tm_port_free(void *memory);

void validate_fail_allocations(unsigned period)
{
    __atomic_store_n(&failing_period, period, __ATOMIC_RELAXED);
}

uint64_t validate_guarded_count(void)
{
    return __atomic_load_n(&guarded_count, __ATOMIC_RELAXED);
}

void *__wrap_tm_port_allocate(size_t size_bytes, unsigned flags)
{
    unsigned period = __atomic_load_n(&failing_period, __ATOMIC_RELAXED);
    void *memory;

    if (period && __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED) % period == 0)
        return NULL;
    if (!(flags & VALIDATE_GUARDED))
        return __real_tm_port_allocate(size_bytes, flags);
    memory = validate_guarded_allocate(size_bytes);
    if (memory)
        __atomic_fetch_add(&guarded_count, 1, __ATOMIC_RELAXED);
    return memory;
}

void __wrap_tm_port_free(void *memory)
{
    if (memory && validate_guarded_free(memory))
        __atomic_fetch_sub(&guarded_count, 1, __ATOMIC_RELAXED);
    else
        __real_tm_port_free(memory);
}

/*
 * A sorted list of nodes that are freed as they are taken out. Each has a tag that no freed memory has.
 */
#define KEYS 48u
#define TAG 0x7a67u

struct node {
    uint64_t key;
    struct node *next;
    uint64_t tag;
};

static struct node *head;
static uint64_t inserted[HOST_THREADS_MAX], removed[HOST_THREADS_MAX];

/* Returns the link to the first node whose key is not smaller. Keys on the way only grow. */
static struct node **find(uint64_t key, struct node **found)
{
    struct node **place = &head, *node;
    uint64_t last = 0;

    while ((node = tm_load_pointer(place))) {
        uint64_t other = tm_load(&node->key);

        VALIDATE(tm_load(&node->tag) == TAG, "a transaction saw a node that had been freed");
        VALIDATE(other > last && other <= KEYS, "a transaction saw a list that is not sorted");
        if (other >= key)
            break;
        last = other;
        place = &node->next;
    }
    *found = node && tm_load(&node->key) == key ? node : NULL;
    return place;
}

static VALIDATE_NOINLINE bool insert(uint64_t key, unsigned flags)
{
    struct node *found;

    VALIDATE_START(flags);
    struct node **place = find(key, &found);
    if (!found) {
        struct node *node = tm_alloc(sizeof *node, VALIDATE_GUARDED);
        VALIDATE(node, "no memory");
        *node = (struct node){key, tm_load_pointer(place), TAG};
        tm_store_pointer(place, node);
    }
    VALIDATE_COMMIT();
    return !found;
}

static VALIDATE_NOINLINE bool take_out(uint64_t key, unsigned flags)
{
    struct node *found;

    VALIDATE_START(flags);
    struct node **place = find(key, &found);
    if (found) {
        tm_store_pointer(place, tm_load_pointer(&found->next));
        tm_store(&found->tag, TAG + 1);
        tm_free(found);
    }
    VALIDATE_COMMIT();
    return found;
}

static VALIDATE_NOINLINE bool look_up(uint64_t key, unsigned flags)
{
    struct node *found;

    VALIDATE_START(flags);
    find(key, &found);
    VALIDATE_COMMIT();
    return found;
}

/* Takes everything out, and then cancels. */
static VALIDATE_NOINLINE void empty_and_cancel(unsigned flags)
{
    if (tm_start(flags) != TM_STARTED)
        return;
    for (struct node *node = tm_load_pointer(&head); node; node = tm_load_pointer(&node->next)) {
        tm_free(node);
        VALIDATE(tm_alloc(sizeof *node, VALIDATE_GUARDED), "no memory");
    }
    tm_store_pointer(&head, NULL);
    tm_cancel();
}

static void list_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < validate_share() / 2; operation++) {
        uint64_t key = 1 + random_below(&random, KEYS);
        unsigned flags = validate_flags(&random);

        switch (random_below(&random, 8)) {
        case 0:
        case 1:
            inserted[thread] += insert(key, flags);
            break;
        case 2:
        case 3:
            removed[thread] += take_out(key, flags);
            break;
        case 4:
            empty_and_cancel(flags & ~TM_SERIAL);
            break;
        default:
            look_up(key, flags);
        }
    }
}

static void empty_body(unsigned thread)
{
    (void)thread;
    for (uint64_t key = 1; key <= KEYS; key++)
        take_out(key, 0);
}

static void run_list(void)
{
    uint64_t count = 0, before = validate_guarded_count();

    head = NULL;
    __builtin_memset(inserted, 0, sizeof inserted);
    __builtin_memset(removed, 0, sizeof removed);
    validate_run(list_body);
    for (unsigned thread = 0; thread < validate_threads; thread++)
        count += inserted[thread] - removed[thread];
    for (struct node *node = head; node; node = node->next)
        count--;
    VALIDATE(count == 0, "nodes were lost");
    host_run(1, empty_body);
    VALIDATE(!head && validate_guarded_count() == before, "memory was not freed");
}

/*
 * Large transactions: every set grows, while others run.
 */
#define LARGE_WORDS 6000u
#define LARGE_NODES 300u
#define LARGE_LOCALS 300u

static uint64_t large[LARGE_WORDS] TM_ALIGNED_TO_LINE;
static struct {
    uint64_t words[LARGE_LOCALS];
} large_own[HOST_THREADS_MAX];
static uint64_t large_counts[HOST_THREADS_MAX];

static VALIDATE_NOINLINE void nest_large(unsigned depth)
{
    VALIDATE_START(0);
    tm_store(&large[depth], tm_load(&large[depth]) + 1);
    if (depth < 30)
        nest_large(depth + 1);
    tm_store(&large[depth], tm_load(&large[depth]) - 1);
    VALIDATE_COMMIT();
}

/* TM_STARTED or TM_EXHAUSTED; and `ends_by_cancel`. */
static VALIDATE_NOINLINE unsigned run_large(unsigned thread, unsigned count, unsigned flags, bool ends_by_cancel)
{
    unsigned answer = tm_start(flags);
    if (answer != TM_STARTED)
        return answer;
    uint64_t before = tm_load(&large[0]);
    for (unsigned number = 0; number < count; number++) {
        VALIDATE(tm_load(&large[number]) == before, "a large transaction saw half of another");
        tm_store(&large[number], before + 1);
        if (number < LARGE_LOCALS)
            tm_store_local(&large_own[thread].words[number], before + 1);
    }
    for (unsigned number = 0; number < LARGE_NODES; number++)
        tm_free(tm_alloc(16, 0));
    for (unsigned number = 0; number < count; number++)
        VALIDATE(tm_load(&large[number]) == before + 1, "a large transaction did not see its own stores");
    nest_large(0);
    for (unsigned number = count; number < LARGE_WORDS; number++)
        tm_store(&large[number], tm_load(&large[number]) + 1);
    if (ends_by_cancel)
        tm_cancel();
    VALIDATE_COMMIT();
    return TM_STARTED;
}

static VALIDATE_NOINLINE void read_large(unsigned flags)
{
    VALIDATE_START(flags);
    uint64_t first = tm_load(&large[0]);
    for (unsigned number = 1; number < LARGE_WORDS; number++)
        VALIDATE(tm_load(&large[number]) == first, "a large reader saw half of a large transaction");
    VALIDATE_COMMIT();
}

static void large_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t operation = 0; operation < 1 + validate_share() / 500; operation++) {
        unsigned flags = validate_flags(&random);

        if (random_below(&random, 2)) {
            read_large(flags);
        } else {
            bool ends_by_cancel = !(flags & TM_SERIAL) && random_below(&random, 3) == 0;
            unsigned answer = run_large(thread, random_below(&random, LARGE_WORDS), flags, ends_by_cancel);

            VALIDATE(answer == (ends_by_cancel ? TM_CANCELLED : TM_STARTED), "a large transaction ended otherwise than it was told");
            large_counts[thread] += !ends_by_cancel;
        }
    }
}

static void check_large(void)
{
    uint64_t sum = 0;

    for (unsigned thread = 0; thread < validate_threads; thread++)
        sum += large_counts[thread];
    for (unsigned number = 0; number < LARGE_WORDS; number++)
        VALIDATE(large[number] == sum, "a large transaction lost some of its stores");
}

static void prepare_large(void)
{
    __builtin_memset(large, 0, sizeof large);
    __builtin_memset(large_counts, 0, sizeof large_counts);
}

static void run_large_sets(void)
{
    prepare_large();
    validate_run(large_body);
    check_large();
}

/*
 * The same while allocations fail, sometimes or always: a transaction runs alone, or answers TM_EXHAUSTED and has no
 * effect.
 */
static VALIDATE_NOINLINE unsigned run_exhausted(unsigned thread, unsigned flags)
{
    unsigned answer = tm_start(flags);
    if (answer != TM_STARTED)
        return answer;
    uint64_t before = tm_load(&large[0]);
    for (unsigned number = 0; number < LARGE_WORDS; number++) {
        VALIDATE(tm_load(&large[number]) == before, "a transaction without memory saw half of another");
        tm_store(&large[number], before + 1);
        if (number < LARGE_LOCALS)
            tm_store_local(&large_own[thread].words[number], before + 1);
    }
    VALIDATE_COMMIT();
    return TM_STARTED;
}

/* Either threads have contexts before memory ends, or memory ends first: then no thread may get a context. */
static bool has_contexts_first;
static unsigned exhausted_period, threads_ready;

static void exhausted_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);
    unsigned turns = 0;

    if (has_contexts_first) {
        read_large(0);
        __atomic_fetch_add(&threads_ready, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(&threads_ready, __ATOMIC_ACQUIRE) != validate_threads)
            tm_port_wait(&turns);
        validate_fail_allocations(exhausted_period);
    }
    for (uint64_t operation = 0; operation < 1 + validate_share() / 500; operation++) {
        unsigned answer = run_exhausted(thread, validate_flags(&random));

        VALIDATE(answer == TM_STARTED || answer == TM_EXHAUSTED, "a transaction without memory ended otherwise than it may");
        VALIDATE(!tm_in_transaction(), "a transaction is open that was exhausted, or has committed");
        large_counts[thread] += answer == TM_STARTED;
    }
}

static void run_exhausted_sets(void)
{
    static const unsigned periods[] = {1, 2, 3, 7};

    for (unsigned number = 0; number < 2 * sizeof periods / sizeof periods[0]; number++) {
        prepare_large();
        has_contexts_first = number % 2;
        exhausted_period = periods[number / 2];
        threads_ready = 0;
        validate_fail_allocations(has_contexts_first ? 0 : exhausted_period);
        validate_run(exhausted_body);
        validate_fail_allocations(0);
        check_large();
    }
    /* There is memory again. */
    prepare_large();
    validate_run(large_body);
    check_large();
}

/* tm_alloc has no memory: the program sees that, and nothing else happens. */
static VALIDATE_NOINLINE void allocate_nothing(void)
{
    VALIDATE_START(0);
    tm_store(&large[0], tm_load(&large[0]) + 1);
    validate_fail_allocations(1);
    VALIDATE(!tm_alloc(10, 0), "tm_alloc found memory where there is none");
    validate_fail_allocations(0);
    VALIDATE_COMMIT();
}

static void allocate_nothing_body(unsigned thread)
{
    (void)thread;
    for (unsigned turn = 0; turn < 10; turn++)
        allocate_nothing();
}

static void run_allocate_nothing(void)
{
    prepare_large();
    host_run(1, allocate_nothing_body);
    VALIDATE(large[0] == 10, "a transaction that got no memory was lost");
}

const struct validate_test validate_memory[] = {
    {"freed_list", run_list},
    {"large_sets", run_large_sets},
    {"exhausted_sets", run_exhausted_sets},
    {"allocate_nothing", run_allocate_nothing},
    {0},
};

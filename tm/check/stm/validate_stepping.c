/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Interrupts at every instruction. A thread runs a transaction with the processor's trap flag set, so that a signal after each instruction
 * tells the way it takes, in the library as well. Then it runs it again with a breakpoint at the first instruction of that way, at the
 * second, and so on, and there something else runs in between:
 *
 * - a transaction in the signal's handler, which is one of an interrupt level,
 * - the same, itself interrupted at one of its instructions by another level,
 * - a transaction of another thread, until it ends or waits: all schedules of two threads with one preemption,
 * - the same, where that thread's is the second context of the process, and the first is on its own until then.
 *
 * What is found out does not depend on time, so what fails once fails always.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <tm/signals.h>

#include "../../stm/transaction.h"
#include "validate.h"

/* Operations that a test is to have for each instruction of a way, or a number of instructions that are chosen from it. */
#define OPERATIONS_PER_HANDLER 250
#define OPERATIONS_PER_SCHEDULE 500

/* Of a longer one the rest is not looked at. */
#define WAY_MAX 20000u

/* The other thread waits for the one that is stopped when it has yielded so often, or taken so long (it may wait in the allocator). */
#define YIELDS_MAX 40
#define WAIT_NS_MAX 20000000

/* Signals that stand for interrupts: where they are off, none is made up. */
#define INTERRUPT_SIGNAL (SIGRTMIN + 8)

#define WORDS 4u
#define INTERRUPT_AMOUNT 100

/* The first two share a block. */
static uint64_t places[WORDS][8] TM_ALIGNED_TO_LINE;

static uint64_t *word(unsigned number)
{
    return number < 2 ? &places[0][number] : &places[number][0];
}

/* A node of which a transaction finds the address. Its words are equal. */
struct node {
    uint64_t value;
    uint64_t apart[7];
    uint64_t same;
};
static struct node *shared_node, *taken_node;
static struct node private_nodes[2];

enum mode {
    MODE_HANDLER,
    MODE_HANDLERS,
    MODE_THREAD,
    MODE_SECOND_CONTEXT,
};

static enum mode mode;

struct stepping_case {
    const char *name;
    /* What the stepped transaction adds to each word when it commits; nothing to the last one. */
    uint64_t adds[WORDS];
    unsigned flags;
    void (*stepped)(void);
    /* Null: the transaction on words. */
    void (*interrupting)(void);
    void (*prepare)(void);
    void (*check)(void);
    bool is_for_threads_only;
    /* The other thread stops in its middle (pause_other) until the stepped one has gone a few instructions further. */
    bool has_pause;
};

static const struct stepping_case *current;
/* Transactions of the stepped and of the interrupting kind that have committed. */
static unsigned interrupts_done;
static unsigned variant;

/* Both kinds begin with it. `amounts` of the stepped transaction have been added to all words, or to none. */
static void check_words(void)
{
    uint64_t last = tm_load(word(WORDS - 1));
    bool is_before = true, is_after = true;

    for (unsigned number = 0; number < WORDS - 1; number++) {
        uint64_t difference = tm_load(word(number)) - last;
        is_before = is_before && difference == 0;
        is_after = is_after && difference == current->adds[number];
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
    if (variant == 3) {
        /* The first word's record may have been let go of while others have not. */
        add_to_words(0, 1);
        add_to_words(1, WORDS);
        interrupts_done++;
        look_at_records();
        return;
    }
    /* Handlers cannot run alone. */
    VALIDATE_START(mode >= MODE_THREAD && variant == 1 ? TM_SERIAL : 0);
    check_words();
    switch (variant) {
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
    if (variant < 2)
        interrupts_done++;
    /* Not where another handler may look in the middle of this. */
    if (mode != MODE_HANDLERS)
        look_at_records();
}

static void check_all_words(void)
{
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(*word(number) == current->adds[number] + (uint64_t)INTERRUPT_AMOUNT * interrupts_done,
                 "words are not what the committed transactions make of them");
}

/*
 * Stepped transactions on words.
 */

static VALIDATE_NOINLINE void add_one_word(void)
{
    VALIDATE_START(current->flags);
    tm_store(word(0), tm_load(word(0)) + current->adds[0]);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_words(void)
{
    VALIDATE_START(current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "a stepped transaction saw half of the one that interrupted it");
        tm_store(word(number), last + current->adds[number]);
    }
    VALIDATE_COMMIT();
}

/* Bytes, without having read them. */
static VALIDATE_NOINLINE void store_bytes(void)
{
    VALIDATE_START(current->flags);
    for (unsigned number = 0; number < WORDS - 1; number++)
        tm_store8((uint8_t *)word(number) + 6, 1);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_one_word(void)
{
    VALIDATE_START(current->flags);
    tm_load(word(0));
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void read_words(void)
{
    VALIDATE_START(current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < 2 * WORDS; number++)
        VALIDATE(tm_load(word(number % WORDS)) == last, "a stepped reader saw half of the one that interrupted it");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void cancel_words(void)
{
    if (tm_start(current->flags) != TM_STARTED)
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
    VALIDATE_START(current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + current->adds[0]);
    cancel_inner();
    tm_store(word(1), last + current->adds[1]);
    VALIDATE(tm_load(word(2)) == last, "a stepped transaction saw half of the one that interrupted it");
    tm_store(word(2), last + current->adds[2]);
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_after_abort(void)
{
    volatile bool is_first = true;

    VALIDATE_START(current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++)
        tm_store(word(number), last + current->adds[number]);
    if (is_first) {
        is_first = false;
        tm_abort();
    }
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void add_irrevocably(void)
{
    volatile unsigned runs = 0;

    VALIDATE_START(current->flags);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + current->adds[0]);
    tm_become_irrevocable();
    runs++;
    for (unsigned number = 1; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "an irrevocable transaction saw half of another");
        tm_store(word(number), last + current->adds[number]);
    }
    VALIDATE_COMMIT();
    VALIDATE(runs == 1, "what follows tm_become_irrevocable ran twice");
}

static VALIDATE_NOINLINE void add_local(void)
{
    uint64_t own[2] = {5, 6};

    VALIDATE_START(current->flags);
    VALIDATE(own[0] == 5 && own[1] == 6, "a restart did not bring a local store back");
    tm_store_local(&own[0], 7);
    uint64_t last = tm_load(word(WORDS - 1));
    tm_store(word(0), last + current->adds[0]);
    tm_store_local(&own[1], last);
    tm_store(word(1), last + current->adds[1]);
    VALIDATE(tm_load(word(2)) == last, "a stepped transaction saw half of the one that interrupted it");
    tm_store(word(2), last + current->adds[2]);
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

/* Another node takes its place, and it is freed: accesses to it are faults. */
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
    VALIDATE_START(current->flags);
    struct node *node = tm_load_pointer(&shared_node);
    uint64_t value = tm_load(&node->value);
    VALIDATE(tm_load(&node->same) == value, "a stepped reader saw a node that was not so");
    VALIDATE_COMMIT();
}

static VALIDATE_NOINLINE void write_node(void)
{
    VALIDATE_START(current->flags);
    struct node *node = tm_load_pointer(&shared_node);
    uint64_t value = tm_load(&node->value) + 1;
    tm_store(&node->value, value);
    tm_store(&node->same, value);
    VALIDATE_COMMIT();
}

/* Writes a node before it knows anything but its address. */
static VALIDATE_NOINLINE void write_node_first(void)
{
    VALIDATE_START(current->flags);
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
    VALIDATE_START(current->flags);
    tm_weak_lock(&section_lock);
    uint64_t last = tm_load(word(WORDS - 1));
    for (unsigned number = 0; number < WORDS - 1; number++) {
        VALIDATE(tm_load(word(number)) == last, "a transaction saw half of a locked section");
        tm_store(word(number), last + current->adds[number]);
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

/*
 * Write skew: each stores what it makes of the word that the other stores.
 */
static VALIDATE_NOINLINE void store_second(void)
{
    VALIDATE_START(current->flags);
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
static void pause_other(void);
static VALIDATE_NOINLINE void store_and_cancel(void)
{
    if (tm_start(0) != TM_STARTED)
        return;
    for (unsigned number = 0; number < WORDS; number++)
        tm_store(word(number), 1000 + number);
    pause_other();
    tm_cancel();
}

#define ON_WORDS .interrupting = interrupt_words, .check = check_all_words
#define ADDS .adds = {1, 2, 3, 0}
#define BYTE (1ull << 48)

static const struct stepping_case cases[] = {
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
#define CASES (sizeof cases / sizeof cases[0])

/*
 * Stepping.
 */
/* The thread's way, and those of its handler at some of the places where that may interrupt it. */
struct way {
    unsigned length;
    uint8_t *addresses[WAY_MAX];
};
static struct way way, handler_way;
#define HANDLER_WAYS 4

/* What the trap flag is set for, by level. */
static bool is_traced[2];
static bool acted[2];
static unsigned level;
/* Where the handler is interrupted by the next level: an instruction of its way, and of how many times that it comes there. */
static unsigned handler_after, handler_passes;
/* Instructions of the stepped thread while the other one pauses. */
static unsigned pause_length;
#define PAUSE_LENGTH_MAX 8u

/* The byte that an instruction begins with; 0xcc in its place is a trap. `passes`: how often it is executed up to the wanted time. */
static struct {
    uint8_t *address;
    uint8_t byte;
    unsigned passes;
    bool is_passing;
} breakpoint;

#define BREAKPOINT_INSTRUCTION 0xcc
#define TRAP_FLAG 0x100

/* Below what may be in use under the stack pointer. The first trap is after the next instruction. */
static inline __attribute__((always_inline)) void trap_flag_set(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" : : : "cc", "memory");
}

static inline __attribute__((always_inline)) void trap_flag_clear(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; andl $~0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" : : : "cc", "memory");
}

static void write_instruction(uint8_t byte)
{
    *(volatile uint8_t *)breakpoint.address = byte;
}

/* The program's own text, in which the library is. */
extern char __executable_start[], etext[];

static void make_text_writable(void)
{
    uintptr_t begin = (uintptr_t)__executable_start & ~4095ul, end = ((uintptr_t)etext + 4095) & ~4095ul;

    VALIDATE(mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "the program's text cannot be made writable");
}

static void breakpoint_set(uint8_t *address, unsigned passes)
{
    breakpoint.address = address;
    breakpoint.byte = *address;
    breakpoint.passes = passes;
    write_instruction(BREAKPOINT_INSTRUCTION);
}

static void breakpoint_clear(void)
{
    if (breakpoint.address)
        write_instruction(breakpoint.byte);
    breakpoint.address = NULL;
}

/* The other thread: told to begin by a byte, and what it has come to. */
static int other_begins[2];
static bool other_has_ended;
static __thread bool is_other;
static unsigned other_yields;

void __real_tm_port_yield(void);
void __wrap_tm_port_yield(void);
void __wrap_tm_port_yield(void)
{
    if (is_other)
        __atomic_add_fetch(&other_yields, 1, __ATOMIC_RELAXED);
    __real_tm_port_yield();
}

static void *run_other(void *argument)
{
    char byte;

    (void)argument;
    is_other = true;
    VALIDATE(read(other_begins[0], &byte, 1) == 1, "read");
    current->interrupting();
    __atomic_store_n(&other_has_ended, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Bytes that it has been told to go on by: to begin, and after its pause. */
static unsigned other_told, other_paused;

static void tell_other(void)
{
    if (other_told < (current->has_pause ? 2 : 1))
        VALIDATE(write(other_begins[1], "", 1) == 1, "write");
    other_told++;
}

static void pause_other(void)
{
    char byte;

    if (!is_other || !current->has_pause || other_paused)
        return;
    __atomic_store_n(&other_paused, 1, __ATOMIC_RELEASE);
    VALIDATE(read(other_begins[0], &byte, 1) == 1, "read");
}

static void let_other_run(void)
{
    uint64_t end = host_clock() + WAIT_NS_MAX;

    __atomic_store_n(&other_yields, 0, __ATOMIC_RELAXED);
    tell_other();
    while (!__atomic_load_n(&other_has_ended, __ATOMIC_ACQUIRE) &&
           (other_told == 2 || !__atomic_load_n(&other_paused, __ATOMIC_ACQUIRE)) &&
           __atomic_load_n(&other_yields, __ATOMIC_RELAXED) < YIELDS_MAX && host_clock() < end)
        sched_yield();
}

static void act(ucontext_t *context)
{
    /* Interrupts are off. */
    if (sigismember(&context->uc_sigmask, INTERRUPT_SIGNAL))
        return;
    acted[level] = true;
    if (mode == MODE_THREAD || mode == MODE_SECOND_CONTEXT) {
        let_other_run();
        if (current->has_pause && other_told == 1 && pause_length)
            context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
        return;
    }
    level++;
    if (level == 1 && is_traced[1])
        trap_flag_set();
    else if (level == 1 && mode == MODE_HANDLERS)
        breakpoint_set(handler_way.addresses[handler_after], handler_passes);
    tm_signal_enter(context);
    current->interrupting();
    tm_signal_leave();
    if (level == 1 && is_traced[1])
        trap_flag_clear();
    else
        breakpoint_clear();
    level--;
}

static void write_down(struct way *to, greg_t address)
{
    /* The program's text only. */
    if (to->length < WAY_MAX && (char *)address >= __executable_start && (char *)address < etext)
        to->addresses[to->length++] = (uint8_t *)address;
}

static void trapped(int signal, siginfo_t *information, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;

    (void)signal;
    (void)information;
    if (breakpoint.address && (uint8_t *)registers[REG_RIP] == breakpoint.address + 1 && !breakpoint.is_passing) {
        registers[REG_RIP]--;
        write_instruction(breakpoint.byte);
        if (--breakpoint.passes) {
            breakpoint.is_passing = true;
            registers[REG_EFL] |= TRAP_FLAG;
        } else {
            breakpoint.address = NULL;
            act(context);
        }
    } else if (breakpoint.is_passing) {
        breakpoint.is_passing = false;
        registers[REG_EFL] &= ~TRAP_FLAG;
        write_instruction(BREAKPOINT_INSTRUCTION);
    } else if (other_told == 1 && !is_traced[0]) {
        /* The stepped thread goes on while the other one pauses. */
        if (--pause_length == 0) {
            registers[REG_EFL] &= ~TRAP_FLAG;
            let_other_run();
        }
    } else {
        write_down(level ? &handler_way : &way, registers[REG_RIP]);
    }
    errno = saved;
}

static void create_thread(pthread_t *thread, void *(*body)(void *))
{
    VALIDATE(pthread_create(thread, NULL, body, NULL) == 0, "no thread");
}

static VALIDATE_NOINLINE void run_stepped(void)
{
    if (is_traced[0])
        trap_flag_set();
    current->stepped();
    if (is_traced[0])
        trap_flag_clear();
}

/* How often the way has been at its instruction `number` up to there. */
static unsigned passes_of(unsigned number)
{
    unsigned passes = 0;

    for (unsigned earlier = 0; earlier <= number; earlier++)
        passes += way.addresses[earlier] == way.addresses[number];
    return passes;
}

/* One run, interrupted before an instruction of the way, or not at all. */
#define NOWHERE (~0u)

static void run_case(unsigned before)
{
    pthread_t other;
    bool has_other = mode == MODE_THREAD || mode == MODE_SECOND_CONTEXT;

    for (unsigned number = 0; number < WORDS; number++)
        *word(number) = 0;
    interrupts_done = 0;
    acted[0] = acted[1] = false;
    validate_step = before;
    if (current->prepare)
        current->prepare();
    other_told = other_paused = 0;
    other_has_ended = false;
    if (has_other)
        create_thread(&other, run_other);
    if (before != NOWHERE)
        breakpoint_set(way.addresses[before], passes_of(before));
    run_stepped();
    breakpoint_clear();
    if (has_other) {
        tell_other();
        tell_other();
        pthread_join(other, NULL);
    }
    current->check();
    look_at_records();
    for (unsigned number = 0; number < WORDS; number++)
        VALIDATE(!(versions[number] & TM_OREC_OWNED), "a record is owned though no transaction is open");
}

static void find_ways(uint64_t *random)
{
    /* Twice: the first time there may be more to do. */
    run_case(NOWHERE);
    is_traced[0] = true;
    way.length = 0;
    run_case(NOWHERE);
    is_traced[0] = false;
    handler_way.length = 0;
    is_traced[1] = mode == MODE_HANDLERS;
    for (unsigned number = 0; number < HANDLER_WAYS && is_traced[1]; number++)
        run_case(random_below(random, way.length));
    is_traced[1] = false;
}

static void step_through(uint64_t *random)
{
    bool has_handlers = mode == MODE_HANDLER || mode == MODE_HANDLERS;
    unsigned points = (unsigned)(validate_operations / (has_handlers ? OPERATIONS_PER_HANDLER : OPERATIONS_PER_SCHEDULE)) + 1;
    unsigned stride = (way.length + points - 1) / points, done = 0, runs = 0;

    for (unsigned before = random_below(random, stride); before < way.length; before += stride) {
        if (mode == MODE_HANDLERS) {
            handler_after = random_below(random, handler_way.length);
            handler_passes = 1 + random_below(random, 3);
        }
        pause_length = 1 + random_below(random, PAUSE_LENGTH_MAX);
        run_case(before);
        runs++;
        done += acted[0];
    }
    VALIDATE(done >= runs / 2 || (current->flags & TM_SERIAL), "the way was another one when it was interrupted");
}

/* A context besides, so that no transaction is on its own. */
static unsigned peer_ends;
static unsigned peer_is_ready;

static void *run_peer(void *argument)
{
    (void)argument;
    VALIDATE_START(0);
    VALIDATE_COMMIT();
    __atomic_store_n(&peer_is_ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&peer_ends, __ATOMIC_ACQUIRE))
        tm_port_park(&peer_ends, 0);
    return NULL;
}

/* Of the interrupting transaction. The last is two, between which nobody may look. */
static unsigned variants(void)
{
    return current->interrupting != interrupt_words ? 1 : mode == MODE_HANDLER ? 4 : 3;
}

static void step_body(unsigned thread)
{
    bool has_handlers = mode == MODE_HANDLER || mode == MODE_HANDLERS;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    uint64_t random = random_state(validate_seed, thread);
    pthread_t peer;
    unsigned turns = 0;

    VALIDATE(sigaction(SIGTRAP, &action, NULL) == 0, "sigaction");
    VALIDATE(pipe(other_begins) == 0, "pipe");
    make_text_writable();
    if (has_handlers)
        VALIDATE(tm_signals_prepare(2) == 0, "tm_signals_prepare");
    if (mode == MODE_THREAD) {
        peer_ends = peer_is_ready = 0;
        create_thread(&peer, run_peer);
        while (!__atomic_load_n(&peer_is_ready, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
    }
    for (unsigned number = 0; number < CASES; number++) {
        current = &cases[number];
        if (current->is_for_threads_only && has_handlers)
            continue;
        validate_case = current->name;
        variant = 0;
        find_ways(&random);
        for (variant = 0; variant < variants(); variant++)
            step_through(&random);
    }
    validate_case = NULL;
    if (mode == MODE_THREAD) {
        __atomic_store_n(&peer_ends, 1, __ATOMIC_RELEASE);
        tm_port_unpark(&peer_ends, 0);
        pthread_join(peer, NULL);
    }
    close(other_begins[0]);
    close(other_begins[1]);
}

static void step_in(enum mode wanted)
{
    mode = wanted;
    host_run(1, step_body);
}

static void run_handler(void)
{
    step_in(MODE_HANDLER);
}

static void run_handlers(void)
{
    step_in(MODE_HANDLERS);
}

static void run_thread(void)
{
    step_in(MODE_THREAD);
}

static void run_second_context(void)
{
    step_in(MODE_SECOND_CONTEXT);
}

const struct validate_test validate_stepping[] = {
    {"step_handler", run_handler},
    {"step_handlers", run_handlers},
    {"step_thread", run_thread},
    {"step_second_context", run_second_context},
    {0},
};

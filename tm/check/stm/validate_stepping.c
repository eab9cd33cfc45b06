/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Interrupts at every instruction. A thread runs a transaction with the processor's trap flag set, so that a signal
 * after each instruction records its path, in the library as well. Then it runs the transaction again with a breakpoint
 * at the first instruction of that path, at the second, and so on, and other code runs at the breakpoint:
 *
 * - a transaction in the signal's handler, which belongs to an interrupt level,
 * - the same, itself interrupted at one of its instructions by another level,
 * - a transaction of another thread, until it ends or waits: all schedules of two threads with one preemption,
 * - the same, but that thread has the second context of the process, and the first is solo until then.
 *
 * The result does not depend on time, so a failure repeats always.
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

#include "stepping.h"

/* The operations of a test for each instruction of a path, or for a number of instructions chosen from it. */
#define OPERATIONS_PER_HANDLER 250
#define OPERATIONS_PER_SCHEDULE 500

/* The longest recorded path. The rest of a longer one is not checked. */
#define WAY_MAX 20000u

/*
 * The other thread counts as waiting for the stopped one after this many yields, or after this time (it may wait in the
 * allocator).
 */
#define YIELDS_MAX 40
#define WAIT_NS_MAX 20000000

/* Signals that stand for interrupts: while they are off, no interrupt is simulated. */
#define INTERRUPT_SIGNAL (SIGRTMIN + 8)

enum stepping_mode stepping_mode;
const struct stepping_case *stepping_current;
unsigned stepping_variant;

/* The path of the thread, and those of its handler at some of the points where it may interrupt the thread. */
struct way {
    unsigned length;
    uint8_t *addresses[WAY_MAX];
};
static struct way way, handler_way;
#define HANDLER_WAYS 4

/* The purpose of the trap flag, by level. */
static bool is_traced[2];
static bool acted[2];
static unsigned level;
/*
 * The point where the next level interrupts the handler: an instruction of its path, and the number of times that it
 * gets there.
 */
static unsigned handler_after, handler_passes;
/* Instructions of the stepped thread while the other one pauses. */
static unsigned pause_length;
#define PAUSE_LENGTH_MAX 8u

/*
 * The first byte of an instruction; 0xcc in its place is a trap. `passes`: the number of executions before the wanted
 * one.
 */
static struct {
    uint8_t *address;
    uint8_t byte;
    unsigned passes;
    bool is_passing;
} breakpoint;

#define BREAKPOINT_INSTRUCTION 0xcc
#define TRAP_FLAG 0x100

/* Below the stack that may be in use under the stack pointer. The first trap comes after the next instruction. */
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

/* The program's own text, which contains the library. */
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

/* The other thread: a byte tells it to begin, and this is its progress. */
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
    stepping_current->interrupting();
    __atomic_store_n(&other_has_ended, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Bytes that have told it to go on: to begin, and after its pause. */
static unsigned other_told, other_paused;

static void tell_other(void)
{
    if (other_told < (stepping_current->has_pause ? 2 : 1))
        VALIDATE(write(other_begins[1], "", 1) == 1, "write");
    other_told++;
}

void stepping_pause(void)
{
    char byte;

    if (!is_other || !stepping_current->has_pause || other_paused)
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
    if (stepping_mode == STEPPING_THREAD || stepping_mode == STEPPING_SECOND_CONTEXT) {
        let_other_run();
        if (stepping_current->has_pause && other_told == 1 && pause_length)
            context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
        return;
    }
    level++;
    if (level == 1 && is_traced[1])
        trap_flag_set();
    else if (level == 1 && stepping_mode == STEPPING_HANDLERS)
        breakpoint_set(handler_way.addresses[handler_after], handler_passes);
    tm_signal_enter(context);
    stepping_current->interrupting();
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
    stepping_current->stepped();
    if (is_traced[0])
        trap_flag_clear();
}

/* The number of times that the path has reached its instruction `number` up to there. */
static unsigned passes_of(unsigned number)
{
    unsigned passes = 0;

    for (unsigned earlier = 0; earlier <= number; earlier++)
        passes += way.addresses[earlier] == way.addresses[number];
    return passes;
}

/* One run, interrupted before an instruction of the path, or not at all. */
#define NOWHERE (~0u)

static void run_case(unsigned before)
{
    pthread_t other;
    bool has_other = stepping_mode == STEPPING_THREAD || stepping_mode == STEPPING_SECOND_CONTEXT;

    acted[0] = acted[1] = false;
    validate_step = before;
    stepping_prepare();
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
    stepping_check();
}

static void find_ways(uint64_t *random)
{
    /* Twice: the first run may have more to do. */
    run_case(NOWHERE);
    is_traced[0] = true;
    way.length = 0;
    run_case(NOWHERE);
    is_traced[0] = false;
    handler_way.length = 0;
    is_traced[1] = stepping_mode == STEPPING_HANDLERS;
    for (unsigned number = 0; number < HANDLER_WAYS && is_traced[1]; number++)
        run_case(random_below(random, way.length));
    is_traced[1] = false;
}

static void step_through(uint64_t *random)
{
    bool has_handlers = stepping_mode == STEPPING_HANDLER || stepping_mode == STEPPING_HANDLERS;
    unsigned points = (unsigned)(validate_operations / (has_handlers ? OPERATIONS_PER_HANDLER : OPERATIONS_PER_SCHEDULE)) + 1;
    unsigned stride = (way.length + points - 1) / points, done = 0, runs = 0;

    for (unsigned before = random_below(random, stride); before < way.length; before += stride) {
        if (stepping_mode == STEPPING_HANDLERS) {
            handler_after = random_below(random, handler_way.length);
            handler_passes = 1 + random_below(random, 3);
        }
        pause_length = 1 + random_below(random, PAUSE_LENGTH_MAX);
        run_case(before);
        runs++;
        done += acted[0];
    }
    VALIDATE(done >= runs / 2 || (stepping_current->flags & TM_SERIAL), "the way was another one when it was interrupted");
}

/* An additional context, so that no transaction is solo. */
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

static void step_body(unsigned thread)
{
    bool has_handlers = stepping_mode == STEPPING_HANDLER || stepping_mode == STEPPING_HANDLERS;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    uint64_t random = random_state(validate_seed, thread);
    pthread_t peer;
    unsigned turns = 0;

    VALIDATE(sigaction(SIGTRAP, &action, NULL) == 0, "sigaction");
    VALIDATE(pipe(other_begins) == 0, "pipe");
    make_text_writable();
    if (has_handlers)
        VALIDATE(tm_signals_prepare(2) == 0, "tm_signals_prepare");
    if (stepping_mode == STEPPING_THREAD) {
        peer_ends = peer_is_ready = 0;
        create_thread(&peer, run_peer);
        while (!__atomic_load_n(&peer_is_ready, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
    }
    for (unsigned number = 0; number < stepping_cases_count; number++) {
        stepping_current = &stepping_cases[number];
        if (stepping_current->is_for_threads_only && has_handlers)
            continue;
        validate_case = stepping_current->name;
        stepping_variant = 0;
        find_ways(&random);
        for (stepping_variant = 0; stepping_variant < stepping_variants(); stepping_variant++)
            step_through(&random);
    }
    validate_case = NULL;
    if (stepping_mode == STEPPING_THREAD) {
        __atomic_store_n(&peer_ends, 1, __ATOMIC_RELEASE);
        tm_port_unpark(&peer_ends, 0);
        pthread_join(peer, NULL);
    }
    close(other_begins[0]);
    close(other_begins[1]);
}

static void step_in(enum stepping_mode wanted)
{
    stepping_mode = wanted;
    host_run(1, step_body);
}

static void run_handler(void)
{
    step_in(STEPPING_HANDLER);
}

static void run_handlers(void)
{
    step_in(STEPPING_HANDLERS);
}

static void run_thread(void)
{
    step_in(STEPPING_THREAD);
}

static void run_second_context(void)
{
    step_in(STEPPING_SECOND_CONTEXT);
}

const struct validate_test validate_stepping[] = {
    {"step_handler", run_handler},
    {"step_handlers", run_handlers},
    {"step_thread", run_thread},
    {"step_second_context", run_second_context},
    {0},
};

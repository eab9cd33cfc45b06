/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For user programs: interrupts with transactions, memory that faults once it is freed, and ends of the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tm/signals.h>

#include "validate.h"

/* Signals that interrupt threads, and each other's handlers. */
#define LEVELS 2u
#define SIGNAL_OF(depth) (SIGRTMIN + 8 + (depth))

/* Each allocation gets the next page, so that a page is used again only after a long time. */
#define GUARDED_PAGES 16384u
#define PAGE_SIZE 4096u

static char *guarded;
static uint8_t guarded_is_used[GUARDED_PAGES];
static unsigned guarded_next;

void *validate_guarded_allocate(size_t size_bytes)
{
    if (size_bytes > PAGE_SIZE)
        return NULL;
    for (unsigned turn = 0; turn < GUARDED_PAGES; turn++) {
        unsigned page = __atomic_fetch_add(&guarded_next, 1, __ATOMIC_RELAXED) % GUARDED_PAGES;
        uint8_t free = 0;

        if (!__atomic_compare_exchange_n(&guarded_is_used[page], &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if (mprotect(guarded + (size_t)page * PAGE_SIZE, PAGE_SIZE, PROT_READ | PROT_WRITE))
            return NULL;
        return guarded + (size_t)page * PAGE_SIZE;
    }
    return NULL;
}

bool validate_guarded_free(void *memory)
{
    size_t page = (size_t)((char *)memory - guarded) / PAGE_SIZE;

    if ((char *)memory < guarded || page >= GUARDED_PAGES)
        return false;
    VALIDATE(guarded_is_used[page], "memory was freed twice");
    memset(memory, VALIDATE_POISON, PAGE_SIZE);
    VALIDATE(mprotect(memory, PAGE_SIZE, PROT_NONE) == 0, "mprotect");
    __atomic_store_n(&guarded_is_used[page], 0, __ATOMIC_RELEASE);
    return true;
}

static void fault(int signal, siginfo_t *information, void *context)
{
    char *address = information->si_addr;

    (void)signal;
    (void)context;
    validate_failed(address >= guarded && address < guarded + (size_t)GUARDED_PAGES * PAGE_SIZE
                        ? "a transaction accessed memory that had been freed"
                        : "a fault");
}

void validate_host_prepare(void)
{
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigset_t interrupts;

    guarded = mmap(NULL, (size_t)GUARDED_PAGES * PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    VALIDATE(guarded != MAP_FAILED, "mmap");
    VALIDATE(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    sigemptyset(&interrupts);
    for (unsigned depth = 0; depth < LEVELS; depth++)
        sigaddset(&interrupts, SIGNAL_OF((int)depth));
    tm_signals_declare(&interrupts);
}

static void (*interrupt_handler)(unsigned depth);
static __thread unsigned interrupt_depth;
static __thread timer_t timers[LEVELS];

/* Written like a program's handler: the other signal may come at any of its instructions. */
static void interrupted(int signal, siginfo_t *information, void *context)
{
    int saved = errno;

    (void)signal;
    (void)information;
    tm_signal_enter(context);
    __atomic_load_n(&interrupt_handler, __ATOMIC_RELAXED)(++interrupt_depth);
    interrupt_depth--;
    tm_signal_leave();
    errno = saved;
}

void validate_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us)
{
    struct sigaction action = {.sa_sigaction = interrupted, .sa_flags = SA_RESTART | SA_SIGINFO};

    __atomic_store_n(&interrupt_handler, handler, __ATOMIC_RELAXED);
    VALIDATE(tm_signals_prepare(LEVELS) == 0, "tm_signals_prepare");
    for (int depth = 0; depth < (int)LEVELS; depth++) {
        /* Periods that differ a little, so that the signals meet in every order. */
        long period_ns = (long)period_us * (1000 + 70 * depth);
        struct itimerspec period = {{0, period_ns}, {0, period_ns}};
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL_OF(depth)};

        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        VALIDATE(sigaction(SIGNAL_OF(depth), &action, NULL) == 0, "sigaction");
        VALIDATE(timer_create(CLOCK_MONOTONIC, &event, &timers[depth]) == 0, "timer_create");
        VALIDATE(timer_settime(timers[depth], 0, &period, NULL) == 0, "timer_settime");
    }
}

void validate_interrupts_end(void)
{
    static const struct timespec at_once;
    sigset_t set, old;

    sigemptyset(&set);
    for (int depth = 0; depth < (int)LEVELS; depth++)
        sigaddset(&set, SIGNAL_OF(depth));
    pthread_sigmask(SIG_BLOCK, &set, &old);
    for (unsigned depth = 0; depth < LEVELS; depth++)
        timer_delete(timers[depth]);
    while (sigtimedwait(&set, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

const struct validate_family validate_host_families[] = {
    {"joining", validate_joining},
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    {"stepping", validate_stepping},
#endif
    {0},
};

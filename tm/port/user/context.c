/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Contexts of threads and their signal handlers, and the other functions that transactions need from the host. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <tm/interrupt.h>
#include <tm/port.h>
#include <tm/signals.h>
#include <tm/tm.h>

struct levels {
    struct tm_transaction *contexts[TM_SIGNAL_LEVELS_MAX];
    unsigned count;
    unsigned used;
};

__thread struct tm_transaction *tm_port_current = &tm_outside;
static __thread struct tm_transaction *thread_context;
static __thread struct levels levels;
static pthread_key_t exit_key;
static bool has_membarrier;

/* As the kernel's sigset: bit N - 1 is signal N. */
static unsigned long declared;

static uintptr_t stack_end(void)
{
    pthread_attr_t attributes;
    void *begin;
    size_t size_bytes;

    if (pthread_getattr_np(pthread_self(), &attributes))
        return (uintptr_t)__builtin_frame_address(0);
    pthread_attr_getstack(&attributes, &begin, &size_bytes);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)begin + size_bytes;
}

static void thread_exits(void *context)
{
    /* No handler runs while its context is destroyed. */
    unsigned long interrupts = tm_port_interrupts_disable();
    bool was_closed = tm_transaction_destroy(context, stack_end());

    for (unsigned level = 0; level < levels.count; level++)
        tm_transaction_destroy(levels.contexts[level], 0);
    levels = (struct levels){0};
    tm_port_current = &tm_outside;
    thread_context = NULL;
    tm_port_interrupts_restore(interrupts);
    if (!was_closed) {
        static const char text[] = "tm: a thread exited inside a transaction, which was taken back\n";
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
            return;
    }
}

__attribute__((constructor)) static void prepare(void)
{
    if (pthread_key_create(&exit_key, thread_exits))
        tm_port_fatal("the process has no key left for thread exits");
    has_membarrier = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

struct tm_transaction *tm_port_transaction_make(void)
{
    struct tm_transaction *context = tm_transaction_create(false);

    if (!context)
        return NULL;
    if (pthread_setspecific(exit_key, context)) {
        tm_transaction_destroy(context, 0);
        return NULL;
    }
    thread_context = context;
    tm_port_current = context;
    return context;
}

void *tm_port_allocate(size_t size_bytes, unsigned flags)
{
    (void)flags;
    return malloc(size_bytes);
}

void tm_port_free(void *memory)
{
    free(memory);
}

void tm_port_heavy_fence(void)
{
    if (!has_membarrier || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
        tm_port_fatal("the kernel has no private expedited membarrier (Linux 4.14)");
}

unsigned long tm_port_interrupts_disable(void)
{
    unsigned long old = 0;

    if (declared)
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &declared, &old, sizeof old);
    return old;
}

void tm_port_interrupts_restore(unsigned long interrupts)
{
    if (declared)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &interrupts, NULL, sizeof interrupts);
}

void tm_signals_declare(const sigset_t *signals)
{
    for (int number = 1; number <= 64; number++)
        if (sigismember(signals, number) == 1)
            declared |= 1ul << (number - 1);
}

int tm_signals_prepare(unsigned count)
{
    if (count > TM_SIGNAL_LEVELS_MAX)
        return EINVAL;
    if (tm_in_transaction())
        return EBUSY;
    if (!thread_context && !tm_port_transaction_make())
        return ENOMEM;
    while (levels.count < count) {
        struct tm_transaction *level = tm_transaction_create(true);
        if (!level)
            return ENOMEM;
        tm_transaction_add_level(thread_context, level);
        levels.contexts[levels.count++] = level;
    }
    return 0;
}

void tm_signal_enter(void *context)
{
    ucontext_t *interrupted = context;
    unsigned level = levels.used;

    if (level == levels.count)
        tm_port_fatal(
            "a signal handler with transactions in a thread that is not prepared for it (tm_signals_prepare)");
    /* The level is counted before it is entered: another signal may come in between. */
    levels.used++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#if defined(__x86_64__)
    tm_interrupt_enter(levels.contexts[level], (uintptr_t *)&interrupted->uc_mcontext.gregs[REG_RIP],
                       (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP]);
#else
    tm_interrupt_enter(levels.contexts[level], (uintptr_t *)&interrupted->uc_mcontext.__gregs[REG_PC],
                       interrupted->uc_mcontext.__gregs[REG_SP]);
#endif
}

void tm_signal_leave(void)
{
    tm_interrupt_leave(levels.contexts[levels.used - 1]);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    levels.used--;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The port to user programs on Linux, x86-64 and riscv64: a thread stands for a processor, and a signal for an
 * interrupt.
 *
 * Locks here synchronize the threads of one process; their queue nodes are in its memory.
 */
#ifndef TM_PORT_H
#define TM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tm/compiler.h>

TM_DECLARATIONS_BEGIN

#define TM_CACHE_LINE_SIZE 64

/* Threads that may use the library at one time. One more ends the program (tm_port_fatal). */
#define TM_PROCESSORS_MAX 4096u

/*
 * Turns of a waiting loop after which the thread offers its processor to others: more pauses than a hand-over between
 * two running processors takes, and fewer than two context switches.
 */
#define TM_PORT_TURNS_BEFORE_YIELD 128u

/* The calling thread's number plus one, or 0 while it has none. */
extern __thread unsigned tm_port_slot __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a number. Safe in a signal handler. The number is free again when the thread has exited. */
unsigned tm_port_slot_take(void);

/* Dense number of the calling thread, below TM_PROCESSORS_MAX; the same as long as it lives. */
TM_INLINE unsigned tm_port_processor(void)
{
    unsigned slot = tm_port_slot;

    return TM_LIKELY(slot) ? slot - 1 : tm_port_slot_take();
}

/* One turn of a waiting loop, without giving the processor away. Orders nothing. */
TM_INLINE void tm_port_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause" : : : "memory");
#elif defined(__riscv)
    /* Zihintpause: a fence that orders nothing where the extension is unknown. */
    __asm__ volatile(".4byte 0x0100000f" : : : "memory");
#else
#error "no waiting instruction is known for this processor"
#endif
}

/* Lets another thread run, if one is ready. */
void tm_port_yield(void);

/* One turn of a waiting loop; `turns` counts them, and has to be 0 before the first. */
TM_INLINE void tm_port_wait(unsigned *turns)
{
    if (*turns < TM_PORT_TURNS_BEFORE_YIELD) {
        ++*turns;
        tm_port_relax();
    } else {
        tm_port_yield();
    }
}

/*
 * Sleeps while *word is `value`, until tm_port_unpark; may return early, so callers look again. Orders nothing. A
 * change of *word followed by tm_port_unpark is never missed.
 */
void tm_port_park(const volatile unsigned *word, unsigned value);

/* Wakes `processor`'s thread, which sleeps on `word`. `word` is not accessed, and may have another use by now. */
void tm_port_unpark(volatile unsigned *word, unsigned processor);

#if defined(__riscv)
/* Xmetatm's transactions need supervisor mode: no user program has them. */
TM_INLINE bool tm_port_has_xmetatm(void)
{
    return false;
}
#endif

/* Prints "tm: " and the text to standard error, and aborts. */
void tm_port_fatal(const char *what) __attribute__((noreturn, cold));

/* A mistake of the program ends it. */
TM_INLINE void tm_port_misuse(const char *what)
{
    tm_port_fatal(what);
}

/*
 * Transactions. A context is a thread, or a level of signal handlers in one (<tm/signals.h>).
 */

/* Ownership records: 512 KiB. */
#define TM_PORT_ORECS_LOG2 16
/* The largest number of contexts at one time. A further one gets no transaction. */
#define TM_PORT_CONTEXTS_MAX 16384u

struct tm_transaction;
extern struct tm_transaction tm_outside;

/* The state of the current context, or &tm_outside while it has none. */
extern __thread struct tm_transaction *tm_port_current __attribute__((tls_model("initial-exec")));

TM_INLINE struct tm_transaction *tm_port_transaction(void)
{
    return tm_port_current;
}

TM_INLINE void tm_port_transaction_set(struct tm_transaction *transaction)
{
    tm_port_current = transaction;
}

/* Makes the state of the calling thread; null without memory. It is given back when the thread exits. */
struct tm_transaction *tm_port_transaction_make(void);

/* Called around each outermost transaction, and each section of tm_lock: threads may lose their processor there. */
TM_INLINE void tm_port_transaction_enter(void)
{
}

TM_INLINE void tm_port_transaction_leave(void)
{
}

/* Its functions are not safe in signal handlers. */
#define TM_PORT_ALLOCATES_IN_INTERRUPTS 0
void *tm_port_allocate(size_t size_bytes, unsigned flags);
void tm_port_free(void *memory);

/* A fence on every processor that runs a thread of this process, so that others need none (membarrier). */
#define TM_PORT_HAS_HEAVY_FENCE 1
void tm_port_heavy_fence(void);

/* Blocks and restores the signals whose handlers contain transactions, while one runs alone. */
unsigned long tm_port_interrupts_disable(void);
void tm_port_interrupts_restore(unsigned long interrupts);

TM_DECLARATIONS_END

#endif

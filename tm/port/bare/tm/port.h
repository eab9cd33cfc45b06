/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The port to bare harts of riscv64, 1 to TM_BARE_HARTS_MAX of them, in S-mode: the machine answers the SBI itself and has no M-mode.
 * Programs are built with the start.S, runtime.c and device_tree.c of port/bare/runtime. A processor is a hart; nothing
 * migrates.
 *
 * tp points to the hart's `struct tm_bare_hart`, also in handlers.
 */
#ifndef TM_PORT_H
#define TM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tm/compiler.h>

TM_DECLARATIONS_BEGIN

#if __riscv_xlen != 64
#error "port/bare is for riscv64: its entry of traps keeps registers of 64 bits"
#endif

/*
 * What a program on bare harts may need more or less of: harts, bytes of memory for its transactions, and the logarithm
 * of the number of ownership records. The library and its callers agree on them (-D, which pkg-config passes on).
 */
#ifndef TM_BARE_HARTS_MAX
#define TM_BARE_HARTS_MAX 8
#endif
#ifndef TM_BARE_ARENA_BYTES
#define TM_BARE_ARENA_BYTES (1ul << 20)
#endif
#ifndef TM_BARE_ORECS_LOG2
#define TM_BARE_ORECS_LOG2 12
#endif

#define TM_PROCESSORS_MAX TM_BARE_HARTS_MAX
#define TM_CACHE_LINE_SIZE 64

struct tm_transaction;

/* Below it are the interrupt handlers' stacks (trap.S has the offsets). */
struct tm_bare_hart {
    /*
     * The registers that the first instructions of a trap store. They are in a line that no transaction reads: each
     * interrupt would make it lose.
     */
    unsigned long saved_sp;
    unsigned long saved_t0;
    /* The number of interrupt handlers that the hart is in. */
    unsigned long level;
    bool has_xmetatm;
    void (*timer_handler)(void);
    unsigned long timer_period_ticks;
    /* The address and stack that the innermost trap returns to. */
    unsigned long *program_counter;
    unsigned long stack_pointer;
    /* From here on, members that transactions read too. */
    unsigned processor TM_ALIGNED_TO_LINE;
    /* The SBI's number of the hart. */
    unsigned number;
    struct tm_transaction *transaction;
} TM_ALIGNED_TO_LINE;

TM_INLINE struct tm_bare_hart *tm_bare_hart(void)
{
    struct tm_bare_hart *hart;

    __asm__("mv %0, tp" : "=r"(hart));
    return hart;
}

/* Counts the harts from 0; the boot hart is 0. */
TM_INLINE unsigned tm_port_processor(void)
{
    return tm_bare_hart()->processor;
}

/* `pause` of Zihintpause. Older assemblers do not know it, and older harts execute it as a fence without effect. */
TM_INLINE void tm_port_relax(void)
{
    __asm__ volatile(".4byte 0x0100000f" ::: "memory");
}

TM_INLINE void tm_port_wait(unsigned *turns)
{
    ++*turns;
    tm_port_relax();
}

/*
 * Sleeps while *word is `value`, until tm_port_unpark or an interrupt, even one that is turned off here; callers look
 * again. Orders nothing. A change of *word followed by tm_port_unpark is never missed. In a transaction it does not
 * sleep.
 */
void tm_port_park(const volatile unsigned *word, unsigned value);

/* Wakes the processor, on whichever word it sleeps. An SBI call, so it makes a transaction fail (TM_HTM_IO). */
void tm_port_unpark(volatile unsigned *word, unsigned processor);

/* Whether the device tree names Xmetatm. */
bool tm_port_has_xmetatm(void);

/* Prints, and ends the run with exit code 1. */
void tm_port_fatal(const char *what) __attribute__((noreturn));

/* A mistake of the program ends it. */
TM_INLINE void tm_port_misuse(const char *what)
{
    tm_port_fatal(what);
}

#define TM_BARE_SSTATUS_SIE 2ul

/* Turns interrupts off. Returns the argument of tm_port_interrupts_restore. */
TM_INLINE unsigned long tm_port_interrupts_disable(void)
{
    unsigned long before;

    __asm__ volatile("csrrci %0, sstatus, %1" : "=r"(before) : "i"(TM_BARE_SSTATUS_SIE) : "memory");
    return before & TM_BARE_SSTATUS_SIE;
}

TM_INLINE void tm_port_interrupts_restore(unsigned long before)
{
    __asm__ volatile("csrs sstatus, %0" : : "r"(before) : "memory");
}

/* Turns interrupts on; harts start with them off. */
TM_INLINE void tm_bare_interrupts_enable(void)
{
    tm_port_interrupts_restore(TM_BARE_SSTATUS_SIE);
}

/* The number of handlers that the calling hart is in: 0 outside, more than 1 if handlers enable interrupts. */
TM_INLINE unsigned tm_bare_interrupt_level(void)
{
    return (unsigned)tm_bare_hart()->level;
}

/*
 * Interrupts the calling hart every `period_ticks` ticks of its timer, while it has interrupts on; 0 ends that. The
 * handler runs on another stack, with interrupts off until it turns them on, and uses no floating-point registers. A
 * transaction that it interrupts is suspended meanwhile.
 */
void tm_bare_timer(unsigned long period_ticks, void (*handler)(void));

TM_INLINE unsigned long tm_bare_cycles(void)
{
    unsigned long cycles;

    __asm__ volatile("rdcycle %0" : "=r"(cycles));
    return cycles;
}

/* Reads the timer. */
TM_INLINE unsigned long tm_bare_ticks(void)
{
    unsigned long ticks;

    __asm__ volatile("rdtime %0" : "=r"(ticks));
    return ticks;
}

/*
 * Transactions. A context is a hart, or a level of interrupt handlers on one.
 */

#define TM_PORT_ORECS_LOG2 TM_BARE_ORECS_LOG2
/* Handlers that contain transactions. Each level may interrupt the one before. */
#define TM_BARE_LEVELS_MAX 4u
#define TM_PORT_CONTEXTS_MAX (TM_PROCESSORS_MAX * (1 + TM_BARE_LEVELS_MAX))

extern struct tm_transaction tm_outside;

/* The state of the current context, or &tm_outside while it has none. */
TM_INLINE struct tm_transaction *tm_port_transaction(void)
{
    return tm_bare_hart()->transaction;
}

TM_INLINE void tm_port_transaction_set(struct tm_transaction *transaction)
{
    tm_bare_hart()->transaction = transaction;
}

/* Makes the state of the calling hart; null without memory. */
struct tm_transaction *tm_port_transaction_make(void);

/* Called around each outermost transaction, and each section of tm_lock: harts do not lose their processor. */
TM_INLINE void tm_port_transaction_enter(void)
{
}

TM_INLINE void tm_port_transaction_leave(void)
{
}

/*
 * Makes the contexts of this number of handler levels on the calling hart, up to TM_BARE_LEVELS_MAX; false without
 * memory. Existing levels stay.
 */
bool tm_bare_transactions_prepare(unsigned levels);

/* The first and the last call in a handler that contains transactions, with interrupts off. Its level is prepared. */
void tm_bare_transactions_enter(void);
void tm_bare_transactions_leave(void);

/* Memory from an arena of a fixed size; null when it is used up. Aligned to 16 bytes. Not in handlers. */
/* Its functions are not safe in interrupt handlers. */
#define TM_PORT_ALLOCATES_IN_INTERRUPTS 0
void *tm_port_allocate(size_t size_bytes, unsigned flags);
void tm_port_free(void *memory);

/*
 * The SBI has no call that orders the memory accesses of other harts, so a transaction of the only context is an
 * ordinary one.
 */
#define TM_PORT_HAS_HEAVY_FENCE 0
TM_INLINE void tm_port_heavy_fence(void)
{
}

TM_DECLARATIONS_END

#endif

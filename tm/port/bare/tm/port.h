/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The port to bare harts of riscv64, 1 to 64 of them, in S-mode: the machine answers the SBI itself and has no M-mode
 * to offer. What runs is built with workloads/bare's start.S, runtime.c and device_tree.c. A processor is a hart;
 * nothing migrates.
 *
 * tp points to the hart's `struct tm_bare_hart`, in handlers as well.
 */
#ifndef TM_PORT_H
#define TM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tm/compiler.h>

#define TM_PROCESSORS_MAX 64
#define TM_CACHE_LINE_SIZE 64

struct tm_transaction;

/* Below it are the interrupt handlers' stacks (trap.S has the offsets). */
struct tm_bare_hart {
    /*
     * What the first instructions of a trap store. In a line that no transaction reads: it would lose to each
     * interrupt.
     */
    unsigned long saved_sp;
    unsigned long saved_t0;
    /* Interrupt handlers that the hart is in. */
    unsigned long level;
    bool has_xmetatm;
    void (*timer_handler)(void);
    unsigned long timer_period_ticks;
    /* Where the innermost trap goes back to, and with which stack. */
    unsigned long *program_counter;
    unsigned long stack_pointer;
    /* What transactions read, too. */
    unsigned processor TM_ALIGNED_TO_LINE;
    /* By this number the SBI knows the hart. */
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

/* `pause` of Zihintpause, which older assemblers do not know, and older harts take for a fence that does nothing. */
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
 * Sleeps while *word is `value`, until tm_port_unpark or an interrupt, also one that is turned off here; callers look
 * again. Orders nothing. Who changes *word and then calls tm_port_unpark cannot be missed. In a transaction it does
 * not sleep.
 */
void tm_port_park(const volatile unsigned *word, unsigned value);

/* Wakes the processor, whatever it sleeps on. An SBI call, so in a transaction it makes that fail (TM_HTM_IO). */
void tm_port_unpark(volatile unsigned *word, unsigned processor);

/* The device tree names Xmetatm. */
bool tm_port_has_xmetatm(void);

/* Prints, and ends the run with exit code 1. */
void tm_port_fatal(const char *what) __attribute__((noreturn));

#define TM_BARE_SSTATUS_SIE 2ul

/* Off; what tm_port_interrupts_restore is told afterwards. */
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

/* Interrupts on; harts start with them off. */
TM_INLINE void tm_bare_interrupts_enable(void)
{
    tm_port_interrupts_restore(TM_BARE_SSTATUS_SIE);
}

/* Handlers that the calling hart is in: 0 outside, more where handlers enable interrupts. */
TM_INLINE unsigned tm_bare_interrupt_level(void)
{
    return (unsigned)tm_bare_hart()->level;
}

/*
 * Interrupts the calling hart every so many ticks of its timer, where it has interrupts on; 0 ends that. The handler
 * runs on another stack, with interrupts off until it turns them on, and uses no floating-point registers. A
 * transaction that it interrupts is suspended meanwhile.
 */
void tm_bare_timer(unsigned long period_ticks, void (*handler)(void));

TM_INLINE unsigned long tm_bare_cycles(void)
{
    unsigned long cycles;

    __asm__ volatile("rdcycle %0" : "=r"(cycles));
    return cycles;
}

/* Of the timer. */
TM_INLINE unsigned long tm_bare_ticks(void)
{
    unsigned long ticks;

    __asm__ volatile("rdtime %0" : "=r"(ticks));
    return ticks;
}

/*
 * Transactions. A context is a hart, or a level of interrupt handlers on one.
 */

/* Ownership records: 128 KiB. */
#define TM_PORT_ORECS_LOG2 14
/* Handlers that contain transactions, of which each may interrupt the one before. */
#define TM_BARE_LEVELS_MAX 4u
#define TM_PORT_CONTEXTS_MAX (TM_PROCESSORS_MAX * (1 + TM_BARE_LEVELS_MAX))

extern struct tm_transaction tm_outside;

/* The current context's, or &tm_outside while it has none. */
TM_INLINE struct tm_transaction *tm_port_transaction(void)
{
    return tm_bare_hart()->transaction;
}

TM_INLINE void tm_port_transaction_set(struct tm_transaction *transaction)
{
    tm_bare_hart()->transaction = transaction;
}

/* Makes the calling hart's; null without memory. */
struct tm_transaction *tm_port_transaction_make(void);

/* Around each outermost transaction, and each section of tm_lock: harts do not lose their processor. */
TM_INLINE void tm_port_transaction_enter(void)
{
}

TM_INLINE void tm_port_transaction_leave(void)
{
}

/*
 * Makes the contexts of so many levels of handlers on the calling hart, up to TM_BARE_LEVELS_MAX; false without
 * memory. Those there are already stay.
 */
bool tm_bare_transactions_prepare(unsigned levels);

/* First and last in a handler that contains transactions, with interrupts off. Its level is prepared. */
void tm_bare_transactions_enter(void);
void tm_bare_transactions_leave(void);

/* From an arena of a fixed size; null where nothing is left. Aligned to 16 bytes. Not in handlers. */
/* Its functions are not safe in interrupt handlers. */
#define TM_PORT_ALLOCATES_IN_INTERRUPTS 0
void *tm_port_allocate(size_t size_bytes, unsigned flags);
void tm_port_free(void *memory);

/*
 * The SBI has no call that orders the memory accesses of other harts, so a transaction that is alone is one as any
 * other.
 */
#define TM_PORT_HAS_HEAVY_FENCE 0
TM_INLINE void tm_port_heavy_fence(void)
{
}

#endif

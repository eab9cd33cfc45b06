/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The harts: their stacks for handlers, sleeping and waking, the timer. */
#include <tm/port.h>

#include "bare.h"
#include "harts.h"
#include "xmetatm.h"

#define HANDLER_STACK_SIZE 8192

#define SBI_IPI_SEND 0
#define SBI_TIME_SET 0
#define TIMER_NEVER (~0ul)

#define CAUSE_INTERRUPT (1ul << 63)
#define CAUSE_SOFTWARE (CAUSE_INTERRUPT | 1)
#define CAUSE_TIMER (CAUSE_INTERRUPT | 5)
/* Bits of sie and sip. */
#define INTERRUPT_SOFTWARE (1ul << 1)
#define INTERRUPT_TIMER (1ul << 5)

#define FAILURE_FATAL 1

_Static_assert(offsetof(struct tm_bare_hart, saved_sp) == 0 && offsetof(struct tm_bare_hart, saved_t0) == 8 &&
                   offsetof(struct tm_bare_hart, level) == 16 && offsetof(struct tm_bare_hart, has_xmetatm) == 24,
               "trap.S has these numbers");
_Static_assert(TM_PROCESSORS_MAX == HARTS_MAX, "the runtime starts no more harts, and no fewer");

/* Defined if the library's transactions are linked. */
extern struct tm_transaction tm_outside __attribute__((weak));

void tm_bare_trap(void);
void tm_bare_trapped(unsigned long cause, unsigned long *program_counter, unsigned long value);

static struct {
    unsigned char handler_stack[HANDLER_STACK_SIZE];
    struct tm_bare_hart hart;
} TM_ALIGNED_TO_LINE harts[TM_PROCESSORS_MAX];

void tm_bare_hart_start(unsigned processor)
{
    struct tm_bare_hart *hart = &harts[processor].hart;

    hart->processor = processor;
    hart->number = (unsigned)hart_number(processor);
    hart->has_xmetatm = tm_port_has_xmetatm();
    hart->transaction = &tm_outside;
    __asm__ volatile("mv tp, %0" : : "r"(hart) : "memory");
    __asm__ volatile("csrw sscratch, %0" : : "r"(hart) : "memory");
    __asm__ volatile("csrw stvec, %0" : : "r"(tm_bare_trap) : "memory");
    __asm__ volatile("csrw sie, %0" : : "r"(INTERRUPT_SOFTWARE) : "memory");
}

bool tm_port_has_xmetatm(void)
{
    return machine_has_extension(XMETATM_EXTENSION);
}

/*
 * The wfi ends at once if an interrupt that sie enables is pending. With interrupts off none is taken before it, so an
 * interrupt that arrives after the read of the word stays pending. An earlier pending interrupt is cleared first, so
 * the read of the word is no older than the clearing: device output (the interrupt) before memory input.
 */
void tm_port_park(const volatile unsigned *word, unsigned value)
{
    unsigned long before = tm_port_interrupts_disable();

    __asm__ volatile("csrc sip, %0\n"
                     "fence iorw, iorw"
                     :
                     : "r"(INTERRUPT_SOFTWARE)
                     : "memory");
    if (*word == value)
        __asm__ volatile("wfi" ::: "memory");
    tm_port_interrupts_restore(before);
}

void tm_port_unpark(volatile unsigned *word, unsigned processor)
{
    (void)word;
    __asm__ volatile("fence iorw, iorw" ::: "memory");
    sbi_call(SBI_EXTENSION_IPI, SBI_IPI_SEND, 1, harts[processor].hart.number, 0);
}

void tm_port_fatal(const char *what)
{
    print("tm: ");
    print(what);
    print("\n");
    finish(FAILURE_FATAL);
}

static void timer_set(unsigned long time)
{
    sbi_call(SBI_EXTENSION_TIME, SBI_TIME_SET, time, 0, 0);
}

void tm_bare_timer(unsigned long period_ticks, void (*handler)(void))
{
    struct tm_bare_hart *hart = tm_bare_hart();
    unsigned long before = tm_port_interrupts_disable();

    hart->timer_period_ticks = period_ticks;
    hart->timer_handler = handler;
    if (period_ticks) {
        timer_set(tm_bare_ticks() + period_ticks);
        __asm__ volatile("csrs sie, %0" : : "r"(INTERRUPT_TIMER) : "memory");
    } else {
        __asm__ volatile("csrc sie, %0" : : "r"(INTERRUPT_TIMER) : "memory");
        timer_set(TIMER_NEVER);
    }
    tm_port_interrupts_restore(before);
}

/* From trap.S. */
void tm_bare_trapped(unsigned long cause, unsigned long *program_counter, unsigned long value)
{
    struct tm_bare_hart *hart = tm_bare_hart();

    hart->program_counter = program_counter;
    hart->stack_pointer = hart->saved_sp;
    if (cause == CAUSE_TIMER) {
        timer_set(tm_bare_ticks() + hart->timer_period_ticks);
        hart->timer_handler();
    } else if (cause == CAUSE_SOFTWARE) {
        __asm__ volatile("csrc sip, %0" : : "r"(INTERRUPT_SOFTWARE) : "memory");
    } else {
        trapped(cause, *program_counter, value);
    }
}

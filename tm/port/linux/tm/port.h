/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The port to the Linux kernel: a module for x86-64 and riscv64. A processor of the library is one of the kernel. A
 * context is a thread of the kernel or of a program in the kernel, or the handling of soft or hard interrupts on one
 * processor; the module does not hook the kernel's interrupt entry.
 *
 * Callers take locks and wait for them with preemption off, as with the kernel's own spinlocks: the library does not
 * turn it off for them. It does so for transactions, from the outermost begin to the end, and from tm_lock to
 * tm_unlock, so an owner that another context waits for is always running. Neither may sleep. A transaction may begin
 * wherever a spinlock may be taken.
 */
#ifndef TM_PORT_H
#define TM_PORT_H

#include <linux/bug.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/threads.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TM_CACHE_LINE_SIZE 64
#include <tm/compiler.h>

#define TM_PROCESSORS_MAX NR_CPUS

/* Number of the processor. The caller has preemption turned off. */
TM_INLINE unsigned tm_port_processor(void)
{
    return smp_processor_id();
}

/* One turn of a waiting loop. Orders nothing. */
TM_INLINE void tm_port_relax(void)
{
    cpu_relax();
}

/* One turn of a waiting loop. The awaited owner runs, so giving the processor away would not help. */
TM_INLINE void tm_port_wait(unsigned *turns)
{
    ++*turns;
    cpu_relax();
}

/*
 * A processor of a virtual machine would halt in its hypervisor, but a module cannot request that on all of them: here
 * it spins. Returns early.
 */
TM_INLINE void tm_port_park(const volatile unsigned *word, unsigned value)
{
    (void)word;
    (void)value;
    cpu_relax();
}

TM_INLINE void tm_port_unpark(volatile unsigned *word, unsigned processor)
{
    (void)word;
    (void)processor;
}

/* Whether the kernel has found Xmetatm, and enters and leaves its handlers as transactions require. */
bool tm_port_has_xmetatm(void);

/*
 * A caller's mistake: warns once for each place, which is why it is a macro, and goes on. What happens then is on the
 * call's manual page.
 */
#define tm_port_misuse(what) ((void)WARN_ONCE(1, "tm: %s\n", what))

/* Only where there is no way to go on: memory for what has to be undone has run out in a transaction that cannot be. */
void tm_linux_report(const char *what) __attribute__((cold));

TM_INLINE __attribute__((noreturn)) void tm_port_fatal(const char *what)
{
    tm_linux_report(what);
    BUG();
}

/* For transactions. */

#define TM_PORT_ORECS_LOG2 16
#define TM_PORT_CONTEXTS_MAX 8192

struct tm_transaction;
extern struct tm_transaction tm_outside;

/*
 * The transaction states of threads: a hash table by the address of the thread. Only the thread itself enters, removes
 * and looks up its state, so a lookup needs no lock. The table has twice as many places as contexts.
 */
#define TM_LINUX_PLACES_LOG2 14

struct tm_linux_place {
    /* Null: never used, and no search continues past it. &tm_linux_place_left: used before. */
    struct task_struct *task;
    struct tm_transaction *transaction;
};

extern struct tm_linux_place tm_linux_places[1 << TM_LINUX_PLACES_LOG2];

/* The state of a thread that is not in its first place or has none, and of interrupts. */
struct tm_transaction *tm_linux_transaction_of_thread(void);
struct tm_transaction *tm_linux_transaction_of_interrupt(void);

TM_INLINE bool tm_linux_in_interrupt(void)
{
    return preempt_count() & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/* The transaction state of the current context, or &tm_outside if it has none yet. */
TM_INLINE struct tm_transaction *tm_port_transaction(void)
{
    const struct tm_linux_place *place;

    if (TM_UNLIKELY(tm_linux_in_interrupt()))
        return tm_linux_transaction_of_interrupt();
    place = &tm_linux_places[hash_ptr(current, TM_LINUX_PLACES_LOG2)];
    return TM_LIKELY(place->task == current) ? place->transaction : tm_linux_transaction_of_thread();
}

/*
 * Makes the state of a thread. The thread keeps it until it ends, or returns to its program through the kernel's
 * deferred work. Null if there is no memory, if there are too many contexts, if the exiting thread can no longer get
 * deferred work, or in an interrupt without a state (a nonmaskable one).
 */
struct tm_transaction *tm_port_transaction_make(void);

/* Here no handler's entry calls tm_interrupt_enter: the kernel's own state determines the current context. */
TM_INLINE void tm_port_transaction_set(struct tm_transaction *transaction)
{
    (void)transaction;
}

/* Called when the outermost transaction begins and has ended, and by tm_lock and tm_unlock. */
void tm_linux_interrupt_enter(void);
void tm_linux_interrupt_leave(void);

TM_INLINE void tm_port_transaction_enter(void)
{
    preempt_disable();
    if (TM_UNLIKELY(tm_linux_in_interrupt()))
        tm_linux_interrupt_enter();
}

TM_INLINE void tm_port_transaction_leave(void)
{
    if (TM_UNLIKELY(tm_linux_in_interrupt()))
        tm_linux_interrupt_leave();
    preempt_enable();
}

/*
 * Memory, aligned at least to a cache line if it is as large as one. `flags` is a gfp_t, or 0 for the library's own
 * needs, which never sleep. In a transaction no allocation sleeps. tm_port_free frees memory of kmalloc, and kfree
 * frees this memory.
 */
/* With the caller's flags. */
#define TM_PORT_ALLOCATES_IN_INTERRUPTS 1
void *tm_port_allocate(size_t size_bytes, unsigned flags);
void tm_port_free(void *memory);

/* Handlers may allocate. */
#define TM_PORT_ALLOCATES_IN_INTERRUPTS 1

TM_INLINE unsigned long tm_port_interrupts_disable(void)
{
    unsigned long flags;

    raw_local_irq_save(flags);
    return flags;
}

TM_INLINE void tm_port_interrupts_restore(unsigned long flags)
{
    raw_local_irq_restore(flags);
}

/* An interrupt on every other processor could do it, but not while interrupts are off. */
#define TM_PORT_HAS_HEAVY_FENCE false

TM_INLINE void tm_port_heavy_fence(void)
{
}

/* If *stop is 0, stores and returns true. The entry of interrupts is not hooked, so interrupts are off here. */
#define TM_PORT_GUARDED_STORE(bits) \
    TM_INLINE bool tm_guarded_store##bits(const uint32_t *stop, void *address, uint##bits##_t value) \
    { \
        unsigned long flags = tm_port_interrupts_disable(); \
        bool is_allowed = !READ_ONCE(*stop); \
        if (TM_LIKELY(is_allowed)) \
            __atomic_store_n((uint##bits##_t *)address, value, __ATOMIC_RELAXED); \
        tm_port_interrupts_restore(flags); \
        return is_allowed; \
    }

#endif

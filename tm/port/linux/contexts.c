/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The transaction state of each context. A thread's state is made at its first transaction, as in Bressler, "Software
 * Transactional Memory in the Linux Kernel", 2012, section 3.1, and freed at its exit. Departures from the paper:
 * - A module can change neither the kernel's thread structure nor its exit. A hash table holds the states, and deferred
 *   work of the thread (task_work) frees them, which the kernel does at the latest in the thread's exit. For a thread
 *   of a program the kernel sometimes does it before the thread returns to its program; the next transaction then makes
 *   the state anew.
 * - If making it fails, the answer of that transaction is TM_EXHAUSTED.
 * - Interrupts have states as well: each processor has one for soft and one for hard interrupts, made when the module
 *   is loaded.
 */
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include <tm/interrupt.h>

#include "../../stm/transaction.h"
#include "linux.h"

#define PLACES_COUNT (1u << TM_LINUX_PLACES_LOG2)
#define PLACE_OF(task) hash_ptr(task, TM_LINUX_PLACES_LOG2)
#define PLACE_AFTER(place) (((place) + 1) & (PLACES_COUNT - 1))

/* With at most half of the places filled, searches stay short. */
static_assert(TM_PORT_CONTEXTS_MAX * 2 <= PLACES_COUNT);

struct tm_linux_place tm_linux_places[PLACES_COUNT];

/* Marks a place that was left: searches for other threads continue past it. */
#define LEFT ((struct task_struct *)1)

/* Held while a thread enters or leaves a place. */
static DEFINE_SPINLOCK(places_lock);

/* The state of a thread. */
struct thread {
    struct callback_head work;
    struct tm_transaction *transaction;
};

static atomic_t threads_count = ATOMIC_INIT(0);

/* Soft and hard interrupts. */
enum level { SOFT, HARD, LEVELS };

struct processor {
    struct tm_transaction *levels[LEVELS];
    /* Gives back the memory that the levels have freed. */
    struct work_struct drain;
};

static DEFINE_PER_CPU(struct processor, processors);

struct tm_transaction *tm_linux_transaction_of_thread(void)
{
    unsigned place = PLACE_OF(current);

    for (; tm_linux_places[place].task != current; place = PLACE_AFTER(place))
        if (!READ_ONCE(tm_linux_places[place].task))
            return &tm_outside;
    return tm_linux_places[place].transaction;
}

/* The state of the thread, although an interrupt is being served. */
static struct tm_transaction *interrupted_thread(void)
{
    struct tm_transaction *transaction = tm_linux_transaction_of_thread();

    return transaction == &tm_outside ? NULL : transaction;
}

struct tm_transaction *tm_linux_transaction_of_interrupt(void)
{
    struct tm_transaction *transaction;

    if (in_nmi())
        return &tm_outside;
    transaction = this_cpu_read(processors.levels[in_hardirq() ? HARD : SOFT]);
    return transaction ? transaction : &tm_outside;
}

static void enter_place(struct tm_transaction *transaction)
{
    unsigned place = PLACE_OF(current);

    spin_lock(&places_lock);
    while (tm_linux_places[place].task && tm_linux_places[place].task != LEFT)
        place = PLACE_AFTER(place);
    /* null or left -> current */
    tm_linux_places[place].transaction = transaction;
    WRITE_ONCE(tm_linux_places[place].task, current);
    spin_unlock(&places_lock);
}

static void leave_place(void)
{
    unsigned place = PLACE_OF(current);

    spin_lock(&places_lock);
    while (tm_linux_places[place].task != current)
        place = PLACE_AFTER(place);
    /*
     * current -> left. If the next place is null, no search continues past this one: left -> null, for preceding left
     * places too. A search that passes on the way to another place is not stopped by that: its place does not lie beyond a
     * place whose next is null.
     */
    WRITE_ONCE(tm_linux_places[place].task, LEFT);
    if (!tm_linux_places[PLACE_AFTER(place)].task)
        for (; tm_linux_places[place].task == LEFT; place = (place - 1) & (PLACES_COUNT - 1))
            WRITE_ONCE(tm_linux_places[place].task, NULL);
    spin_unlock(&places_lock);
}

/*
 * Gives the state back. An open transaction is rolled back; the answer is then false. Interrupts are off: a handler
 * would otherwise see a thread without a place whose transaction is still open, or a place whose state belongs to another
 * thread already.
 */
static bool destroy(struct tm_transaction *transaction, bool has_place)
{
    uintptr_t stack_end = (uintptr_t)task_stack_page(current) + THREAD_SIZE;
    unsigned long flags;
    bool was_closed;

    local_irq_save(flags);
    was_closed = tm_transaction_destroy(transaction, stack_end);
    if (has_place)
        leave_place();
    local_irq_restore(flags);
    return was_closed;
}

/* Deferred work of the thread itself: it exits, or returns to its program. */
static void thread_leaves(struct callback_head *work)
{
    struct thread *thread = container_of(work, struct thread, work);

    if (!destroy(thread->transaction, true))
        pr_err("%s[%d] ended, or returned to its program, inside a transaction, which was taken back\n", current->comm,
               task_pid_nr(current));
    kfree(thread);
    atomic_dec(&threads_count);
    module_put(THIS_MODULE);
}

struct tm_transaction *tm_port_transaction_make(void)
{
    struct thread *thread;

    if (tm_linux_in_interrupt() || !try_module_get(THIS_MODULE))
        return NULL;
    thread = kmalloc(sizeof(*thread), GFP_ATOMIC | __GFP_NOWARN);
    if (!thread)
        goto no_thread;
    preempt_disable();
    thread->transaction = tm_transaction_create(false);
    preempt_enable();
    if (!thread->transaction)
        goto no_transaction;
    init_task_work(&thread->work, thread_leaves);
    if (task_work_add(current, &thread->work, TWA_NONE))
        goto no_work;
    enter_place(thread->transaction);
    atomic_inc(&threads_count);
    return thread->transaction;

no_work:
    destroy(thread->transaction, false);
no_transaction:
    kfree(thread);
no_thread:
    module_put(THIS_MODULE);
    return NULL;
}

unsigned tm_linux_threads(void)
{
    return atomic_read(&threads_count);
}

/*
 * Records the context that a level has interrupted. A rollback of that context must not store to the stack between its
 * present end and the begin of its transaction. The exact end does not matter: the transaction has stored nothing below
 * it.
 */
static void interrupts(struct tm_transaction *level, struct tm_transaction *interrupted)
{
    uintptr_t stack;

    level->interrupted = interrupted;
    if (!interrupted || !interrupted->depth)
        return;
    stack = tm_checkpoint_stack(&interrupted->checkpoint);
    interrupted->rollback_dead = (struct tm_stack_range){stack & ~(THREAD_SIZE - 1), stack};
}

/*
 * A soft interrupt has interrupted the thread. A hard interrupt has interrupted the soft one, if there is one. The soft
 * one need not have an open transaction, but then its record of the thread is outdated.
 */
void tm_linux_interrupt_enter(void)
{
    struct processor *processor = this_cpu_ptr(&processors);
    struct tm_transaction *interrupted = interrupted_thread();

    if (in_serving_softirq() || !in_hardirq()) {
        interrupts(processor->levels[SOFT], interrupted);
        interrupted = processor->levels[SOFT];
    }
    if (in_hardirq())
        interrupts(processor->levels[HARD], interrupted);
}

void tm_linux_interrupt_leave(void)
{
    const struct tm_log *freed = &tm_linux_transaction_of_interrupt()->freed;

    if (freed->next != freed->begin)
        schedule_work_on(smp_processor_id(), this_cpu_ptr(&processors.drain));
}

static void drain(struct work_struct *work)
{
    const struct processor *processor = container_of(work, struct processor, drain);
    unsigned level;

    preempt_disable();
    for (level = 0; level < LEVELS; level++)
        tm_level_drain(processor->levels[level]);
    preempt_enable();
}

int tm_linux_contexts_make(void)
{
    unsigned cpu, level;

    for_each_possible_cpu(cpu) {
        struct processor *processor = per_cpu_ptr(&processors, cpu);

        INIT_WORK(&processor->drain, drain);
        for (level = 0; level < LEVELS; level++) {
            struct tm_transaction *transaction = tm_transaction_create(true);

            if (!transaction)
                return -ENOMEM;
            processor->levels[level] = transaction;
        }
    }
    return 0;
}

void tm_linux_contexts_free(void)
{
    unsigned cpu, level;

    for_each_possible_cpu(cpu) {
        struct processor *processor = per_cpu_ptr(&processors, cpu);

        for (level = 0; level < LEVELS; level++) {
            if (!processor->levels[level])
                continue;
            cancel_work_sync(&processor->drain);
            tm_transaction_destroy(processor->levels[level], 0);
            processor->levels[level] = NULL;
        }
    }
    tm_contexts_free();
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations that the parts of the module's self-test share. Threads, more than there are processors, do pieces of a
 * test's work, and so do handlers of soft and hard interrupts in between. Each notes its changes, and at the end memory
 * has to agree with the notes.
 */
#ifndef TM_LINUX_TEST_H
#define TM_LINUX_TEST_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/types.h>

/* The context of a piece of work. */
enum place {
    IN_THREAD,
    IN_SOFT_INTERRUPT,
    IN_HARD_INTERRUPT,
    /* A hard interrupt that a thread sends itself in the middle of a transaction. */
    IN_OWN_INTERRUPT,
    PLACES,
};

/* The counts of a test, by an index of its own. */
#define NOTES_MAX 4

struct worker {
    unsigned number;
    struct task_struct *task;
    struct hrtimer soft;
    struct hrtimer hard;
    struct irq_work own;
    u64 random[PLACES];
} ____cacheline_aligned;

struct test {
    const char *name;
    /* Runs before the test's work. */
    bool (*prepare)(void);
    /* One piece of work. Interrupts are on in IN_THREAD and IN_SOFT_INTERRUPT. */
    void (*work)(struct worker *worker, enum place place);
    /* Runs after it and returns whether memory agrees with the notes. Prints each difference. */
    bool (*is_right)(void);
};

extern const struct test transaction_tests[];
extern const unsigned transaction_tests_count;
extern const struct test lock_tests[];
extern const unsigned lock_tests_count;

/* The counts of the running test. */
extern atomic64_t notes[PLACES][NOTES_MAX];
extern atomic64_t disorders;

static inline void note(enum place place, unsigned index)
{
    atomic64_inc(&notes[place][index]);
}

/* The sum over all contexts. */
u64 noted(unsigned index);

/* Counts a forbidden state that a context has seen. Not in a hardware transaction. */
static inline void note_disorder(bool is_disorder)
{
    if (unlikely(is_disorder))
        atomic64_inc(&disorders);
}

/* Steele, Lea and Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static inline u64 random_next(u64 *state)
{
    u64 z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline u32 random_below(u64 *state, u32 bound)
{
    return ((random_next(state) >> 32) * bound) >> 32;
}

/* Two words that are changed one after the other. No transaction may see them differ. */
struct pair {
    u64 one;
    u64 two;
};

/* Prints a message if a pair does not have this value. */
bool pair_is_right(const struct pair *pair, const char *name, u64 expected);

/* A thread must not end before kthread_stop waits for it, since the module's code may be gone then. */
static inline void wait_for_stop(void)
{
    for (;;) {
        set_current_state(TASK_INTERRUPTIBLE);
        if (kthread_should_stop())
            break;
        schedule();
    }
    __set_current_state(TASK_RUNNING);
}

/* Gives other contexts time. */
static inline void linger(void)
{
    unsigned turn;

    for (turn = 0; turn < 50; turn++)
        barrier();
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every lock guards two pairs: one that threads change with interrupts on, and one that handlers change as well. So a
 * handler that waits for the second interrupts a thread that waits for the first.
 */
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "test.h"

#include <tm/lock/byte.h>
#include <tm/lock/cx.h>
#include <tm/lock/mcs.h>
#include <tm/lock/paravirtualized.h>
#include <tm/lock/queued.h>
#include <tm/lock/queued_rw.h>
#include <tm/lock/test_and_set.h>
#include <tm/lock/ticket.h>
#include <tm/lock/tx.h>
#include <tm/lock/unfair.h>

enum { OF_THREADS, OF_ALL, PAIRS };

static struct pair pairs[PAIRS];

/* Runs in a section. Returns whether the pair was seen half changed. */
static __always_inline bool change(struct pair *pair)
{
    u64 one = READ_ONCE(pair->one);
    bool is_torn = one != READ_ONCE(pair->two);

    WRITE_ONCE(pair->one, one + 1);
    linger();
    WRITE_ONCE(pair->two, READ_ONCE(pair->two) + 1);
    return is_torn;
}

static bool prepare(void)
{
    memset(pairs, 0, sizeof(pairs));
    return true;
}

static bool is_right(void)
{
    return pair_is_right(&pairs[OF_THREADS], "threads' pair", noted(OF_THREADS)) &&
           pair_is_right(&pairs[OF_ALL], "pair of all", noted(OF_ALL));
}

/*
 * The operations that a lock is tested with. `enter` and `try` are expressions about `lock`, one of the two, and
 * `node`, which only MCS uses; they may return more than once, for sections that are transactions.
 */
#define TEST(name, type, enter, try, leave) \
    static struct { \
        type lock; \
    } ____cacheline_aligned name##_locks[PAIRS]; \
\
    static __attribute__((__noinline__)) void name##_section(enum place place, unsigned which, bool tries) \
    { \
        type *lock = &name##_locks[which].lock; \
        struct tm_mcs_node __maybe_unused node; \
        bool is_torn; \
\
        if (tries) { \
            if (!(try)) \
                return; \
        } else { \
            enter; \
        } \
        is_torn = change(&pairs[which]); \
        leave; \
        note_disorder(is_torn); \
        note(place, which); \
    } \
\
    static void name##_work(struct worker *worker, enum place place) \
    { \
        u32 choice = random_below(&worker->random[place], 16); \
        unsigned long flags; \
\
        if (place == IN_THREAD && choice < 10) { \
            preempt_disable(); \
            name##_section(place, OF_THREADS, choice == 0); \
            preempt_enable(); \
        } else { \
            local_irq_save(flags); \
            name##_section(place, OF_ALL, choice == 15); \
            local_irq_restore(flags); \
        } \
    }

#define PLAIN_TEST(name) \
    TEST(name, struct tm_##name##_lock, tm_##name##_lock_acquire(lock), tm_##name##_lock_try_acquire(lock), \
         tm_##name##_lock_release(lock))

PLAIN_TEST(byte)
PLAIN_TEST(test_and_set)
PLAIN_TEST(ticket)
PLAIN_TEST(queued)
PLAIN_TEST(paravirtualized)
PLAIN_TEST(unfair)
TEST(mcs, struct tm_mcs_lock, tm_mcs_lock_acquire(lock, &node), tm_mcs_lock_try_acquire(lock, &node),
     tm_mcs_lock_release(lock, &node))
TEST(queued_rw, struct tm_queued_rw_lock, tm_queued_rw_lock_write_acquire(lock),
     tm_queued_rw_lock_write_try_acquire(lock), tm_queued_rw_lock_write_release(lock))
TEST(cx, struct tm_cx_lock, cx_optimistic(lock), cx_try(lock), cx_end(lock))
TEST(cx_mixed, struct tm_cx_lock, which == OF_ALL ? cx_exclusive(lock) : cx_optimistic(lock), cx_try(lock),
     cx_end(lock))
TEST(tx, struct tm_tx_lock, tx_spin_lock(lock), (tx_spin_lock_retry(lock, 1), true), tx_spin_unlock(lock))
TEST(tx_mixed, struct tm_tx_lock, which == OF_ALL ? tx_spin_lock_non(lock) : tx_spin_lock(lock),
     (tx_spin_lock_retry(lock, 1), true), tx_spin_unlock(lock))

/* One in four changes the pair, the others look at it. */
static void readers_work(struct worker *worker, enum place place)
{
    struct tm_queued_rw_lock *lock = &queued_rw_locks[OF_ALL].lock;
    unsigned long flags;
    bool is_torn;

    if (random_below(&worker->random[place], 4) == 0) {
        queued_rw_work(worker, place);
        return;
    }
    local_irq_save(flags);
    tm_queued_rw_lock_read_acquire(lock);
    is_torn = READ_ONCE(pairs[OF_ALL].one) != READ_ONCE(pairs[OF_ALL].two);
    tm_queued_rw_lock_read_release(lock);
    local_irq_restore(flags);
    note_disorder(is_torn);
}

#define ENTRY(name) {#name, prepare, name##_work, is_right}

const struct test lock_tests[] = {
    ENTRY(byte), ENTRY(test_and_set), ENTRY(ticket), ENTRY(mcs), ENTRY(queued), ENTRY(paravirtualized), ENTRY(unfair),
    ENTRY(queued_rw), ENTRY(readers), ENTRY(cx), ENTRY(cx_mixed), ENTRY(tx), ENTRY(tx_mixed),
};
const unsigned lock_tests_count = ARRAY_SIZE(lock_tests);

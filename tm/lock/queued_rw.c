/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The waiting half of the queued reader/writer lock; tm/lock/queued_rw.h describes the algorithm.
 *
 * Successive readers get the lock together: the first waits for the writer and lets the next become the head, which
 * finds no writer. A writer that is the head sets the waiting bit in the word, and processors that arrive from then on
 * queue up behind it.
 *
 * Acquire in both waits: pairs with the writer's release of its byte, and with the readers' subtractions, which are a
 * release sequence.
 */
#include <tm/lock/queued_rw.h>

/* The queue is a queued lock that counts nothing and records no holder. Only the head of the queue holds it. */
static void queue_enter(struct tm_queued_rw_lock *lock)
{
    if (!tm_queue_word_take(&lock->queue.word))
        tm_queued_lock_wait(&lock->queue);
}

static void queue_leave(struct tm_queued_rw_lock *lock)
{
    __atomic_store_n(&lock->queue.word.locked, 0, __ATOMIC_RELEASE);
}

void tm_queued_rw_lock_read_wait(struct tm_queued_rw_lock *lock)
{
    unsigned turns = 0;

    /* (r+1,w,W) -> (r,w,W) */
    __atomic_fetch_sub(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_RELAXED);
    queue_enter(lock);
    /* (r,0,W) -> (r+1,0,W). No writer waits on the word, because only the head does. */
    __atomic_fetch_add(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_RELAXED);
    while (__atomic_load_n(&lock->word, __ATOMIC_ACQUIRE) & TM_QUEUED_RW_WRITER)
        tm_port_wait(&turns);
    queue_leave(lock);
}

void tm_queued_rw_lock_write_wait(struct tm_queued_rw_lock *lock)
{
    unsigned turns = 0;

    queue_enter(lock);
    /* (r,0,W) -> (r,1,W), from (0,0,0) as well: then the loop takes the lock at once. */
    __atomic_fetch_or(&lock->word, TM_QUEUED_RW_WAITING, __ATOMIC_RELAXED);
    for (;;) {
        uint32_t word = TM_QUEUED_RW_WAITING;

        /* (0,1,0) -> (0,0,0xff) */
        if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == word &&
            __atomic_compare_exchange_n(&lock->word, &word, TM_QUEUED_RW_WRITER, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
        tm_port_wait(&turns);
    }
    queue_leave(lock);
}

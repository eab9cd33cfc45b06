/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fair queued reader/writer lock: the algorithm of Linux's queued rwlocks (Corbet, "Queue read/write locks", LWN,
 * 2014), written anew. Readers count themselves in a word. Readers and writers that have to wait do so in a queued
 * lock, and the head of that queue waits on the word.
 *
 * Departure: readers in interrupt handlers have no way past the queue. A processor that holds the lock for reading must
 * not take it again, not even for reading, except with a try: a writer may wait in between.
 *
 * Fair: first come, first served, and successive readers share the lock. As in Linux's lock, the head of the queue bars
 * the way only once it has set its bit in the word: until it runs, others may take and release the lock.
 *
 *     bits 31..9   readers: the number of readers that hold the lock, or that have counted themselves to find out
 *     bit  8       waiting: a writer is the head of the queue
 *     bits 7..0    writer: 0xff while a writer holds the lock
 *
 * In drawings (readers, waiting, writer):
 *
 *     (r,0,0) -> (r+1,0,0)                       a reader arrives
 *     (r,w,W) -> (r+1,w,W) -> (r,w,W)            a reader arrives, has to wait, and joins the queue
 *     (r,0,W) -> (r+1,0,W), and waits for W = 0  a reader that is the head of the queue
 *     (0,0,0) -> (0,0,0xff)                      a writer arrives
 *     (r,0,W) -> (r,1,W), (0,1,0) -> (0,0,0xff)  a writer that is the head of the queue
 */
#ifndef TM_LOCK_QUEUED_RW_H
#define TM_LOCK_QUEUED_RW_H

#include <tm/lock/queued.h>

TM_DECLARATIONS_BEGIN

#define TM_QUEUED_RW_WRITER 0xffu
#define TM_QUEUED_RW_WAITING 0x100u
#define TM_QUEUED_RW_READER 0x200u
#define TM_QUEUED_RW_WRITER_MASK (TM_QUEUED_RW_WAITING | TM_QUEUED_RW_WRITER)

struct tm_queued_rw_lock {
    union {
        uint32_t word;
        /* Little-endian, as both processors are. */
        uint8_t writer;
    };
    /* The queue of waiters. */
    struct tm_queued_lock queue;
    TM_LOCK_HOLDER
};

#define TM_QUEUED_RW_LOCK_INITIALIZER {.queue = TM_QUEUED_LOCK_INITIALIZER}

/* Waits for its turn to read, after it has counted itself. Acquire. */
void tm_queued_rw_lock_read_wait(struct tm_queued_rw_lock *lock);

/* Waits for its turn to write. Acquire. */
void tm_queued_rw_lock_write_wait(struct tm_queued_rw_lock *lock);

/*
 * Takes the lock for reading, (r,0,0) -> (r+1,0,0), if no writer holds or awaits it: whether it did. Acquire if so.
 * Never waits.
 */
TM_INLINE bool tm_queued_rw_lock_read_try_acquire(struct tm_queued_rw_lock *lock)
{
    if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) & TM_QUEUED_RW_WRITER_MASK)
        return false;
    if (__atomic_fetch_add(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_ACQUIRE) & TM_QUEUED_RW_WRITER_MASK) {
        __atomic_fetch_sub(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_RELAXED);
        return false;
    }
    tm_statistics_add(TM_STATISTIC_ACQUISITIONS);
    return true;
}

/* Takes the lock for reading, together with other readers. Waits while a writer holds it or came first. Acquire. */
TM_INLINE void tm_queued_rw_lock_read_acquire(struct tm_queued_rw_lock *lock)
{
    if (TM_UNLIKELY(__atomic_fetch_add(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_ACQUIRE) & TM_QUEUED_RW_WRITER_MASK))
        tm_queued_rw_lock_read_wait(lock);
    tm_statistics_add(TM_STATISTIC_ACQUISITIONS);
}

/*
 * Releases the lock that was taken for reading, (r,w,0) -> (r-1,w,0). Release. The checking build detects a release
 * while no processor reads, but does not know the readers.
 */
TM_INLINE void tm_queued_rw_lock_read_release(struct tm_queued_rw_lock *lock)
{
    tm_lock_releases_shared(lock, "queued_rw", __atomic_load_n(&lock->word, __ATOMIC_RELAXED) >= TM_QUEUED_RW_READER);
    __atomic_fetch_sub(&lock->word, TM_QUEUED_RW_READER, __ATOMIC_RELEASE);
}

/*
 * Takes the lock for writing, (0,0,0) -> (0,0,0xff), if it is free and no processor waits for it: whether it did.
 * Acquire if so. Never waits.
 */
TM_INLINE bool tm_queued_rw_lock_write_try_acquire(struct tm_queued_rw_lock *lock)
{
    uint32_t free = 0;

    if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&lock->word, &free, TM_QUEUED_RW_WRITER, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    tm_lock_taken(lock);
    return true;
}

/* Takes the lock for writing, alone. Waits while other processors hold it or came first. Acquire. Not recursive. */
TM_INLINE void tm_queued_rw_lock_write_acquire(struct tm_queued_rw_lock *lock)
{
    uint32_t free = 0;

    if (TM_UNLIKELY(!__atomic_compare_exchange_n(&lock->word, &free, TM_QUEUED_RW_WRITER, 0, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED)))
        tm_queued_rw_lock_write_wait(lock);
    tm_lock_taken(lock);
}

/* Releases the lock that was taken for writing, (r,w,0xff) -> (r,w,0). Release. The caller holds it. */
TM_INLINE void tm_queued_rw_lock_write_release(struct tm_queued_rw_lock *lock)
{
    tm_lock_releases(lock, "queued_rw");
    __atomic_store_n(&lock->writer, 0, __ATOMIC_RELEASE);
}

TM_DECLARATIONS_END

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The rare paths of cooperative transactional spinlocks: <tm/lock/cx.h>. */
#include <tm/lock/cx.h>

/*
 * The lock was taken while a transaction wanted it, which made the transaction fail. Waits, so that the next try does
 * not meet the same holder, but for a bounded time, because there may always be a holder. On Xmetatm the transaction is
 * open again, and the word is in its read set once it is 0.
 */
static void wait_until_free(const struct tm_cx_lock *lock)
{
    unsigned turns = 0, count = tm_htm_wait_turns;

    while (count-- && !tm_htm_test(&lock->queued.word.value, 0))
        tm_port_wait(&turns);
}

/* Handles a failed transaction: true when it is open again, false when it has ended. */
static bool try_again(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries *tries)
{
    while (status != TM_HTM_STARTED) {
        if (!tm_htm_may_retry(status, tries, UINT32_MAX)) {
            tm_htm_abandon();
            return false;
        }
        if (tm_htm_cause(status) == TM_HTM_TAKEN)
            wait_until_free(lock);
        status = tm_htm_again();
    }
    return true;
}

void tm_cx_lock_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries)
{
    if (try_again(lock, status, &tries)) {
        if (tm_htm_test(&lock->queued.word.value, 0) || tm_htm_wait(&lock->queued.word.value, 0))
            return;
        tm_htm_abandon();
    }
    tm_cx_lock_acquire(lock);
}

bool tm_cx_lock_try_slow(struct tm_cx_lock *lock, unsigned long status, struct tm_htm_tries tries)
{
    if (!try_again(lock, status, &tries)) {
        if (!tm_queued_lock_try_acquire(&lock->queued))
            return false;
        tm_htm_order();
        return true;
    }
    if (tm_htm_test(&lock->queued.word.value, 0))
        return true;
    tm_htm_section_commit();
    return false;
}

/* 0 -> TM_QUEUE_LOCKED if the contention manager allows it; otherwise the processor joins the queue. */
void tm_cx_lock_acquire(struct tm_cx_lock *lock)
{
    enum tm_htm_answer answer = TM_HTM_REFUSED;
    unsigned refusals;

    for (refusals = 0; answer == TM_HTM_REFUSED && refusals < tm_htm_refusals_max; refusals++)
        answer = tm_htm_acquire(&lock->queued.word.value, TM_QUEUE_LOCKED);
    if (answer == TM_HTM_SWAPPED) {
        tm_lock_taken(&lock->queued);
        return;
    }
    tm_queued_lock_acquire(&lock->queued);
    tm_htm_order();
}

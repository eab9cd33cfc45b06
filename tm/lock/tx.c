/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/tx.h>

/* reads -> open again, or writes. */
void tm_tx_lock_slow(struct tm_tx_lock *lock, unsigned long status, struct tm_htm_tries tries, unsigned retry)
{
    while (status != TM_HTM_STARTED) {
        if (!tm_htm_may_retry(status, &tries, retry)) {
            tm_htm_abandon();
            tm_queued_rw_lock_read_release(&lock->rw);
            tx_spin_lock_non(lock);
            return;
        }
        status = tm_htm_again();
    }
}

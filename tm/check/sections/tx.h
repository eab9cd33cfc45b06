/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/tx.h>

#define SECTION_NAME tx
#define SECTION_LOCK struct tm_tx_lock
#define SECTION_ENTER(lock) tx_spin_lock(lock)
#define SECTION_ENTER_ALONE(lock) tx_spin_lock_non(lock)
#define SECTION_TRY(lock) (tx_spin_lock_retry(lock, 1), true)
#define SECTION_LEAVE(lock) tx_spin_unlock(lock)
#define SECTION_ANY_ORDER 0
#define SECTION_ALONE_WAITS 1

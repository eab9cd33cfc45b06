/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/tx.h>

#include "../transactional.h"

#define LOCK_NAME tx
#define LOCK_TYPE struct tm_tx_lock
#define LOCK_INITIALIZER TM_TX_LOCK_INITIALIZER
#define LOCK_ACQUIRE(lock, context) tx_spin_lock(lock)
#define LOCK_RELEASE(lock, context) tx_spin_unlock(lock)
#define LOCK_IS_IDLE(lock) \
    (!__atomic_load_n(&(lock)->rw.word, __ATOMIC_RELAXED) && !__atomic_load_n(&(lock)->alone, __ATOMIC_RELAXED))

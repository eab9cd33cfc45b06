/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queued spinlock that raw_spinlock_t uses, and spinlock_t where its section takes the lock. In a
 * transaction it restarts the transaction as an exclusive section.
 */
#ifndef _ASM_RISCV_SPINLOCK_H
#define _ASM_RISCV_SPINLOCK_H

#include <asm-generic/qspinlock.h>
#undef arch_spin_lock
#undef arch_spin_trylock
#undef arch_spin_unlock
#include <asm/qrwlock.h>
#include <asm/cx.h>

static __always_inline void arch_spin_lock(arch_spinlock_t *lock)
{
	cx_require_exclusive();
	cx_queued_lock(lock, CONCORD_SECTION_RAW);
}

static __always_inline int arch_spin_trylock(arch_spinlock_t *lock)
{
	cx_require_exclusive();
	return cx_queued_trylock(lock, CONCORD_SECTION_RAW);
}

static __always_inline void arch_spin_unlock(arch_spinlock_t *lock)
{
	cx_queued_unlock(lock);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What raw_spinlock_t, and spinlock_t as a lock, are made of: the queued spinlock, which in a transaction asks for exclusivity.
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

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processor-specific part of cooperative transactional spinlocks (<linux/cx.h>): the hints that
 * mark critical sections, and the queued spinlock that serves as the fallback lock.
 */
#ifndef _ASM_RISCV_CX_H
#define _ASM_RISCV_CX_H

#include <asm/cx_spinning.h>

/*
 * The hints cost no time and are present in every mode. The simulator takes the section's call site
 * from ra. cx_hint() is for paths that have called no function, so that ra still holds the return
 * address of the lock function; on other paths cx_hint_for() puts the caller's address back into ra.
 */
#define cx_hint(code, lock) asm volatile("slti x0, %0, %1" : : "r" (lock), "i" (code))
#define cx_hint_for(code, lock, caller) do {						\
	register unsigned long cx_caller_ asm("ra") = (caller);				\
	asm volatile("slti x0, %0, %1" : : "r" (lock), "i" (code), "r" (cx_caller_));	\
} while (0)

/* Restarts the current transaction, if there is one, as a section that holds its lock. */
static __always_inline void cx_require_exclusive(void)
{
	if (static_branch_unlikely(&cx_key) && unlikely(xgettxid()))
		xrestart(xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, CX_CODE_RAW));
}

/* Queues for a taken lock. Not inlined, so that the lock functions need no stack frame. */
void cx_queued_lock_slow(arch_spinlock_t *lock, u32 value, unsigned long caller, int kind);

/* 0,0,0 -> 0,0,1 (tail, pending, locked: see kernel/locking/qspinlock.c) */
static __always_inline void cx_queued_lock(arch_spinlock_t *lock, int kind)
{
	int value = 0;

	if (likely(atomic_try_cmpxchg_acquire(&lock->val, &value, _Q_LOCKED_VAL)))
		cx_hint(CONCORD_HINT_SECTION_LOCKED + kind, lock);
	else
		cx_queued_lock_slow(lock, value, _RET_IP_, kind);
}

static __always_inline int cx_queued_trylock(arch_spinlock_t *lock, int kind)
{
	if (!queued_spin_trylock(lock))
		return 0;
	cx_hint(CONCORD_HINT_SECTION_LOCKED + kind, lock);
	return 1;
}

/* *,*,1 -> *,*,0 */
static __always_inline void cx_queued_unlock(arch_spinlock_t *lock)
{
	cx_hint(CONCORD_HINT_SECTION_END, lock);
	queued_spin_unlock(lock);
}

#endif

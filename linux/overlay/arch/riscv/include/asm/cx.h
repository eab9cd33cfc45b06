/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What cooperative transactional spinlocks (<linux/cx.h>) need of the processor, and the lock that they fall back on.
 */
#ifndef _ASM_RISCV_CX_H
#define _ASM_RISCV_CX_H

#include <asm/cx_spinning.h>

/*
 * The sections' hints cost nothing and stand in every mode. They name the caller of the lock function by ra: cx_hint is for paths on
 * which nothing has been called, so that ra is still what it was; the others bring the caller back.
 */
#define cx_hint(code, lock) asm volatile("slti x0, %0, %1" : : "r" (lock), "i" (code))
#define cx_hint_for(code, lock, caller) do {						\
	register unsigned long cx_caller_ asm("ra") = (caller);				\
	asm volatile("slti x0, %0, %1" : : "r" (lock), "i" (code), "r" (cx_caller_));	\
} while (0)

/* In a transaction, starts it again as a section with its lock. */
static __always_inline void cx_require_exclusive(void)
{
	if (static_branch_unlikely(&cx_key) && unlikely(xgettxid()))
		xrestart(xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, CX_CODE_RAW));
}

/* 0 -> taken by others; not inlined, so that the lock functions need no stack frame. */
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

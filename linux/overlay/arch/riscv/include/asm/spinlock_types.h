/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queued spinlock in place of the ticket lock that 6.12 uses on RISC-V (6.13 queues as well). A transaction subscribes to a lock by
 * testing its word for one value; the free ticket lock has 65,536 of them, the free queued lock has one, 0.
 */
#ifndef _ASM_RISCV_SPINLOCK_TYPES_H
#define _ASM_RISCV_SPINLOCK_TYPES_H

#include <asm-generic/qspinlock_types.h>
#include <asm-generic/qrwlock_types.h>

#endif

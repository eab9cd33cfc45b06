/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queued spinlock replaces the ticket lock that Linux 6.12 uses on RISC-V (6.13 uses queued
 * spinlocks as well). A transaction subscribes to a lock by comparing its word with one value. A free
 * ticket lock can have any of 65,536 values; a free queued spinlock has one, 0.
 */
#ifndef _ASM_RISCV_SPINLOCK_TYPES_H
#define _ASM_RISCV_SPINLOCK_TYPES_H

#include <asm-generic/qspinlock_types.h>
#include <asm-generic/qrwlock_types.h>

#endif

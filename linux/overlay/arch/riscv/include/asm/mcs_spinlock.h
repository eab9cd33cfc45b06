/* SPDX-License-Identifier: GPL-2.0-only */
/* kernel/locking/qspinlock.c includes a header of this name. */
#ifndef _ASM_RISCV_MCS_SPINLOCK_H
#define _ASM_RISCV_MCS_SPINLOCK_H

#include <asm-generic/mcs_spinlock.h>

#endif

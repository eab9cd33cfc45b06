/* SPDX-License-Identifier: GPL-2.0-only */
/* kernel/locking/qspinlock.c includes a header of this name. */
#ifndef _ASM_RISCV_QSPINLOCK_H
#define _ASM_RISCV_QSPINLOCK_H

#include <asm-generic/qspinlock.h>

#endif

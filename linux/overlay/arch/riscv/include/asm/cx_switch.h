/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets the conflict priority of the thread that a processor switches to (section 6.1 of the paper). */
#ifndef _ASM_RISCV_CX_SWITCH_H
#define _ASM_RISCV_CX_SWITCH_H

#include <asm/cx_spinning.h>

unsigned long cx_priority(const struct task_struct *task);

#define cx_switch_to(next) do {						\
	if (static_branch_unlikely(&cx_key))				\
		xmetatm_csr_write(CSR_XPRIORITY, cx_priority(next));	\
} while (0)

#endif

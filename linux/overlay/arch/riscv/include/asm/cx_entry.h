/* SPDX-License-Identifier: GPL-2.0-only */
/* Layout of the trap stacks, shared by the entry code and the code that allocates them. */
#ifndef _ASM_RISCV_CX_ENTRY_H
#define _ASM_RISCV_CX_ENTRY_H

/*
 * The stacks of one processor lie below each other in an area that is aligned to its own size. The
 * lowest stack ends (has its highest address) one stack size above the beginning of the area, so a
 * stack end equal to the beginning of the area means that no stack is left. Three stacks are enough
 * for a handler, a soft interrupt during that handler, and an interrupt during the soft interrupt.
 */
#define CX_AREA_SHIFT 16
#define CX_STACK_SIZE (1 << 14)
#define CX_STACKS 3

#endif

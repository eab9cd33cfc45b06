/* SPDX-License-Identifier: GPL-2.0-only */
/* What the entry code and the code that makes its stacks share. */
#ifndef _ASM_RISCV_CX_ENTRY_H
#define _ASM_RISCV_CX_ENTRY_H

/*
 * A processor's stacks lie in an area that is aligned to its size, one below the other. The last one ends one stack's size above the
 * area's beginning: an end at the beginning itself is no stack's. Three are enough for a handler, a soft interrupt in it, and an
 * interrupt in that.
 */
#define CX_AREA_SHIFT 16
#define CX_STACK_SIZE (1 << 14)
#define CX_STACKS 3

#endif

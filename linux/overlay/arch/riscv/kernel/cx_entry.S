/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traps that suspended a transaction of the kernel.
 *
 * The handlers of such traps run on separate stacks of the processor. On the interrupted stack a
 * handler would do harm in two ways (Xmetatm, section 17.1). Its frame, below the current stack
 * pointer, may overwrite the frame of the function that began the transaction and has returned; a
 * restart goes back into that function. And its frame may overlap words that the transaction wrote:
 * then the transaction loses, or its rollback corrupts the handler's frame. On a stack that the
 * transaction has never touched neither can happen.
 *
 * A handler may run transactions itself and be interrupted in one, so each trap takes the next lower
 * stack from cx_stack_next and gives it back on return. When all stacks are taken, or none is
 * allocated yet, the frame goes below both the current stack pointer and the checkpoint's stack
 * pointer. That protects the frames, but the transaction may lose. This code never switches to
 * another thread: sections do not sleep.
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/asm-offsets.h>
#include <asm/cx_entry.h>
#include <asm/csr.h>
#include <asm/xmetatm.h>

	.section .irqentry.text, "ax"

/* After the registers, the frame keeps the previous value of cx_stack_next, or 0 if the trap took no stack. */
#define CX_FRAME_NEXT PT_SIZE_ON_STACK
#define CX_FRAME_SIZE (PT_SIZE_ON_STACK + 16)

/* On entry tp is the kernel's, sscratch holds sp, and sp is free. Interrupts are off. */
SYM_CODE_START(cx_handle_exception)
	REG_S a0, TASK_TI_A0(tp)
	REG_S a1, TASK_TI_A1(tp)

	lw a0, TASK_TI_CPU(tp)
	slli a0, a0, RISCV_LGPTR
	la a1, __per_cpu_offset
	add a1, a1, a0
	REG_L a1, 0(a1)
	la a0, cx_stack_next
	add a0, a0, a1			/* the address of this processor's cx_stack_next */
	REG_L a1, 0(a0)
	slli sp, a1, 64 - CX_AREA_SHIFT
	beqz sp, 1f
	li sp, CX_STACK_SIZE
	sub sp, a1, sp
	REG_S sp, 0(a0)
	mv sp, a1
	j 3f

1:	/* No stack is left: the frame goes below both stack pointers. */
	li a1, 0
	csrr sp, CSR_SCRATCH
	la a0, cx_entry_is_unsafe
	lbu a0, 0(a0)
	bnez a0, 2f
	csrr a0, CSR_XSTACK
	bleu sp, a0, 2f
	mv sp, a0
2:	andi sp, sp, -16

3:	addi sp, sp, -CX_FRAME_SIZE
	REG_S a1, CX_FRAME_NEXT(sp)
	REG_L a0, TASK_TI_A0(tp)
	REG_L a1, TASK_TI_A1(tp)
	REG_S x1, PT_RA(sp)
	REG_S x3, PT_GP(sp)
	REG_S x4, PT_TP(sp)
	REG_S x5, PT_T0(sp)
	save_from_x6_to_x31

	/* The same as in handle_exception, which gives the reasons. */
	li t0, SR_SUM | SR_FS_VS
	csrr s0, CSR_SCRATCH
	csrrc s1, CSR_STATUS, t0
	csrr s2, CSR_EPC
	csrr s3, CSR_TVAL
	csrr s4, CSR_CAUSE
	REG_S s0, PT_SP(sp)
	REG_S s1, PT_STATUS(sp)
	REG_S s2, PT_EPC(sp)
	REG_S s3, PT_BADADDR(sp)
	REG_S s4, PT_CAUSE(sp)
	csrw CSR_SCRATCH, x0
	/* A trap from here on suspends a transaction of this handler, or none. */
	csrw CSR_XTRAP, x0
	load_global_pointer
	mv a0, sp

	bltz s4, 4f
	slli t0, s4, RISCV_LGPTR
	la t1, excp_vect_table
	la t2, excp_vect_table_end
	add t0, t1, t0
	la t1, do_trap_unknown
	bgeu t0, t2, 5f
	REG_L t1, 0(t0)
	j 5f
4:	la t1, do_irq
5:	jalr t1

	/* Interrupts are off. The sret resumes the transaction, or restarts it if it has lost. */
	REG_L a1, CX_FRAME_NEXT(sp)
	beqz a1, 6f
	lw a0, TASK_TI_CPU(tp)
	slli a0, a0, RISCV_LGPTR
	la a2, __per_cpu_offset
	add a2, a2, a0
	REG_L a2, 0(a2)
	la a0, cx_stack_next
	add a0, a0, a2
	REG_S a1, 0(a0)
6:	li a0, XTRAP_PT
	csrw CSR_XTRAP, a0

	REG_L a0, PT_STATUS(sp)
	/* Cancels a reservation made by LR, as ret_from_exception does. */
	REG_L a2, PT_EPC(sp)
	REG_SC x0, a2, PT_EPC(sp)
	csrw CSR_STATUS, a0
	csrw CSR_EPC, a2
	REG_L x1, PT_RA(sp)
	REG_L x3, PT_GP(sp)
	REG_L x5, PT_T0(sp)
	restore_from_x6_to_x31
	REG_L x2, PT_SP(sp)
	sret
SYM_CODE_END(cx_handle_exception)

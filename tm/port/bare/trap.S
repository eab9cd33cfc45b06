/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The entry of traps in S-mode: saves the registers of the interrupted code, calls tm_bare_trapped(cause,
 * &program_counter, value), and returns to that program counter.
 *
 * The interrupted code may be a transaction, which is suspended and may restart at the end, with the stack that it
 * began with: no handler may store there (docs/xmetatm.md, section 17.1). The first handler moves to the stack below
 * the `struct tm_bare_hart` that sscratch points to; one that interrupts a handler stays on that stack, and goes below
 * the transaction that it suspended.
 */
#include "xmetatm.h"

        /* Of struct tm_bare_hart in port.h, where harts.c checks them. */
        .equ    HART_SP, 0
        .equ    HART_T0, 8
        .equ    HART_LEVEL, 16
        .equ    HART_HAS_XMETATM, 24

        .equ    FRAME_SIZE, 160
        /* Above the fourteen of each_register. */
        .equ    FRAME_T0, 112
        .equ    FRAME_T6, 120
        .equ    FRAME_SP, 128
        .equ    FRAME_SEPC, 136
        .equ    FRAME_SSTATUS, 144
        .equ    FRAME_XTRAP, 152

.macro each_register operation
        \operation ra, 0(sp)
        \operation t1, 8(sp)
        \operation t2, 16(sp)
        \operation t3, 24(sp)
        \operation t4, 32(sp)
        \operation t5, 40(sp)
        \operation a0, 48(sp)
        \operation a1, 56(sp)
        \operation a2, 64(sp)
        \operation a3, 72(sp)
        \operation a4, 80(sp)
        \operation a5, 88(sp)
        \operation a6, 96(sp)
        \operation a7, 104(sp)
.endm

        .text
        .globl  tm_bare_trap
        .balign 4
tm_bare_trap:
        csrrw   t6, sscratch, t6
        sd      sp, HART_SP(t6)
        sd      t0, HART_T0(t6)
        ld      t0, HART_LEVEL(t6)
        addi    t0, t0, 1
        sd      t0, HART_LEVEL(t6)
        addi    t0, t0, -1
        beqz    t0, 1f
        lbu     t0, HART_HAS_XMETATM(t6)
        beqz    t0, 2f
        csrr    t0, CSR_XTRAP
        beqz    t0, 2f
        csrr    t0, CSR_XSTACK
        bleu    sp, t0, 2f
        mv      sp, t0
        j       2f
1:      mv      sp, t6
2:      addi    sp, sp, -FRAME_SIZE
        each_register sd
        ld      t0, HART_SP(t6)
        sd      t0, FRAME_SP(sp)
        ld      t0, HART_T0(t6)
        sd      t0, FRAME_T0(sp)
        csrr    t0, sscratch
        sd      t0, FRAME_T6(sp)
        csrw    sscratch, t6

        /* The next trap overwrites these. */
        csrr    t0, sepc
        sd      t0, FRAME_SEPC(sp)
        csrr    t0, sstatus
        sd      t0, FRAME_SSTATUS(sp)
        lbu     t0, HART_HAS_XMETATM(t6)
        beqz    t0, 3f
        csrr    t0, CSR_XTRAP
        sd      t0, FRAME_XTRAP(sp)

3:      csrr    a0, scause
        addi    a1, sp, FRAME_SEPC
        csrr    a2, stval
        call    tm_bare_trapped

        csrci   sstatus, 2
        csrr    t6, sscratch
        ld      t0, HART_LEVEL(t6)
        addi    t0, t0, -1
        sd      t0, HART_LEVEL(t6)
        lbu     t0, HART_HAS_XMETATM(t6)
        beqz    t0, 4f
        ld      t0, FRAME_XTRAP(sp)
        csrw    CSR_XTRAP, t0
4:      ld      t0, FRAME_SEPC(sp)
        csrw    sepc, t0
        ld      t0, FRAME_SSTATUS(sp)
        csrw    sstatus, t0
        each_register ld
        ld      t0, FRAME_T0(sp)
        ld      t6, FRAME_T6(sp)
        ld      sp, FRAME_SP(sp)
        /* Resumes the transaction, or restarts it if it has lost meanwhile. */
        sret

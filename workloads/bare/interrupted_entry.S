/*
 * The trap vector of interrupted.c: the duties of an entry towards the transaction that the trap has suspended.
 *
 * The entry switches to another stack before its first store. That is one of the two ways to obey the live-stack rule.
 * (The other is to stay on the interrupted stack, below the lower of sp and CSR_XSTACK.) sscratch points to the hart's
 * `struct hart`, directly above that stack, and holds the interrupted sp while the handler runs.
 */
#include "../include/xmetatm.h"

        .equ    FRAME_SIZE, 160

        .text
        .globl  interrupted_entry
        .balign 4
interrupted_entry:
        csrrw   sp, sscratch, sp
        addi    sp, sp, -FRAME_SIZE
        sd      ra, 0(sp)
        sd      t0, 8(sp)
        sd      t1, 16(sp)
        sd      t2, 24(sp)
        sd      t3, 32(sp)
        sd      t4, 40(sp)
        sd      t5, 48(sp)
        sd      t6, 56(sp)
        sd      a0, 64(sp)
        sd      a1, 72(sp)
        sd      a2, 80(sp)
        sd      a3, 88(sp)
        sd      a4, 96(sp)
        sd      a5, 104(sp)
        sd      a6, 112(sp)
        sd      a7, 120(sp)
        /* Another trap inside the handler would overwrite these three registers, and so would the return from it. */
        csrr    t0, CSR_XTRAP
        csrr    t1, sepc
        csrr    t2, sstatus
        sd      t0, 128(sp)
        sd      t1, 136(sp)
        sd      t2, 144(sp)

        addi    a0, sp, FRAME_SIZE
        csrr    a1, scause
        mv      a2, t1
        csrr    a3, stval
        call    timer

        ld      t0, 128(sp)
        ld      t1, 136(sp)
        ld      t2, 144(sp)
        csrw    CSR_XTRAP, t0
        csrw    sepc, t1
        csrw    sstatus, t2
        ld      ra, 0(sp)
        ld      t0, 8(sp)
        ld      t1, 16(sp)
        ld      t2, 24(sp)
        ld      t3, 32(sp)
        ld      t4, 40(sp)
        ld      t5, 48(sp)
        ld      t6, 56(sp)
        ld      a0, 64(sp)
        ld      a1, 72(sp)
        ld      a2, 80(sp)
        ld      a3, 88(sp)
        ld      a4, 96(sp)
        ld      a5, 104(sp)
        ld      a6, 112(sp)
        ld      a7, 120(sp)
        addi    sp, sp, FRAME_SIZE
        csrrw   sp, sscratch, sp
        /* Resumes the transaction. If it has lost, this goes to its xbegin instead of to sepc. */
        sret

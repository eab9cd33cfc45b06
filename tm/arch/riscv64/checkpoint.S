/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * riscv64: the begins, which return again, and the way back into them.
 *
 * A begin stores the registers that its caller expects to be preserved into a struct tm_checkpoint (tm/arch.h) in its
 * own frame:
 *
 *     0 s0 ... 88 s11 | 96 sp | 104 ra | 112 fs0 ... 200 fs11, where the calling convention preserves these
 *
 * and passes it to a function in C that copies it. fcsr is not kept: a transaction that changes it finds it changed
 * when it restarts.
 */

#define SP_OFFSET_BYTES 96
#define RA_OFFSET_BYTES 104
#define FS_OFFSET_BYTES 112
#ifdef __riscv_float_abi_double
#define CHECKPOINT_SIZE_BYTES 208
#else
#define CHECKPOINT_SIZE_BYTES 112
#endif

/* Does `operation` with each preserved register and its slot above `base`. */
.macro EACH_INTEGER operation, base
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    \operation s\number, (8 * \number)(\base)
    .endr
.endm

.macro EACH_FLOAT operation, base
#ifdef __riscv_float_abi_double
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    \operation fs\number, (FS_OFFSET_BYTES + 8 * \number)(\base)
    .endr
#endif
.endm

/* unsigned name(unsigned how): returns the answer of function(how, checkpoint). */
.macro BEGIN name, function
    .globl  \name
    .type   \name, @function
    .hidden \function
    .balign 4
\name:
    .cfi_startproc
    mv      t0, sp
    addi    sp, sp, -CHECKPOINT_SIZE_BYTES
    .cfi_adjust_cfa_offset CHECKPOINT_SIZE_BYTES
    EACH_INTEGER sd, sp
    sd      t0, SP_OFFSET_BYTES(sp)
    sd      ra, RA_OFFSET_BYTES(sp)
    .cfi_offset ra, RA_OFFSET_BYTES - CHECKPOINT_SIZE_BYTES
    EACH_FLOAT fsd, sp
    mv      a1, sp
    call    \function
    ld      ra, RA_OFFSET_BYTES(sp)
    .cfi_restore ra
    addi    sp, sp, CHECKPOINT_SIZE_BYTES
    .cfi_adjust_cfa_offset -CHECKPOINT_SIZE_BYTES
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

    .text

BEGIN tm_start, tm_start_at
BEGIN tm_restart_here, tm_restart_here_at
#ifndef TM_WITHOUT_ITM
BEGIN _ITM_beginTransaction, tm_itm_begin
#endif

/*
 * void tm_checkpoint_resume(const struct tm_checkpoint *checkpoint, unsigned answer): returns from the begin once more.
 */
    .globl  tm_checkpoint_resume
    .hidden tm_checkpoint_resume
    .type   tm_checkpoint_resume, @function
    .balign 4
tm_checkpoint_resume:
    .cfi_startproc
    .cfi_def_cfa a0, 0
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    .cfi_offset s\number, 8 * \number
    .endr
    .cfi_offset sp, SP_OFFSET_BYTES
    .cfi_offset ra, RA_OFFSET_BYTES
    mv      t0, a0
    .cfi_def_cfa_register t0
    mv      a0, a1
    EACH_INTEGER ld, t0
    EACH_FLOAT fld, t0
    ld      ra, RA_OFFSET_BYTES(t0)
    ld      sp, SP_OFFSET_BYTES(t0)
    ret
    .cfi_endproc
    .size   tm_checkpoint_resume, . - tm_checkpoint_resume

    .section .note.GNU-stack, "", @progbits

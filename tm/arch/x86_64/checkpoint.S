/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * x86-64: the begins, which return again, and the way back into them.
 *
 * A begin stores the registers that its caller expects to be preserved into a struct tm_checkpoint (tm/arch.h) in its
 * own frame:
 *
 *     0 rbx | 8 rbp | 16 r12 | 24 r13 | 32 r14 | 40 r15 | 48 rsp after the return | 56 return address
 *
 * and passes it to a function in C that copies it. MXCSR and the x87 control word are not kept: a transaction that
 * changes them finds them changed when it restarts.
 *
 * In the Linux kernel, TM_RETURN is a jump to its return thunk (-DTM_RETURN=...).
 */

#ifndef TM_RETURN
#define TM_RETURN ret
#endif

#if defined(__CET__) && (__CET__ & 1)
#define ENTRY_OF_INDIRECT_CALLS endbr64
#else
#define ENTRY_OF_INDIRECT_CALLS
#endif

#define CHECKPOINT_SIZE_BYTES 64
/* The return address is above; a call needs the stack at a multiple of 16. */
#define FRAME_SIZE_BYTES (CHECKPOINT_SIZE_BYTES + 8)

/* unsigned name(unsigned how): returns the answer of function(how, checkpoint). */
.macro BEGIN name, function
    .globl  \name
    .type   \name, @function
    .hidden \function
    .balign 64
\name:
    .cfi_startproc
    ENTRY_OF_INDIRECT_CALLS
    leaq    8(%rsp), %rax
    movq    (%rsp), %rdx
    subq    $FRAME_SIZE_BYTES, %rsp
    .cfi_adjust_cfa_offset FRAME_SIZE_BYTES
    movq    %rbx, 0(%rsp)
    movq    %rbp, 8(%rsp)
    movq    %r12, 16(%rsp)
    movq    %r13, 24(%rsp)
    movq    %r14, 32(%rsp)
    movq    %r15, 40(%rsp)
    movq    %rax, 48(%rsp)
    movq    %rdx, 56(%rsp)
    movq    %rsp, %rsi
    call    \function
    addq    $FRAME_SIZE_BYTES, %rsp
    .cfi_adjust_cfa_offset -FRAME_SIZE_BYTES
    TM_RETURN
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
 * It puts the return address where the begin's caller had put it, and returns, since an indirect jump may go only to
 * landing pads.
 */
    .globl  tm_checkpoint_resume
    .hidden tm_checkpoint_resume
    .type   tm_checkpoint_resume, @function
    .balign 16
tm_checkpoint_resume:
    .cfi_startproc
    ENTRY_OF_INDIRECT_CALLS
    .cfi_def_cfa rdi, 0
    .cfi_offset rbx, 0
    .cfi_offset rbp, 8
    .cfi_offset r12, 16
    .cfi_offset r13, 24
    .cfi_offset r14, 32
    .cfi_offset r15, 40
    .cfi_offset rsp, 48
    .cfi_offset rip, 56
    movl    %esi, %eax
    movq    0(%rdi), %rbx
    movq    8(%rdi), %rbp
    movq    16(%rdi), %r12
    movq    24(%rdi), %r13
    movq    32(%rdi), %r14
    movq    40(%rdi), %r15
    movq    48(%rdi), %rsp
    pushq   56(%rdi)
    TM_RETURN
    .cfi_endproc
    .size   tm_checkpoint_resume, . - tm_checkpoint_resume

    .section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The entry points of harts. The boot hart enters in S-mode with its number in a0 and the device tree in a1, as the SBI
 * starts a kernel. The others enter through `sbi_hart_start`, with their number in a0 and in a1 the index that `boot`
 * chose. The boot hart has index 0. Each hart has its own stack.
 */
        .ifndef STACK_SIZE_LOG2
        .equ    STACK_SIZE_LOG2, 12
        .endif
#ifdef TM_BARE_HARTS_MAX
        .equ    HARTS_MAX, TM_BARE_HARTS_MAX
#else
        .equ    HARTS_MAX, 64
#endif

        .section .text.start, "ax"
        .globl  _start
_start:
        la      sp, stacks + (1 << STACK_SIZE_LOG2)
        la      t0, unexpected_trap
        csrw    stvec, t0
        csrw    sie, zero
        tail    boot

        .globl  secondary_start
secondary_start:
        la      sp, stacks
        addi    t0, a1, 1
        slli    t0, t0, STACK_SIZE_LOG2
        add     sp, sp, t0
        la      t0, unexpected_trap
        csrw    stvec, t0
        csrw    sie, zero
        mv      a0, a1
        tail    secondary

        /* These programs expect no traps: a trap ends the run, on a fresh stack in case the old one is broken. */
        .balign 4
unexpected_trap:
        la      sp, stacks + (1 << STACK_SIZE_LOG2)
        csrr    a0, scause
        csrr    a1, sepc
        csrr    a2, stval
        tail    trapped

        /* A data word, not a constant in the code, so that a test can also patch it in the ELF file. */
        .data
        .balign 8
        .globl  iterations_default
iterations_default:
        .quad   ITERATIONS

        .bss
        .balign 16
stacks: .skip   HARTS_MAX << STACK_SIZE_LOG2

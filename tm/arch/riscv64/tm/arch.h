/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* riscv64: the registers that a transaction keeps, and stores that an interrupt handler can forbid. */
#ifndef TM_ARCH_H
#define TM_ARCH_H

/* As checkpoint.S stores them: s0 to s11, sp, ra; and fs0 to fs11 where the calling convention preserves them. */
#define TM_CHECKPOINT_STACK 12
#ifdef __riscv_float_abi_double
#define TM_CHECKPOINT_WORDS 26
#else
#define TM_CHECKPOINT_WORDS 14
#endif

/* The stack pointer of a function's caller, after the call has returned: s0 is the stack pointer at the entry. */
#define TM_CALLERS_STACK() ((uintptr_t)__builtin_frame_address(0))

/* A later load may still take effect before the SC's own store, even if the SC is ordered both ways. */
#define TM_FENCE_AFTER_LOCKED() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#include <tm/arch/common.h>

/* See arch/x86_64/tm/arch.h. */
#define TM_DEFINE_GUARDED_STORE(bits, suffix) \
    TM_GUARDED_STORE_FUNCTION bool tm_guarded_store##bits(const uint32_t *stop, void *address, uint##bits##_t value) \
    { \
        (void)TM_SHOW_STORE(stop, address, bits); \
        __asm__ goto volatile("1: lw t0, %[stop]\n\tbnez t0, %l[stopped]\n\ts" suffix " %[value], (%[address])\n2:\n" \
                              TM_RESTARTABLE_RANGE \
                              : \
                              : [stop] "m"(*stop), [address] "r"(address), [value] "r"(value) \
                              : "t0", "memory" \
                              : stopped); \
        return true; \
    stopped: \
        return false; \
    }

#ifndef TM_PORT_GUARDED_STORE
TM_DEFINE_GUARDED_STORE(8, "b")
TM_DEFINE_GUARDED_STORE(16, "h")
TM_DEFINE_GUARDED_STORE(32, "w")
TM_DEFINE_GUARDED_STORE(64, "d")
#endif

#endif

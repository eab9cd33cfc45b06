/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* x86-64: the registers that a transaction keeps, and stores that an interrupt handler can forbid. */
#ifndef TM_ARCH_H
#define TM_ARCH_H

/* As checkpoint.S stores them: rbx, rbp, r12, r13, r14, r15, rsp after the return, the return address. */
#define TM_CHECKPOINT_STACK 6
#define TM_CHECKPOINT_WORDS 8

/* The stack pointer of a function's caller, after the call has returned. */
#define TM_CALLERS_STACK() ((uintptr_t)__builtin_dwarf_cfa())

/* Other processors see stores in order, and a locked instruction is a fence. */
#define TM_FENCE_AFTER_LOCKED() __asm__ volatile("" : : : "memory")

#include <tm/arch/common.h>

/*
 * If *stop is 0, stores and returns true. An interrupt between the look and the store returns to the look (the address
 * range is in tm_restartable), so a handler's store to *stop forbids the very next store.
 */
#define TM_DEFINE_GUARDED_STORE(bits, suffix) \
    TM_GUARDED_STORE_FUNCTION bool tm_guarded_store##bits(const uint32_t *stop, void *address, uint##bits##_t value) \
    { \
        (void)TM_SHOW_STORE(stop, address, bits); \
        __asm__ goto volatile("1: cmpl $0, %[stop]\n\tjne %l[stopped]\n\tmov" suffix " %[value], (%[address])\n2:\n" \
                              TM_RESTARTABLE_RANGE \
                              : \
                              : [stop] "m"(*stop), [address] "r"(address), [value] TM_VALUE_CONSTRAINT(bits)(value) \
                              : "cc", "memory" \
                              : stopped); \
        return true; \
    stopped: \
        return false; \
    }
#define TM_VALUE_CONSTRAINT(bits) TM_VALUE_CONSTRAINT_##bits
#define TM_VALUE_CONSTRAINT_8 "q"
#define TM_VALUE_CONSTRAINT_16 "r"
#define TM_VALUE_CONSTRAINT_32 "r"
#define TM_VALUE_CONSTRAINT_64 "r"

#ifndef TM_PORT_GUARDED_STORE
TM_DEFINE_GUARDED_STORE(8, "b")
TM_DEFINE_GUARDED_STORE(16, "w")
TM_DEFINE_GUARDED_STORE(32, "l")
TM_DEFINE_GUARDED_STORE(64, "q")
#endif

#endif

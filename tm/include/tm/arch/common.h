/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Definitions shared by the <tm/arch.h> of all processors. */
#ifndef TM_ARCH_COMMON_H
#define TM_ARCH_COMMON_H

#include <tm/port.h>

/*
 * The registers that a function call preserves, the stack pointer and the return address, of the function that called a
 * begin.
 */
struct tm_checkpoint {
    uintptr_t registers[TM_CHECKPOINT_WORDS];
};

/* Goes back to the begin that made the checkpoint, which returns `answer` once more (checkpoint.S). */
TM_NORETURN void tm_checkpoint_resume(const struct tm_checkpoint *checkpoint, unsigned answer)
    __attribute__((visibility("hidden")));

/*
 * The stack from the present frame up to this address belongs to functions that were called since, or that have
 * returned.
 */
static inline uintptr_t tm_checkpoint_stack(const struct tm_checkpoint *checkpoint)
{
    return checkpoint->registers[TM_CHECKPOINT_STACK];
}

/*
 * <tm/arch.h> defines guarded stores, tm_guarded_store{8,16,32,64}(stop, address, value), as restartable sequences: the
 * entry of an interrupt handler calls tm_interrupt_enter with the interrupted program counter, which is set back if it
 * is inside such a sequence. A host whose handlers cannot do that defines TM_PORT_GUARDED_STORE and these functions
 * itself (with interrupts disabled, for example).
 *
 * ThreadSanitizer does not see assembly. An addition of 0 stands for it there; under ThreadSanitizer signals come only
 * in calls of its own.
 */
#ifdef TM_PORT_GUARDED_STORE
TM_PORT_GUARDED_STORE(8)
TM_PORT_GUARDED_STORE(16)
TM_PORT_GUARDED_STORE(32)
TM_PORT_GUARDED_STORE(64)
#else

/* Distances from the table to the look and to the end of the store. */
struct tm_restartable_range {
    int32_t begin;
    int32_t end;
};
extern const struct tm_restartable_range __start_tm_restartable[] __attribute__((visibility("hidden")));
extern const struct tm_restartable_range __stop_tm_restartable[] __attribute__((visibility("hidden")));

#define TM_RESTARTABLE_RANGE ".pushsection tm_restartable, \"aR\"\n\t.balign 4\n\t.long 1b - .\n\t.long 2b - .\n\t.popsection"
#ifdef __SANITIZE_THREAD__
#define TM_SHOW_STORE(stop, address, bits) \
    (__atomic_load_n(stop, __ATOMIC_RELAXED) ? 0 : __atomic_fetch_add((uint##bits##_t *)(address), 0, __ATOMIC_RELEASE))
#else
#define TM_SHOW_STORE(stop, address, bits) 0
#endif
#define TM_GUARDED_STORE_FUNCTION static inline __attribute__((always_inline, unused))

#endif

#endif

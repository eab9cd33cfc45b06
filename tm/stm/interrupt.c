/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactions of interrupt handlers, after Schultz, "Using Software Transactional Memory in Interrupt-Driven Systems",
 * 2009: a handler's transaction is obstinate and wins every conflict. Departures from the thesis:
 * - Each level has its own context, so handlers nest; the thesis switches one segment register.
 * - A handler may meet a record of a transaction that its own processor interrupted, and that could not go on while the
 *   handler waits. So the handler ends that transaction itself (overtakes it): it finishes a decided commit, and rolls
 *   back any other transaction. The interrupted transaction finds out at its next store, which is guarded
 *   (<tm/arch.h>), at its next read, or at its commit.
 */
#include <tm/interrupt.h>

#include "transaction.h"

/* Two stacks are further apart than this bound on a signal's frame and a handler's first functions. */
#define HANDLER_STACK_BYTES_MAX (256u * 1024)

bool tm_has_interrupted(const struct tm_transaction *level, const struct tm_transaction *other)
{
    for (const struct tm_transaction *context = level->interrupted; context; context = context->interrupted)
        if (context == other)
            return true;
    return false;
}

/* Where the stack of an interrupted context ends. Its handlers run below that, if they use the same stack. */
static uintptr_t stack_end(const struct tm_transaction *interrupted)
{
    uintptr_t end = TM_DEAD_BEGIN();
    for (const struct tm_transaction *level = tm_port_transaction(); level != interrupted; level = level->interrupted)
        if (!level->is_on_interrupted_stack)
            end = level->interrupted->stack_interrupted - TM_RED_ZONE_BYTES;
    return end;
}

void tm_overtake(struct tm_transaction *interrupted)
{
    if (interrupted->overtaken == TM_OVERTAKEN_FINISHED)
        return;
    uintptr_t end = stack_end(interrupted);
    if (interrupted->phase == TM_PHASE_DECIDED) {
        interrupted->commit_dead.begin = end;
        tm_algorithm_finish(interrupted);
        __atomic_store_n(&interrupted->overtaken, TM_OVERTAKEN_FINISHED, __ATOMIC_RELEASE);
        return;
    }
    interrupted->rollback_dead = (struct tm_stack_range){end, tm_checkpoint_stack(&interrupted->checkpoint)};
    tm_algorithm_rollback(interrupted);
    __atomic_store_n(&interrupted->horizon, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&interrupted->overtaken, TM_OVERTAKEN_ROLLED_BACK, __ATOMIC_RELEASE);
}

static void overtake_interrupted(const struct tm_transaction *level, bool all)
{
    if (!level->is_interrupt_level)
        return;
    for (struct tm_transaction *context = level->interrupted; context; context = context->interrupted) {
        bool is_wanted = all || __atomic_load_n(&context->doomed, __ATOMIC_ACQUIRE);
        if (is_wanted && (context->activity & 1) && !context->overtaken)
            tm_overtake(context);
    }
}

void tm_overtake_asked(struct tm_transaction *level)
{
    overtake_interrupted(level, false);
}

void tm_overtake_visible(struct tm_transaction *level)
{
    overtake_interrupted(level, true);
}

#ifndef TM_PORT_GUARDED_STORE
/* If an interrupt comes between a guarded store's look and its store, the look is repeated. */
static void restart_guarded_store(uintptr_t *program_counter)
{
    for (const struct tm_restartable_range *range = __start_tm_restartable; range != __stop_tm_restartable; range++) {
        uintptr_t begin = (uintptr_t)&range->begin + (uintptr_t)(intptr_t)range->begin;
        uintptr_t end = (uintptr_t)&range->end + (uintptr_t)(intptr_t)range->end;
        if (*program_counter > begin && *program_counter < end)
            *program_counter = begin;
    }
}
#endif

void tm_interrupt_enter(struct tm_transaction *level, uintptr_t *program_counter, uintptr_t stack_pointer)
{
#ifndef TM_PORT_GUARDED_STORE
    if (program_counter)
        restart_guarded_store(program_counter);
#else
    (void)program_counter;
#endif
    struct tm_transaction *interrupted = tm_port_transaction();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    level->is_on_interrupted_stack = here < stack_pointer && stack_pointer - here < HANDLER_STACK_BYTES_MAX;
    interrupted->stack_interrupted = stack_pointer;
    level->interrupted = interrupted;
    tm_port_transaction_set(level);
}

void tm_interrupt_leave(struct tm_transaction *level)
{
    /* A handler that returns with its transaction open would leave records owned. */
    if (level->depth)
        tm_port_fatal("an interrupt handler returns inside a transaction");
    tm_port_transaction_set(level->interrupted);
    level->interrupted = NULL;
}

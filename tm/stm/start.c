/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The halves of tm_start and tm_restart_here in C. The others are in arch/NAME/checkpoint.S. */
#include "transaction.h"

unsigned tm_start_at(unsigned flags, const struct tm_checkpoint *checkpoint);

unsigned tm_start_at(unsigned flags, const struct tm_checkpoint *checkpoint)
{
    static const struct tm_answers answers = {
        .started = TM_STARTED,
        .direct = TM_STARTED,
        .cancelled = TM_CANCELLED,
        .exhausted = TM_EXHAUSTED,
        .too_deep = TM_TOO_DEEP,
        .misused = TM_MISUSED,
    };

    return tm_begin(flags, !(flags & TM_SERIAL), checkpoint, &answers);
}

unsigned tm_restart_here_at(unsigned unused, const struct tm_checkpoint *checkpoint);

unsigned tm_restart_here_at(unsigned unused, const struct tm_checkpoint *checkpoint)
{
    static const struct tm_answers answers = {
        .started = TM_RESTARTED,
        .direct = TM_RESTARTED,
        .cancelled = TM_CANCELLED,
        .exhausted = TM_EXHAUSTED,
        .too_deep = TM_TOO_DEEP,
    };
    struct tm_transaction *transaction = tm_port_transaction();

    (void)unused;
    if (!transaction->depth)
        return TM_STARTED;
    transaction->checkpoint = *checkpoint;
    transaction->answers = &answers;
    if (transaction->depth > 1) {
        struct tm_nested *nested = (struct tm_nested *)(void *)transaction->nested.next - 1;
        nested->checkpoint = *checkpoint;
        nested->answers = &answers;
    }
    return TM_STARTED;
}

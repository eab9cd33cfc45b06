/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The half of tm_start in C. The other half is in arch/NAME/checkpoint.S. */
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
    };

    return tm_begin(flags, !(flags & TM_SERIAL), checkpoint, &answers);
}

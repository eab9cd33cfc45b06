/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Contexts of harts and of their interrupt handlers, for the library's transactions. */
#include <tm/interrupt.h>
#include <tm/port.h>

#include "clones.h"

static struct {
    struct tm_transaction *own;
    struct tm_transaction *levels[TM_BARE_LEVELS_MAX];
    unsigned prepared;
    unsigned entered;
} TM_ALIGNED_TO_LINE contexts[TM_PROCESSORS_MAX];

struct tm_transaction *tm_port_transaction_make(void)
{
    tm_bare_clones_register();

    struct tm_transaction *own = tm_transaction_create(false);

    if (own) {
        contexts[tm_port_processor()].own = own;
        tm_port_transaction_set(own);
    }
    return own;
}

bool tm_bare_transactions_prepare(unsigned levels)
{
    unsigned processor = tm_port_processor();

    if (levels > TM_BARE_LEVELS_MAX || (!contexts[processor].own && !tm_port_transaction_make()))
        return false;
    while (contexts[processor].prepared < levels) {
        struct tm_transaction *level = tm_transaction_create(true);

        if (!level)
            return false;
        tm_transaction_add_level(contexts[processor].own, level);
        contexts[processor].levels[contexts[processor].prepared++] = level;
    }
    return true;
}

void tm_bare_transactions_enter(void)
{
    struct tm_bare_hart *hart = tm_bare_hart();
    unsigned level = contexts[hart->processor].entered;

    if (level == contexts[hart->processor].prepared)
        tm_port_fatal("a handler with transactions on a hart that is not prepared for it");
    contexts[hart->processor].entered++;
    tm_interrupt_enter(contexts[hart->processor].levels[level], hart->program_counter, hart->stack_pointer);
}

void tm_bare_transactions_leave(void)
{
    unsigned processor = tm_port_processor();
    unsigned level = --contexts[processor].entered;

    tm_interrupt_leave(contexts[processor].levels[level]);
}

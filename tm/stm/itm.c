/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The compiler's interface (itm.h): begin, end, modes, actions, memory. */
#include "itm.h"

/*
 * A restart tells the code to restore its live variables. The first return does not: there is nothing to restore yet.
 * No code runs after an answer of 0.
 */
static const struct tm_answers answers_with_both = {
    .started = ITM_RUN_INSTRUMENTED | ITM_RESTORE_LIVE_VARIABLES,
    .direct = ITM_RUN_UNINSTRUMENTED | ITM_RESTORE_LIVE_VARIABLES,
    .cancelled = ITM_ABORT | ITM_RESTORE_LIVE_VARIABLES,
};
static const struct tm_answers answers_with_instrumented = {
    .started = ITM_RUN_INSTRUMENTED | ITM_RESTORE_LIVE_VARIABLES,
    .direct = ITM_RUN_INSTRUMENTED | ITM_RESTORE_LIVE_VARIABLES,
    .cancelled = ITM_ABORT | ITM_RESTORE_LIVE_VARIABLES,
};

static __attribute__((noreturn, cold)) void fail_to_begin(const struct tm_transaction *transaction)
{
    if (transaction->depth)
        tm_port_fatal("_ITM_beginTransaction: more than TM_DEPTH_MAX transactions are open");
    tm_port_fatal("_ITM_beginTransaction: there is no memory for the state of a thread");
}

uint32_t tm_itm_begin(uint32_t properties, const struct tm_checkpoint *checkpoint)
{
    uint32_t flags = 0;
    if (TM_UNLIKELY(!(properties & ITM_INSTRUMENTED_CODE)) || TM_UNLIKELY(properties & ITM_DOES_GO_IRREVOCABLE)) {
        flags = TM_SERIAL;
        tm_become_irrevocable();
    } else if (properties & ITM_READ_ONLY) {
        flags = TM_READ_ONLY;
    }
    uint32_t answer = tm_begin(flags, !(properties & ITM_HAS_NO_ABORT), checkpoint,
                               properties & ITM_UNINSTRUMENTED_CODE ? &answers_with_both : &answers_with_instrumented);
    if (TM_UNLIKELY(!answer))
        fail_to_begin(tm_port_transaction());
    return answer & ~(uint32_t)ITM_RESTORE_LIVE_VARIABLES;
}

void _ITM_commitTransaction(void)
{
    if (TM_UNLIKELY(tm_commit_from(TM_CALLERS_STACK()) != TM_COMMITTED))
        tm_port_fatal("_ITM_commitTransaction: no transaction is open");
}

void _ITM_abortTransaction(uint32_t reason)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (!transaction->depth)
        tm_port_fatal("_ITM_abortTransaction: no transaction is open");
    switch (reason) {
    case ITM_USER_ABORT:
    case ITM_USER_ABORT | ITM_OUTER_ABORT:
        tm_cancel_level(transaction, reason & ITM_OUTER_ABORT);
    case ITM_USER_RETRY:
    case ITM_CONFLICT:
        tm_abort();
        __builtin_unreachable();
    default:
        tm_port_fatal("_ITM_abortTransaction: unknown reason");
    }
}

void _ITM_changeTransactionMode(uint32_t mode)
{
    if (mode != ITM_MODE_SERIAL_IRREVOCABLE)
        tm_port_fatal("_ITM_changeTransactionMode: unknown mode");
    tm_become_irrevocable_from(TM_CALLERS_STACK());
}

uint32_t _ITM_inTransaction(void)
{
    const struct tm_transaction *transaction = tm_port_transaction();
    if (!transaction->depth)
        return ITM_OUTSIDE_TRANSACTION;
    bool is_irrevocable = transaction->direct && !transaction->direct_undo;
    return is_irrevocable ? ITM_IN_IRREVOCABLE_TRANSACTION : ITM_IN_RETRYABLE_TRANSACTION;
}

itm_transaction_id _ITM_getTransactionId(void)
{
    const struct tm_transaction *transaction = tm_port_transaction();
    if (!transaction->depth)
        return ITM_NO_TRANSACTION_ID;
    /* Contexts and depths have 24 bits together. */
    _Static_assert(TM_PORT_CONTEXTS_MAX <= 1ul << 16 && TM_DEPTH_MAX < 1ul << 8, "an identifier has room for both");
    return transaction->begins << 24 | transaction->number << 8 | transaction->depth;
}

int _ITM_versionCompatible(int version)
{
    return version == ITM_VERSION_NUMBER;
}

const char *_ITM_libraryVersion(void)
{
    return tm_algorithm_name;
}

void _ITM_error(const struct itm_source_location *location, int code)
{
    (void)code;
    tm_port_fatal(location && location->source ? location->source : "_ITM_error");
}

static struct tm_action *add_action(struct tm_transaction *transaction, struct tm_log *log,
                                    void (*function)(void *argument), void *argument)
{
    transaction->unusual = true;
    struct tm_action *action = tm_log_add(transaction, log, sizeof *action);
    *action = (struct tm_action){function, argument};
    log->next += sizeof *action;
    return action;
}

void tm_itm_do_nothing(void *unused)
{
    (void)unused;
}

struct tm_action *tm_itm_add_undo(struct tm_transaction *transaction)
{
    if (!transaction->depth || (transaction->direct && !transaction->direct_undo))
        return NULL;
    return add_action(transaction, &transaction->undo_actions, tm_itm_do_nothing, NULL);
}

void _ITM_addUserCommitAction(void (*function)(void *argument), itm_transaction_id resuming, void *argument)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (resuming != ITM_NO_TRANSACTION_ID)
        tm_port_fatal("_ITM_addUserCommitAction: actions run after the outermost transaction only");
    if (transaction->depth)
        add_action(transaction, &transaction->commit_actions, function, argument);
    else
        function(argument);
}

void _ITM_addUserUndoAction(void (*function)(void *argument), void *argument)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (transaction->depth)
        add_action(transaction, &transaction->undo_actions, function, argument);
}

void _ITM_dropReferences(void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
}

void *_ITM_malloc(size_t size_bytes)
{
    return tm_alloc(size_bytes, 0);
}

void *_ITM_calloc(size_t count, size_t size_bytes)
{
    size_t total_bytes;
    if (__builtin_mul_overflow(count, size_bytes, &total_bytes))
        return NULL;
    void *memory = tm_alloc(total_bytes, 0);
    if (memory)
        tm_itm_clear_private(memory, total_bytes);
    return memory;
}

void _ITM_free(void *memory)
{
    tm_free(memory);
}

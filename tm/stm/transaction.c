/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A transaction's life: begin, nesting, commit, restart, cancel. */
#include "transaction.h"

/* After the first number of restarts a transaction locks what it reads, and after the second it runs alone. */
#define RESTARTS_OPTIMISTIC_MAX 24
#define RESTARTS_MAX 48

/*
 * A back-off is a random number of turns below 2 to the power of this plus the restarts. Two threads with transactions
 * of ten nanoseconds need that much to separate: the one that continues does so for hundreds of transactions.
 */
#define BACKOFF_TURNS_LOG2 5
#define BACKOFF_TURNS_LOG2_MAX 13
/* While a handler waits, no thread of its processor runs. */
#define BACKOFF_TURNS_LOG2_MAX_IN_INTERRUPTS 9

/* After a read-only transaction that had to validate its reads, this many read-only transactions record their loads. */
#define READ_ONLY_RECORDED 64

struct tm_shared tm_shared = {.clock = 1};
tm_orec tm_orecs[TM_ORECS_COUNT] TM_ALIGNED_TO_LINE;
struct tm_transaction tm_outside = {.direct = true, .unusual = true};
const uint32_t tm_never;

/*
 * Decides whether loads leave a record. Those of read-only transactions do not, unless one recently had to validate its
 * reads.
 */
TM_INLINE void choose_record(struct tm_transaction *transaction)
{
    transaction->read_only = transaction->flags & TM_READ_ONLY;
    transaction->read_step_bytes = sizeof(tm_orec *);
    if (transaction->read_only && transaction->read_only_recorded == 0)
        transaction->read_step_bytes = 0;
    else if (transaction->read_only)
        transaction->read_only_recorded--;
}

static void begin_alone(struct tm_transaction *transaction)
{
    tm_serial_begin(transaction);
    tm_mode_set(transaction, TM_MODE_SERIAL);
    transaction->direct_undo = transaction->cancellable;
}

static enum tm_mode mode_with_others(const struct tm_transaction *transaction)
{
    if (transaction->flags & TM_OBSTINATE)
        return TM_MODE_OBSTINATE;
    if ((transaction->flags & TM_PESSIMISTIC) || transaction->restarts >= RESTARTS_OPTIMISTIC_MAX)
        return TM_MODE_PESSIMISTIC;
    return TM_MODE_OPTIMISTIC;
}

/* Begins any attempt but an ordinary first one. All sets are empty: the end of the last attempt has emptied them. */
static __attribute__((__noinline__)) void begin_attempt(struct tm_transaction *transaction)
{
    transaction->unusual = true;
    choose_record(transaction);
    __atomic_store_n(&transaction->doomed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&transaction->overtaken, TM_OVERTAKEN_NOT, __ATOMIC_RELAXED);
    transaction->depth = 1;
    if ((transaction->flags & TM_SERIAL) || (transaction->alone && !transaction->is_interrupt_level)) {
        begin_alone(transaction);
    } else if (tm_solo_begin(transaction)) {
        tm_mode_set(transaction, TM_MODE_SOLO);
        transaction->direct_undo = transaction->cancellable;
    } else {
        tm_wait_while_serial(transaction);
        tm_mode_set(transaction, mode_with_others(transaction));
        transaction->direct = false;
    }
}

static uint32_t answer(const struct tm_transaction *transaction, const struct tm_answers *answers)
{
    return transaction->direct && !transaction->direct_undo ? answers->direct : answers->started;
}

/* Copies word by word, like the stores: a wider load would have to wait until those stores have left the processor. */
TM_INLINE void copy_checkpoint(struct tm_checkpoint *to, const struct tm_checkpoint *from)
{
#pragma GCC unroll 32
    for (unsigned word = 0; word < TM_CHECKPOINT_WORDS; word++)
        __atomic_store_n(&to->registers[word], from->registers[word], __ATOMIC_RELAXED);
}

static size_t log_bytes(const struct tm_log *log)
{
    return (size_t)(log->next - log->begin);
}

static uint32_t begin_nested(struct tm_transaction *transaction, uint32_t flags, bool cancellable,
                             const struct tm_checkpoint *checkpoint, const struct tm_answers *answers)
{
    if (transaction->depth == TM_DEPTH_MAX)
        return answers->too_deep;
    if (flags & TM_SERIAL)
        tm_become_irrevocable();
    if (!tm_log_has_room(transaction, &transaction->nested, sizeof(struct tm_nested)))
        return answers->exhausted;
    transaction->unusual = true;
    struct tm_nested *nested = tm_log_add(transaction, &transaction->nested, sizeof *nested);
    nested->closed = cancellable;
    if (nested->closed) {
        copy_checkpoint(&nested->checkpoint, checkpoint);
        nested->answers = answers;
        /* Inside a transaction that cannot be cancelled, this one can. */
        nested->began_undo = transaction->direct && !transaction->direct_undo;
        transaction->direct_undo |= nested->began_undo;
        nested->undo_bytes = log_bytes(&transaction->undo);
        nested->written_bytes = log_bytes(&transaction->written);
        nested->local_bytes = log_bytes(&transaction->local);
        nested->allocated_bytes = log_bytes(&transaction->allocated);
        nested->freed_bytes = log_bytes(&transaction->freed);
        nested->commit_actions_bytes = log_bytes(&transaction->commit_actions);
        nested->undo_actions_bytes = log_bytes(&transaction->undo_actions);
        nested->outer_written_bytes = transaction->written_closed_bytes;
        transaction->written_closed_bytes = nested->written_bytes;
    }
    transaction->nested.next += sizeof *nested;
    transaction->depth++;
    return answer(transaction, answers);
}

/* Ends the innermost transaction, if it is not the outermost. */
static struct tm_nested *end_nested(struct tm_transaction *transaction)
{
    struct tm_nested *nested = (struct tm_nested *)(void *)transaction->nested.next - 1;
    if (nested->closed) {
        transaction->written_closed_bytes = nested->outer_written_bytes;
        if (nested->began_undo) {
            transaction->direct_undo = false;
            transaction->local.next = transaction->local.begin + nested->local_bytes;
        }
    }
    transaction->nested.next = (char *)nested;
    transaction->depth--;
    return nested;
}

/*
 * Of two numbers the lower wins: more interrupted contexts come first, then the older transaction. An interrupted
 * owner, which does not run, must not beat a transaction that runs: the handler that interrupted the owner would give
 * way to a transaction that cannot go on.
 */
static uint64_t next_obstinacy(const struct tm_transaction *transaction)
{
    uint64_t interrupted_count = 0;
    for (const struct tm_transaction *context = transaction->interrupted; context; context = context->interrupted)
        interrupted_count++;
    return (0xff - interrupted_count) << 56 |
           __atomic_add_fetch(&tm_shared.obstinate_count, 1, __ATOMIC_RELAXED);
}

static __attribute__((__noinline__)) uint32_t begin_unusual(struct tm_transaction *transaction, uint32_t flags,
                                                        bool cancellable, const struct tm_checkpoint *checkpoint,
                                                        const struct tm_answers *answers)
{
    if (transaction->depth)
        return begin_nested(transaction, flags, cancellable, checkpoint, answers);
    if (transaction == &tm_outside) {
        transaction = tm_port_transaction_make();
        if (!transaction)
            return answers->exhausted;
    }
    if (transaction->is_interrupt_level && (flags & TM_SERIAL)) {
        tm_port_misuse("a transaction of an interrupt level cannot be serial");
        return answers->misused;
    }
    transaction->begins++;
    copy_checkpoint(&transaction->checkpoint, checkpoint);
    transaction->answers = answers;
    transaction->cancellable = cancellable;
    transaction->flags = transaction->is_interrupt_level ? flags | TM_OBSTINATE : flags;
    transaction->freed_begin_bytes = log_bytes(&transaction->freed);
    tm_port_transaction_enter();
    if (transaction->flags & TM_OBSTINATE)
        __atomic_store_n(&transaction->obstinacy, next_obstinacy(transaction), __ATOMIC_RELAXED);
    begin_attempt(transaction);
    return answer(transaction, answers);
}

uint32_t tm_begin(uint32_t flags, bool cancellable, const struct tm_checkpoint *checkpoint,
                  const struct tm_answers *answers)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (TM_UNLIKELY(transaction->depth | transaction->unusual | (flags & ~(TM_NOT_PRIVATIZING | TM_READ_ONLY))))
        return begin_unusual(transaction, flags, cancellable, checkpoint, answers);
    transaction->begins++;
    transaction->answers = answers;
    transaction->cancellable = cancellable;
    transaction->flags = flags;
    tm_port_transaction_enter();
    transaction->depth = 1;
    if (tm_solo_begin(transaction)) {
        tm_mode_set(transaction, TM_MODE_SOLO);
        /* A transaction that cannot go back needs no registers kept. */
        if (!cancellable)
            return answers->direct;
        copy_checkpoint(&transaction->checkpoint, checkpoint);
        transaction->direct_undo = true;
        return answers->started;
    }
    copy_checkpoint(&transaction->checkpoint, checkpoint);
    choose_record(transaction);
    __atomic_store_n(&transaction->doomed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&transaction->overtaken, TM_OVERTAKEN_NOT, __ATOMIC_RELAXED);
    transaction->serial_begin = __atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE);
    if (TM_UNLIKELY(transaction->serial_begin & 1))
        tm_wait_while_serial(transaction);
    tm_mode_set(transaction, TM_MODE_OPTIMISTIC);
    transaction->direct = false;
    return answers->started;
}

/*
 * Resets what every transaction uses. A handler that interrupts this sees the transaction as running or as ended, and
 * never as one to undo.
 */
TM_INLINE void end_attempt(struct tm_transaction *transaction)
{
    uint64_t activity = transaction->activity;
    if (activity & 1)
        __atomic_store_n(&transaction->activity, activity + 1, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    transaction->undo.next = transaction->undo.begin;
    transaction->owned.next = transaction->owned.begin;
    transaction->reads.next = transaction->reads.begin;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    transaction->phase = TM_PHASE_RUNNING;
    __atomic_store_n(&transaction->horizon, 0, __ATOMIC_RELAXED);
    transaction->horizon_own = 0;
    transaction->depth = 0;
    transaction->direct = true;
    transaction->direct_undo = false;
}

/* Resets what few transactions use. */
static void end_unusual_attempt(struct tm_transaction *transaction)
{
    transaction->local.next = transaction->local.begin;
    transaction->nested.next = transaction->nested.begin;
}

static void run_actions(struct tm_log *actions, size_t mark_bytes, bool backward)
{
    /* An action may begin transactions of its own. */
    struct tm_action *begin = (struct tm_action *)(void *)(actions->begin + mark_bytes);
    struct tm_action *end = (struct tm_action *)(void *)actions->next;
    actions->next = actions->begin + mark_bytes;
    if (backward)
        while (end != begin) {
            end--;
            end->function(end->argument);
        }
    else
        for (; begin != end; begin++)
            begin->function(begin->argument);
}

/*
 * Commits a transaction that has nested, freed, restarted or run alone, or that began with rare flags. It also answers
 * where no transaction is open.
 */
static __attribute__((__noinline__)) int commit_unusual(struct tm_transaction *transaction, uintptr_t callers_stack)
{
    if (transaction->depth != 1) {
        if (transaction->depth == 0)
            return TM_NO_TRANSACTION;
        end_nested(transaction);
        return TM_COMMITTED;
    }
    bool changed = false;
    if (!transaction->direct) {
        changed = tm_algorithm_commit(transaction, callers_stack);
        transaction->counts.read_only_commits += !changed;
    } else if (transaction->mode == TM_MODE_SERIAL) {
        changed = true;
        transaction->counts.serial_commits++;
        tm_serial_end(transaction);
    } else {
        tm_solo_end(transaction);
    }
    transaction->counts.commits++;
    end_attempt(transaction);
    end_unusual_attempt(transaction);
    transaction->restarts = 0;
    transaction->alone = false;
    transaction->allocated.next = transaction->allocated.begin;
    transaction->undo_actions.next = transaction->undo_actions.begin;
    bool frees = transaction->freed.next != transaction->freed.begin || transaction->levels;
    if (!transaction->is_interrupt_level) {
        if (frees || (changed && !(transaction->flags & TM_NOT_PRIVATIZING)))
            tm_wait_for_readers(transaction);
        if (frees)
            tm_memory_give_back(transaction);
        transaction->unusual = transaction->levels;
    }
    tm_port_transaction_leave();
    run_actions(&transaction->commit_actions, 0, false);
    return TM_COMMITTED;
}

int tm_commit(void)
{
    return tm_commit_from(TM_CALLERS_STACK());
}

int tm_commit_from(uintptr_t callers_stack)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (TM_UNLIKELY(transaction->unusual | (transaction->depth != 1)))
        return commit_unusual(transaction, callers_stack);
    if (transaction->direct) {
        transaction->counts.commits++;
        tm_solo_end(transaction);
        transaction->depth = 0;
        transaction->direct_undo = false;
        transaction->undo.next = transaction->undo.begin;
        tm_port_transaction_leave();
        return TM_COMMITTED;
    }
    bool changed = tm_algorithm_commit(transaction, callers_stack);
    transaction->counts.commits++;
    end_attempt(transaction);
    if (!changed)
        transaction->counts.read_only_commits++;
    else if (!(transaction->flags & TM_NOT_PRIVATIZING))
        tm_wait_for_readers(transaction);
    tm_port_transaction_leave();
    return TM_COMMITTED;
}

void tm_rollback(struct tm_transaction *transaction, struct tm_stack_range dead)
{
    if (transaction->direct) {
        tm_undo(&transaction->undo, 0, dead, &tm_never);
        if (transaction->mode == TM_MODE_SERIAL)
            tm_serial_end(transaction);
        else
            tm_solo_end(transaction);
    } else {
        transaction->rollback_dead = dead;
        tm_algorithm_rollback(transaction);
    }
    tm_algorithm_end_attempt(transaction);
    tm_undo(&transaction->local, 0, dead, &tm_never);
    end_attempt(transaction);
    end_unusual_attempt(transaction);
    tm_memory_rollback(transaction, 0, transaction->freed_begin_bytes);
    transaction->commit_actions.next = transaction->commit_actions.begin;
    run_actions(&transaction->undo_actions, 0, true);
}

/* The stack of the functions that a transaction called, down to this one. */
#define DEAD_SINCE(checkpoint) \
    ((struct tm_stack_range){TM_DEAD_BEGIN(), tm_checkpoint_stack(checkpoint)})

void tm_end_after_rollback(struct tm_transaction *transaction)
{
    transaction->restarts = 0;
    transaction->alone = false;
    transaction->unusual = transaction->is_interrupt_level || transaction->levels;
    tm_port_transaction_leave();
}

static void back_off(struct tm_transaction *transaction)
{
    uint32_t log2 = transaction->restarts + BACKOFF_TURNS_LOG2;
    uint32_t log2_max =
        transaction->is_interrupt_level ? BACKOFF_TURNS_LOG2_MAX_IN_INTERRUPTS : BACKOFF_TURNS_LOG2_MAX;
    uint64_t random = transaction->random;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    transaction->random = random;
    unsigned turns = 0;
    uint64_t limit = random & ((1ull << (log2 < log2_max ? log2 : log2_max)) - 1);
    for (uint64_t turn = 0; turn < limit; turn++)
        tm_port_wait(&turns);
}

static void wait_for_lock(struct tm_transaction *transaction)
{
    unsigned turns = 0;
    while (__atomic_load_n(transaction->awaited, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
    transaction->awaited = NULL;
}

static TM_NORETURN void give_up(struct tm_transaction *transaction)
{
    if (!transaction->answers->exhausted)
        tm_port_fatal("there is no memory for what a transaction has to remember");
    tm_end_after_rollback(transaction);
    tm_checkpoint_resume(&transaction->checkpoint, transaction->answers->exhausted);
}

void tm_restart(struct tm_transaction *transaction, enum tm_cause cause)
{
    tm_rollback(transaction, DEAD_SINCE(&transaction->checkpoint));
    transaction->counts.restarts[cause]++;
    transaction->restarts++;
    switch (cause) {
    case TM_CAUSE_FULL:
        /* Without memory it runs alone. Then only stores that it may take back need memory. */
        if (!tm_set_grow(transaction, transaction->full)) {
            if (transaction->is_interrupt_level)
                give_up(transaction);
            transaction->alone = true;
        }
        break;
    case TM_CAUSE_READ_ONLY:
        transaction->flags &= ~TM_READ_ONLY;
        transaction->read_only_recorded = READ_ONLY_RECORDED;
        break;
    case TM_CAUSE_IRREVOCABLE:
        transaction->alone = true;
        transaction->cancellable = false;
        break;
    case TM_CAUSE_SERIAL:
        break;
    case TM_CAUSE_EXPLICIT:
        /* The program waits for something: running alone would not help. */
        if (transaction->awaited)
            wait_for_lock(transaction);
        else
            back_off(transaction);
        break;
    default:
        if (transaction->restarts >= RESTARTS_MAX)
            transaction->alone = true;
        back_off(transaction);
    }
    begin_attempt(transaction);
    tm_checkpoint_resume(&transaction->checkpoint, answer(transaction, transaction->answers));
}

bool tm_log_has_room(struct tm_transaction *transaction, struct tm_log *log, size_t entry_bytes)
{
    bool is_irrevocable = transaction->direct && !transaction->cancellable;
    return !is_irrevocable || log->next + entry_bytes <= log->end || tm_set_grow(transaction, log);
}

void tm_log_full(struct tm_transaction *transaction, struct tm_log *log)
{
    transaction->full = log;
    if (!transaction->direct)
        tm_restart(transaction, TM_CAUSE_FULL);
    /* A direct transaction owns nothing, so no transaction waits for it. */
    if (tm_set_grow(transaction, log))
        return;
    if (!transaction->cancellable)
        tm_port_fatal("there is no memory for what an irrevocable transaction has to remember");
    tm_rollback(transaction, DEAD_SINCE(&transaction->checkpoint));
    transaction->counts.restarts[TM_CAUSE_FULL]++;
    give_up(transaction);
}

static TM_NORETURN void cancel_nested(struct tm_transaction *transaction)
{
    struct tm_nested *nested = end_nested(transaction);
    if (!nested->closed)
        tm_port_fatal("a transaction was cancelled that said it would not be");
    struct tm_stack_range dead = DEAD_SINCE(&nested->checkpoint);
    if (transaction->direct)
        tm_undo(&transaction->undo, nested->undo_bytes, dead, &tm_never);
    else
        tm_algorithm_rollback_nested(transaction, nested, dead);
    tm_undo(&transaction->local, nested->local_bytes, dead, &tm_never);
    tm_memory_rollback(transaction, nested->allocated_bytes, nested->freed_bytes);
    transaction->commit_actions.next = transaction->commit_actions.begin + nested->commit_actions_bytes;
    run_actions(&transaction->undo_actions, nested->undo_actions_bytes, true);
    tm_checkpoint_resume(&nested->checkpoint, nested->answers->cancelled);
}

void tm_cancel_level(struct tm_transaction *transaction, bool outermost)
{
    if (transaction->depth > 1 && !outermost)
        cancel_nested(transaction);
    if (!transaction->cancellable)
        tm_port_fatal("an irrevocable transaction was cancelled");
    tm_rollback(transaction, DEAD_SINCE(&transaction->checkpoint));
    tm_end_after_rollback(transaction);
    transaction->counts.cancels++;
    tm_checkpoint_resume(&transaction->checkpoint, transaction->answers->cancelled);
}

void tm_abort(void)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (transaction->depth == 0)
        return;
    if (transaction->direct && !transaction->cancellable) {
        tm_port_misuse("an irrevocable transaction was aborted");
        return;
    }
    tm_restart(transaction, TM_CAUSE_EXPLICIT);
}

void tm_cancel(void)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (!transaction->depth)
        return;
    bool can_be_cancelled = transaction->depth > 1
                                ? ((const struct tm_nested *)(const void *)transaction->nested.next)[-1].closed
                                : transaction->cancellable;
    if (!can_be_cancelled) {
        tm_port_misuse("an irrevocable transaction was cancelled");
        return;
    }
    tm_cancel_level(transaction, false);
}

int tm_in_transaction(void)
{
    return tm_port_transaction()->depth != 0;
}

void tm_become_irrevocable(void)
{
    tm_become_irrevocable_from(TM_CALLERS_STACK());
}

void tm_become_irrevocable_from(uintptr_t callers_stack)
{
    struct tm_transaction *transaction = tm_port_transaction();
    /* A direct transaction that cannot be cancelled is irrevocable already: a second context waits for a solo one. */
    if (transaction->depth == 0 || (transaction->direct && !transaction->cancellable))
        return;
    if (transaction->is_interrupt_level) {
        tm_port_misuse("a transaction of an interrupt level asked to become irrevocable");
        return;
    }
    struct tm_stack_range dead = {TM_DEAD_BEGIN(), callers_stack};
    if (!transaction->direct && !tm_serial_try_upgrade(transaction, dead))
        tm_restart(transaction, TM_CAUSE_IRREVOCABLE);
    transaction->unusual = true;
    transaction->direct = true;
    transaction->cancellable = false;
    transaction->direct_undo = false;
    TM_LOG_EACH(struct tm_nested, nested, &transaction->nested)
        nested->closed = false;
}

void tm_read_counts(struct tm_counts *counts)
{
    *counts = tm_port_transaction()->counts;
}

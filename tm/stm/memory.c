/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of contexts and their sets, which grow between attempts and never inside one, and the memory that
 * transactions allocate and free.
 */
#include <tm/interrupt.h>

#include "transaction.h"

#define READS_COUNT 1024
#define OWNED_COUNT 256
#define UNDO_COUNT 512
#define LOCAL_COUNT 64
#define WRITTEN_COUNT 256
#define NESTED_COUNT 8
#define ALLOCATED_COUNT 64
#define ACTIONS_COUNT 16

static bool make(struct tm_log *log, size_t count, size_t entry_bytes)
{
    if (log->begin)
        return true;
    /* Read-only transactions write all their entries to the same slot, so there has to be one. */
    log->begin = tm_port_allocate(count * entry_bytes, 0);
    log->next = log->begin;
    log->end = log->begin ? log->begin + count * entry_bytes : NULL;
    return log->begin;
}

static void unmake(struct tm_log *log)
{
    tm_port_free(log->begin);
    *log = (struct tm_log){0};
}

bool tm_sets_make(struct tm_transaction *transaction)
{
    return make(&transaction->reads, READS_COUNT, sizeof(tm_orec *)) &&
           make(&transaction->owned, OWNED_COUNT, sizeof(struct tm_owned)) &&
           make(&transaction->undo, UNDO_COUNT, sizeof(struct tm_undo)) &&
           make(&transaction->local, LOCAL_COUNT, sizeof(struct tm_undo)) &&
           make(&transaction->written, WRITTEN_COUNT, sizeof(struct tm_written)) &&
           make(&transaction->nested, NESTED_COUNT, sizeof(struct tm_nested)) &&
           make(&transaction->allocated, ALLOCATED_COUNT, sizeof(void *)) &&
           make(&transaction->freed, ALLOCATED_COUNT, sizeof(struct tm_freed)) &&
           make(&transaction->commit_actions, ACTIONS_COUNT, sizeof(struct tm_action)) &&
           make(&transaction->undo_actions, ACTIONS_COUNT, sizeof(struct tm_action)) && tm_algorithm_make(transaction);
}

void tm_sets_free(struct tm_transaction *transaction)
{
    unmake(&transaction->reads);
    unmake(&transaction->owned);
    unmake(&transaction->undo);
    unmake(&transaction->local);
    unmake(&transaction->written);
    unmake(&transaction->nested);
    unmake(&transaction->allocated);
    unmake(&transaction->freed);
    unmake(&transaction->commit_actions);
    unmake(&transaction->undo_actions);
    tm_algorithm_unmake(transaction);
}

/* Doubles a set. The attempt that filled it is over, but the set keeps the memory that an interrupt level has freed. */
bool tm_set_grow(struct tm_transaction *transaction, struct tm_log *set)
{
    size_t used_bytes = (size_t)(set->next - set->begin);
    size_t size_bytes = 2 * (size_t)(set->end - set->begin);
    if (transaction->is_interrupt_level)
        return false;
    char *begin = tm_port_allocate(size_bytes, 0);
    if (!begin)
        return false;
    __builtin_memcpy(begin, set->begin, used_bytes);
    tm_port_free(set->begin);
    *set = (struct tm_log){begin, begin + used_bytes, begin + size_bytes};
    if (set != &transaction->written || tm_algorithm_make(transaction))
        return true;
    /* The index of the write set has kept its size, so the set holds no more than before. */
    set->end = begin + size_bytes / 2;
    return false;
}

struct tm_transaction *tm_transaction_create(bool is_interrupt_level)
{
    struct tm_transaction *transaction = tm_context_reuse(is_interrupt_level);
    if (!transaction) {
        /* Aligned here: the host's allocator need not know about cache lines. */
        char *memory = tm_port_allocate(sizeof *transaction + TM_CACHE_LINE_SIZE, 0);
        if (!memory)
            return NULL;
        transaction = (void *)(memory + (-(uintptr_t)memory & (TM_CACHE_LINE_SIZE - 1)));
        __builtin_memset(transaction, 0, sizeof *transaction);
        transaction->memory = memory;
        transaction->is_interrupt_level = is_interrupt_level;
        transaction->in_use = true;
        if (!tm_context_register(transaction)) {
            tm_port_free(memory);
            return NULL;
        }
    }
    if (!tm_sets_make(transaction)) {
        tm_sets_free(transaction);
        tm_context_unuse(transaction, false);
        return NULL;
    }
    transaction->counts = (struct tm_counts){0};
    transaction->unusual = is_interrupt_level;
    transaction->freed_drained = transaction->freed.begin;
    tm_context_use(transaction);
    return transaction;
}

void tm_transaction_add_level(struct tm_transaction *transaction, struct tm_transaction *level)
{
    level->levels = transaction->levels;
    transaction->levels = level;
    transaction->unusual = true;
}

bool tm_transaction_destroy(struct tm_transaction *transaction, uintptr_t stack_end)
{
    bool was_closed = transaction->depth == 0;
    if (!was_closed) {
        tm_rollback(transaction, (struct tm_stack_range){TM_DEAD_BEGIN(), stack_end});
        tm_end_after_rollback(transaction);
    }
    tm_wait_for_readers(transaction);
    if (transaction->is_interrupt_level)
        tm_level_drain(transaction);
    else
        tm_memory_give_back(transaction);
    transaction->levels = NULL;
    tm_sets_free(transaction);
    tm_context_unuse(transaction, true);
    return was_closed;
}

void tm_contexts_free(void)
{
    for (uint32_t number = 0; number < tm_shared.contexts_end; number++)
        tm_port_free(tm_contexts[number]->memory);
    tm_shared.contexts_end = 0;
}

void *tm_alloc(size_t size_bytes, unsigned flags)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (transaction->is_interrupt_level && !TM_PORT_ALLOCATES_IN_INTERRUPTS)
        return NULL;
    if (!transaction->depth)
        return tm_port_allocate(size_bytes, flags);
    if (!tm_log_has_room(transaction, &transaction->allocated, sizeof(void *)))
        return NULL;
    transaction->unusual = true;
    void **entry = tm_log_add(transaction, &transaction->allocated, sizeof *entry);
    *entry = tm_port_allocate(size_bytes, flags);
    if (*entry)
        transaction->allocated.next += sizeof *entry;
    return *entry;
}

void tm_free_by(void *memory, void (*release)(void *memory))
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (!memory)
        return;
    if (!transaction->depth) {
        release(memory);
        return;
    }
    if (!tm_log_has_room(transaction, &transaction->freed, sizeof(struct tm_freed))) {
        tm_port_misuse("there is no memory to remember what an irrevocable transaction frees, and it is lost");
        return;
    }
    transaction->unusual = true;
    struct tm_freed *freed = tm_log_add(transaction, &transaction->freed, sizeof *freed);
    *freed = (struct tm_freed){memory, release};
    transaction->freed.next += sizeof *freed;
}

void tm_free(void *memory)
{
    tm_free_by(memory, tm_port_free);
}

static void release(const struct tm_freed *freed)
{
    freed->release(freed->memory);
}

void tm_level_drain(struct tm_transaction *level)
{
    char *end = __atomic_load_n(&level->freed.next, __ATOMIC_RELAXED);
    if (end == level->freed.begin)
        return;
    tm_wait_for_readers(NULL);
    for (; level->freed_drained != end; level->freed_drained += sizeof(struct tm_freed))
        release((const struct tm_freed *)(void *)level->freed_drained);
    /* Handlers may have added to it since. */
    char *expected = end;
    if (__atomic_compare_exchange_n(&level->freed.next, &expected, level->freed.begin, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        level->freed_drained = level->freed.begin;
}

/* Runs after a commit, once no transaction can still read the memory that it freed. */
void tm_memory_give_back(struct tm_transaction *transaction)
{
    TM_LOG_EACH(struct tm_freed, freed, &transaction->freed)
        release(freed);
    transaction->freed.next = transaction->freed.begin;
    for (struct tm_transaction *level = transaction->levels; level; level = level->levels)
        tm_level_drain(level);
}

void tm_memory_rollback(struct tm_transaction *transaction, size_t allocated_bytes, size_t freed_bytes)
{
    while (transaction->allocated.next != transaction->allocated.begin + allocated_bytes) {
        transaction->allocated.next -= sizeof(void *);
        tm_port_free(*(void **)(void *)transaction->allocated.next);
    }
    transaction->freed.next = transaction->freed.begin + freed_bytes;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactional Locking II: a store goes to the write set; the commit owns the records of all written words, validates
 * the versions of all reads, writes back and releases the records.
 *
 * After Dice, Shalev, Shavit, "Transactional Locking II", DISC 2006, and Bressler, "Software Transactional Memory in
 * the Linux Kernel", 2012, section 3.1. Departures, besides those in reading.c:
 * - The write set holds bytes of words, with a mask. So stores of any size combine, and only stored bytes are written
 *   back.
 * - Pessimistic and obstinate transactions own the records of their reads. Their stores are as lazy as all others.
 * - A store to a word whose record is owned does not wait: only the commit looks at the record.
 */
#include "itm_names.h"
#include "transaction.h"

const char tm_algorithm_name[] = "tl2";

/* A slot of the index is epoch << 32 | entry. It is free if its epoch is not the present one. */
#define INDEX_SLOTS_PER_ENTRY 2

static size_t entries_max(const struct tm_transaction *transaction)
{
    return (size_t)(transaction->written.end - transaction->written.begin) / sizeof(struct tm_written);
}

bool tm_algorithm_make(struct tm_transaction *transaction)
{
    /* A power of two, like the number of entries. */
    size_t slots = entries_max(transaction) * INDEX_SLOTS_PER_ENTRY;
    uint64_t *index = tm_port_allocate(slots * sizeof *index, 0);
    if (!index)
        return false;
    __builtin_memset(index, 0, slots * sizeof *index);
    tm_port_free(transaction->written_index);
    transaction->written_index = index;
    transaction->written_epoch = 1;
    transaction->written_slots_mask = slots - 1;
    return true;
}

void tm_algorithm_unmake(struct tm_transaction *transaction)
{
    tm_port_free(transaction->written_index);
    transaction->written_index = NULL;
}

/* Frees all slots. */
static void forget_index(struct tm_transaction *transaction)
{
    if (!transaction->written_filter)
        return;
    transaction->written_filter = 0;
    if (TM_UNLIKELY(++transaction->written_epoch == 0)) {
        __builtin_memset(transaction->written_index, 0,
                         (transaction->written_slots_mask + 1) * sizeof *transaction->written_index);
        transaction->written_epoch = 1;
    }
}

static uint64_t hash(const uint64_t *address)
{
    return ((uintptr_t)address >> 3) * 0x9e3779b97f4a7c15ull >> 20;
}

static uint64_t filter_bit(const uint64_t *address)
{
    return 1ull << ((uintptr_t)address >> 3 & 63);
}

/* The slot that holds the latest entry of a word, or a free one. */
static uint64_t *find_slot(const struct tm_transaction *transaction, const uint64_t *address)
{
    const struct tm_written *entries = (const void *)transaction->written.begin;
    for (uint64_t number = hash(address);; number++) {
        uint64_t *slot = &transaction->written_index[number & transaction->written_slots_mask];
        if (*slot >> 32 != transaction->written_epoch || entries[(uint32_t)*slot].address == address)
            return slot;
    }
}

static struct tm_written *find(const struct tm_transaction *transaction, const uint64_t *address)
{
    uint64_t slot = *find_slot(transaction, address);
    if (slot >> 32 != transaction->written_epoch)
        return NULL;
    return (struct tm_written *)(void *)transaction->written.begin + (uint32_t)slot;
}

static __attribute__((__noinline__)) void write_new(struct tm_transaction *transaction, uint64_t *address,
                                                uint64_t value, uint64_t mask)
{
    struct tm_written *entry = tm_log_add(transaction, &transaction->written, sizeof *entry);
    *entry = (struct tm_written){address, value, mask};
    uint64_t number = (uint64_t)(entry - (struct tm_written *)(void *)transaction->written.begin);
    *find_slot(transaction, address) = (uint64_t)transaction->written_epoch << 32 | number;
    transaction->written_filter |= filter_bit(address);
    transaction->written.next += sizeof *entry;
}

static void write(struct tm_transaction *transaction, uint64_t *address, uint64_t value, uint64_t mask)
{
    if (TM_UNLIKELY(transaction->read_only))
        tm_restart(transaction, TM_CAUSE_READ_ONLY);
    if (transaction->written_filter & filter_bit(address)) {
        struct tm_written *entry = find(transaction, address);
        if (entry) {
            uint64_t merged = (entry->value & ~mask) | value;
            /*
             * An entry older than the innermost transaction that can be cancelled must not change: a later entry covers
             * it.
             */
            if (TM_UNLIKELY((char *)entry < transaction->written.begin + transaction->written_closed_bytes)) {
                write_new(transaction, address, merged, entry->mask | mask);
            } else {
                entry->value = merged;
                entry->mask |= mask;
            }
            return;
        }
    }
    write_new(transaction, address, value, mask);
}

/* The stored bytes of a word, over those in memory. */
static __attribute__((__noinline__)) uint64_t load_written(struct tm_transaction *transaction,
                                                       const struct tm_written *entry, uint64_t mask)
{
    if ((entry->mask & mask) == mask)
        return entry->value;
    uint64_t value = entry->value;
    uint64_t memory = TM_LOAD_SHARED(transaction, entry->address, 64);
    return (memory & ~entry->mask) | (value & entry->mask);
}

/* Writes one word back. False: a handler has finished or undone the rest. */
static bool write_back(const struct tm_written *entry, const uint32_t *stop)
{
    if (TM_LIKELY(entry->mask == ~0ull))
        return tm_guarded_store64(stop, entry->address, entry->value);
    /* By the largest stored pieces: other threads may store plainly to the rest of the word. */
    for (uint32_t byte = 0; byte < 8;) {
        uint32_t size_bytes = 4;
        while (size_bytes > 1 && ((byte & (size_bytes - 1)) ||
                                  (~(entry->mask >> 8 * byte) & ((1ull << 8 * size_bytes) - 1))))
            size_bytes /= 2;
        bool is_stored = entry->mask >> 8 * byte & 0xff;
        if (is_stored && !tm_store_sized(stop, (char *)entry->address + byte, entry->value >> 8 * byte, size_bytes))
            return false;
        byte += is_stored ? size_bytes : 1;
    }
    return true;
}

static void write_back_all(const struct tm_transaction *transaction, struct tm_stack_range dead, const uint32_t *stop)
{
    /* In order: where a word has two entries, the later one is complete. */
    TM_LOG_EACH(struct tm_written, entry, &transaction->written)
    {
        if (TM_UNLIKELY(!tm_is_in(dead, entry->address) && !write_back(entry, stop)))
            return;
    }
}

static void own_all(struct tm_transaction *transaction)
{
    TM_LOG_EACH(struct tm_written, entry, &transaction->written)
    {
        tm_orec *orec = tm_orec_of(entry->address);
        uint64_t word = __atomic_load_n(orec, __ATOMIC_ACQUIRE);
        if (word != transaction->owned_word)
            tm_own(transaction, orec, word);
    }
}

bool tm_algorithm_commit(struct tm_transaction *transaction, uintptr_t callers_stack)
{
    bool changed = transaction->written.next != transaction->written.begin;
    own_all(transaction);
    if (transaction->owned.next == transaction->owned.begin) {
        tm_commit_reads(transaction);
        return false;
    }
    /* All records are owned before the look at the clock and before the validation. */
    TM_FENCE_AFTER_LOCKED();
    transaction->commit_version = changed ? tm_next_version(transaction) : 0;
    transaction->commit_dead = (struct tm_stack_range){TM_DEAD_BEGIN(), callers_stack};
    tm_decide(transaction);
    if (!changed) {
        tm_disown(transaction, 0);
        return false;
    }
    write_back_all(transaction, transaction->commit_dead, &transaction->overtaken);
    tm_disown_committed(transaction);
    transaction->written.next = transaction->written.begin;
    forget_index(transaction);
    return true;
}

void tm_algorithm_finish(struct tm_transaction *interrupted)
{
    /*
     * Skips words whose records the transaction has released: they may belong to others by now. The stores are guarded,
     * because a handler that interrupts this one here may meet the same transaction, finish it, and store to its words
     * before this handler continues.
     */
    TM_LOG_EACH(struct tm_written, entry, &interrupted->written)
    {
        bool is_owned = __atomic_load_n(tm_orec_of(entry->address), __ATOMIC_RELAXED) == interrupted->owned_word;
        if (is_owned && !tm_is_in(interrupted->commit_dead, entry->address) &&
            !write_back(entry, &interrupted->overtaken))
            return;
    }
    tm_disown(interrupted, interrupted->commit_version);
}

void tm_algorithm_rollback(struct tm_transaction *transaction)
{
    /* There are no stores to undo. The transaction itself forgets the index, once: a handler may run this for it. */
    tm_disown(transaction, 0);
}

void tm_algorithm_end_attempt(struct tm_transaction *transaction)
{
    transaction->written.next = transaction->written.begin;
    transaction->written_closed_bytes = 0;
    forget_index(transaction);
}

void tm_algorithm_rollback_nested(struct tm_transaction *transaction, const struct tm_nested *nested,
                                  struct tm_stack_range dead)
{
    (void)dead;
    transaction->written.next = transaction->written.begin + nested->written_bytes;
    /* The entries that covered earlier ones are gone, so the index is made anew. */
    forget_index(transaction);
    uint64_t number = 0;
    TM_LOG_EACH(struct tm_written, entry, &transaction->written)
    {
        *find_slot(transaction, entry->address) = (uint64_t)transaction->written_epoch << 32 | number++;
        transaction->written_filter |= filter_bit(entry->address);
    }
}

bool tm_algorithm_become_direct(struct tm_transaction *transaction, struct tm_stack_range dead)
{
    if (transaction->overtaken || !tm_validate(transaction))
        return false;
    /* The transaction runs alone, so it need not own records. */
    write_back_all(transaction, dead, &tm_never);
    tm_disown(transaction, 0);
    transaction->written.next = transaction->written.begin;
    transaction->written_closed_bytes = 0;
    forget_index(transaction);
    transaction->owned.next = transaction->owned.begin;
    transaction->reads.next = transaction->reads.begin;
    return true;
}

#define WORD_OF(address) ((uint64_t *)((uintptr_t)(address) & ~7ul))
#define SHIFT_OF(address) (8 * (unsigned)((uintptr_t)(address) & 7))
#define ONES(bits) (~0ull >> (64 - (bits)))

#define DEFINE_ACCESS(bits) \
    uint##bits##_t tm_load##bits(const uint##bits##_t *address) \
    { \
        struct tm_transaction *transaction = tm_port_transaction(); \
        if (TM_UNLIKELY((uintptr_t)address & (bits / 8 - 1))) \
            return (uint##bits##_t)tm_load_unaligned(address, bits / 8); \
        if (transaction->direct) \
            return __atomic_load_n(address, __ATOMIC_RELAXED); \
        const uint64_t *word = WORD_OF(address); \
        if (transaction->written_filter & filter_bit(word)) { \
            const struct tm_written *entry = find(transaction, word); \
            if (entry && (entry->mask & ONES(bits) << SHIFT_OF(address))) \
                return (uint##bits##_t)(load_written(transaction, entry, ONES(bits) << SHIFT_OF(address)) >> \
                                        SHIFT_OF(address)); \
        } \
        return TM_LOAD_SHARED(transaction, address, bits); \
    } \
    void tm_store##bits(uint##bits##_t *address, uint##bits##_t value) \
    { \
        struct tm_transaction *transaction = tm_port_transaction(); \
        if (TM_UNLIKELY((uintptr_t)address & (bits / 8 - 1))) { \
            tm_store_unaligned(address, value, bits / 8); \
            return; \
        } \
        if (transaction->direct) { \
            tm_store_direct##bits(transaction, address, value); \
            return; \
        } \
        write(transaction, WORD_OF(address), (uint64_t)value << SHIFT_OF(address), ONES(bits) << SHIFT_OF(address)); \
    }

DEFINE_ACCESS(8)
DEFINE_ACCESS(16)
DEFINE_ACCESS(32)
DEFINE_ACCESS(64)

TM_ITM_NAMES(tm_load)

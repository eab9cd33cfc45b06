/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two-phase locking: a store owns the record of its word at once, remembers the old value and stores in place; a load
 * logs the record that it has read. A commit validates the versions once more and releases the records.
 *
 * After Schultz, "Using Software Transactional Memory in Interrupt-Driven Systems", 2009 (which uses Intel's library:
 * Ni et al., "Design and Implementation of Transactional Constructs for C/C++", OOPSLA 2008). Departures:
 * - Reads are consistent with each other at any time, through snapshots (reading.c), so no transaction sees a state
 *   that never existed.
 * - Pessimistic and obstinate transactions own the records of their reads as if they had written: readers do not share.
 */
#include "itm_names.h"
#include "transaction.h"

const char tm_algorithm_name[] = "2pl";

bool tm_algorithm_make(struct tm_transaction *transaction)
{
    (void)transaction;
    return true;
}

void tm_algorithm_unmake(struct tm_transaction *transaction)
{
    (void)transaction;
}

static bool has_stored(const struct tm_transaction *transaction)
{
    return transaction->undo.next != transaction->undo.begin;
}

bool tm_algorithm_commit(struct tm_transaction *transaction, uintptr_t callers_stack)
{
    (void)callers_stack;
    if (transaction->owned.next == transaction->owned.begin) {
        tm_commit_reads(transaction);
        return false;
    }
    /* All records are owned before the look at the clock and before the validation. */
    TM_FENCE_AFTER_LOCKED();
    bool changed = has_stored(transaction);
    transaction->commit_version = tm_next_version(transaction);
    tm_decide(transaction);
    tm_disown_committed(transaction);
    return changed;
}

void tm_algorithm_finish(struct tm_transaction *interrupted)
{
    tm_disown(interrupted, interrupted->commit_version);
}

void tm_algorithm_rollback(struct tm_transaction *transaction)
{
    /*
     * Another transaction may have read a stored value, and will look at the record again: it must not find the old
     * version.
     */
    uint64_t version = tm_next_version(transaction);
    tm_undo(&transaction->undo, 0, transaction->rollback_dead, &transaction->overtaken);
    tm_disown(transaction, version);
}

void tm_algorithm_end_attempt(struct tm_transaction *transaction)
{
    (void)transaction;
}

void tm_algorithm_rollback_nested(struct tm_transaction *transaction, const struct tm_nested *nested,
                                  struct tm_stack_range dead)
{
    if (transaction->overtaken)
        tm_restart(transaction, TM_CAUSE_DOOMED);
    tm_undo(&transaction->undo, nested->undo_bytes, dead, &transaction->overtaken);
}

bool tm_algorithm_become_direct(struct tm_transaction *transaction, struct tm_stack_range dead)
{
    (void)dead;
    transaction->commit_version = tm_next_version(transaction);
    if (transaction->overtaken || !tm_validate(transaction))
        return false;
    /* The stored values are in place, and will not be taken back. */
    tm_disown(transaction, transaction->commit_version);
    transaction->undo.next = transaction->undo.begin;
    transaction->owned.next = transaction->owned.begin;
    transaction->reads.next = transaction->reads.begin;
    return true;
}

static __attribute__((__noinline__, cold)) void own_for_store(struct tm_transaction *transaction, tm_orec *orec,
                                                          uint64_t word)
{
    if (transaction->read_only)
        tm_restart(transaction, TM_CAUSE_READ_ONLY);
    tm_own(transaction, orec, word);
}

#define DEFINE_ACCESS(bits) \
    uint##bits##_t tm_load##bits(const uint##bits##_t *address) \
    { \
        struct tm_transaction *transaction = tm_port_transaction(); \
        if (TM_UNLIKELY((uintptr_t)address & (bits / 8 - 1))) \
            return (uint##bits##_t)tm_load_unaligned(address, bits / 8); \
        if (transaction->direct) \
            return __atomic_load_n(address, __ATOMIC_RELAXED); \
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
        tm_orec *orec = tm_orec_of(address); \
        uint64_t word = __atomic_load_n(orec, __ATOMIC_ACQUIRE); \
        if (word != transaction->owned_word) \
            own_for_store(transaction, orec, word); \
        tm_remember(transaction, &transaction->undo, address, __atomic_load_n(address, __ATOMIC_RELAXED), bits / 8); \
        if (TM_UNLIKELY(!tm_guarded_store##bits(&transaction->overtaken, address, value))) \
            tm_restart(transaction, TM_CAUSE_DOOMED); \
    }

DEFINE_ACCESS(8)
DEFINE_ACCESS(16)
DEFINE_ACCESS(32)
DEFINE_ACCESS(64)

TM_ITM_NAMES(tm_load)

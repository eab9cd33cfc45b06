/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reads, snapshots and owned records, which TL2 and 2PL share.
 *
 * After Dice, Shalev, Shavit, "Transactional Locking II", DISC 2006, sections 2 and 3, and Felber, Fetzer, Riegel,
 * "Dynamic Performance Tuning of Word-Based Software Transactional Memory", PPoPP 2008. Departures:
 * - Commits do not advance the clock. A transaction that meets a version beyond the clock advances it (TL2's GV5), so a
 *   store to one word costs one atomic operation.
 * - The first read needs no snapshot, and the transaction is invisible up to its second read: a transaction of one word
 *   pays for nothing else.
 * - A snapshot that is too old moves forward if all reads still hold (as in TinySTM); the transaction does not give up.
 */
#include "transaction.h"

/* A transaction waits at most this many turns for the owner of a record before it restarts. */
#define OWNER_TURNS_MAX 64

uint64_t tm_load_sized(const void *address, uint32_t size_bytes)
{
    switch (size_bytes) {
    case 1:
        return __atomic_load_n((const uint8_t *)address, __ATOMIC_ACQUIRE);
    case 2:
        return __atomic_load_n((const uint16_t *)address, __ATOMIC_ACQUIRE);
    case 4:
        return __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
    default:
        return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
    }
}

bool tm_store_sized(const uint32_t *stop, void *address, uint64_t value, uint32_t size_bytes)
{
    switch (size_bytes) {
    case 1:
        return tm_guarded_store8(stop, address, (uint8_t)value);
    case 2:
        return tm_guarded_store16(stop, address, (uint16_t)value);
    case 4:
        return tm_guarded_store32(stop, address, (uint32_t)value);
    default:
        return tm_guarded_store64(stop, address, value);
    }
}

static bool has_read(const struct tm_transaction *transaction)
{
    return transaction->reads.next != transaction->reads.begin;
}

/* The record of the first read, in a transaction that has no snapshot yet. */
static tm_orec *first_read(const struct tm_transaction *transaction)
{
    return *(tm_orec **)(void *)transaction->reads.begin;
}

static void check_not_doomed(struct tm_transaction *transaction)
{
    if (TM_UNLIKELY(__atomic_load_n(&transaction->doomed, __ATOMIC_RELAXED) | transaction->overtaken))
        tm_restart(transaction, TM_CAUSE_DOOMED);
}

bool tm_validate(const struct tm_transaction *transaction)
{
    uint64_t horizon = transaction->horizon_own ? transaction->horizon_own : transaction->first_version + 1;
    TM_LOG_EACH(tm_orec *, read, &transaction->reads)
    {
        uint64_t word = __atomic_load_n(*read, __ATOMIC_ACQUIRE);
        if (TM_UNLIKELY(word >= horizon) && word != transaction->owned_word)
            return false;
    }
    return true;
}

void tm_extend(struct tm_transaction *transaction, uint64_t version)
{
    check_not_doomed(transaction);
    /* A request to restart may be late, and meant for the transaction before this one. */
    if (__atomic_load_n(&transaction->horizon, __ATOMIC_RELAXED) != transaction->horizon_own)
        tm_restart(transaction, TM_CAUSE_DOOMED);
    if (transaction->read_step_bytes == 0 && transaction->horizon_own)
        tm_restart(transaction, TM_CAUSE_READ_ONLY);
    tm_become_visible(transaction);
    /* The first read has a time of its own, which the snapshot must include. */
    if (transaction->horizon_own == 0 && has_read(transaction) && version < transaction->first_version)
        version = transaction->first_version;
    /* c -> version: no snapshot is later than the clock, and the read that caused this extension needs this version. */
    uint64_t clock = __atomic_load_n(&tm_shared.clock, __ATOMIC_ACQUIRE);
    while (clock < version &&
           !__atomic_compare_exchange_n(&tm_shared.clock, &clock, version, true, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
        ;
    TM_FENCE_AFTER_LOCKED();
    /*
     * The clock comes before the records: a change to a record after the look at it here has a later version than this
     * snapshot.
     */
    if (!tm_validate(transaction))
        tm_restart(transaction, TM_CAUSE_INVALID);
    transaction->horizon_own = (clock < version ? version : clock) + 1;
    __atomic_store_n(&transaction->horizon, transaction->horizon_own, __ATOMIC_RELAXED);
    /*
     * This finds a handler on this processor that has set the horizon to 0 meanwhile. A 0 from an obstinate transaction
     * elsewhere may be lost: then this transaction sees the request only when it next owns a record, or commits.
     */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    check_not_doomed(transaction);
}

void tm_meet_owner(struct tm_transaction *transaction, uint64_t word, unsigned *turns)
{
    struct tm_transaction *owner = tm_contexts[word & ~TM_OREC_OWNED];
    if (transaction->mode != TM_MODE_OBSTINATE) {
        if (*turns >= OWNER_TURNS_MAX)
            tm_restart(transaction, TM_CAUSE_LOCKED);
    } else if (transaction->is_interrupt_level && tm_has_interrupted(transaction, owner)) {
        tm_overtake(owner);
        return;
    } else if (__atomic_load_n(&owner->mode, __ATOMIC_RELAXED) == TM_MODE_OBSTINATE &&
               __atomic_load_n(&owner->obstinacy, __ATOMIC_RELAXED) < transaction->obstinacy) {
        /* The older one may wait for a transaction that this handler has interrupted. */
        tm_overtake_asked(transaction);
        tm_restart(transaction, TM_CAUSE_LOCKED);
    } else {
        __atomic_store_n(&owner->doomed, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&owner->horizon, 0, __ATOMIC_RELEASE);
        tm_overtake_asked(transaction);
    }
    check_not_doomed(transaction);
    /* The owner may be a transaction that wants to run alone, and waits until this one has ended. */
    if (__atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin)
        tm_restart(transaction, TM_CAUSE_SERIAL);
    tm_port_wait(turns);
}

/* Loads from an address whose record is `word`. False: the record has changed meanwhile. */
static bool load_unchanged(const void *address, uint32_t size_bytes, const tm_orec *orec, uint64_t word,
                           uint64_t *value)
{
    *value = tm_load_sized(address, size_bytes);
    return __atomic_load_n(orec, __ATOMIC_ACQUIRE) == word;
}

static void log_read(struct tm_transaction *transaction, tm_orec *orec)
{
    tm_orec **read = tm_log_add(transaction, &transaction->reads, sizeof *read);
    *read = orec;
    transaction->reads.next += transaction->read_step_bytes;
}

/* Does the first read of an optimistic transaction, which stays invisible. False: the record has changed meanwhile. */
static bool load_first(struct tm_transaction *transaction, const void *address, uint32_t size_bytes, tm_orec *orec,
                       uint64_t word, uint64_t *value)
{
    if (!load_unchanged(address, size_bytes, orec, word, value))
        return false;
    /* A transaction that ran alone has changed words without their records. */
    if (__atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin)
        tm_restart(transaction, TM_CAUSE_SERIAL);
    transaction->first_version = word;
    log_read(transaction, orec);
    return true;
}

uint64_t tm_load_slow(struct tm_transaction *transaction, const void *address, uint32_t size_bytes)
{
    tm_orec *orec = tm_orec_of(address);
    unsigned turns = 0;
    uint64_t value;
    for (;;) {
        uint64_t word = __atomic_load_n(orec, __ATOMIC_ACQUIRE);
        if (word == transaction->owned_word) {
            if (load_unchanged(address, size_bytes, orec, word, &value))
                return value;
            continue;
        }
        check_not_doomed(transaction);
        if (word & TM_OREC_OWNED) {
            tm_meet_owner(transaction, word, &turns);
        } else if (transaction->mode != TM_MODE_OPTIMISTIC) {
            tm_own(transaction, orec, word);
        } else if (!(transaction->activity & 1) && !has_read(transaction) &&
                   transaction->read_step_bytes) {
            if (load_first(transaction, address, size_bytes, orec, word, &value))
                return value;
        } else if (word >= __atomic_load_n(&transaction->horizon, __ATOMIC_RELAXED)) {
            tm_extend(transaction, word);
        } else if (load_unchanged(address, size_bytes, orec, word, &value)) {
            log_read(transaction, orec);
            return value;
        }
    }
}

void tm_own(struct tm_transaction *transaction, tm_orec *orec, uint64_t word)
{
    unsigned turns = 0;
    for (;;) {
        check_not_doomed(transaction);
        if (word & TM_OREC_OWNED) {
            tm_meet_owner(transaction, word, &turns);
            word = __atomic_load_n(orec, __ATOMIC_ACQUIRE);
            continue;
        }
        /* An owned record is not validated later: so check now that an earlier read of it still holds. */
        if (has_read(transaction) && word >= transaction->horizon_own) {
            bool is_first_read = transaction->horizon_own == 0 && first_read(transaction) == orec;
            if (is_first_read && word != transaction->first_version)
                tm_restart(transaction, TM_CAUSE_INVALID);
            if (!is_first_read) {
                tm_extend(transaction, word);
                word = __atomic_load_n(orec, __ATOMIC_ACQUIRE);
                if (word >= transaction->horizon_own)
                    continue;
            }
        }
        /*
         * The entry comes before the ownership: a handler that interrupts here finds a record of another owner, and
         * skips it.
         */
        struct tm_owned *owned = tm_log_add(transaction, &transaction->owned, sizeof *owned);
        owned->orec = orec;
        owned->version = word;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        transaction->owned.next += sizeof *owned;
        bool becomes_visible = !(transaction->activity & 1);
        if (becomes_visible)
            __atomic_store_n(&transaction->activity, transaction->activity + 1, __ATOMIC_RELEASE);
        /* 0 | version -> 1 | number. Sequentially consistent, because it is also the fence behind `activity`. */
        bool is_owned = __atomic_compare_exchange_n(orec, &word, transaction->owned_word, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_ACQUIRE);
        if (!is_owned)
            transaction->owned.next -= sizeof *owned;
        if (becomes_visible) {
            TM_FENCE_AFTER_LOCKED();
            if (__atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin)
                tm_restart(transaction, TM_CAUSE_SERIAL);
        }
        if (is_owned)
            break;
    }
    /* Before stores in place: other processors see the record owned before they see those. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

uint64_t tm_next_version(const struct tm_transaction *transaction)
{
    uint64_t version = __atomic_load_n(&tm_shared.clock, __ATOMIC_ACQUIRE);
    TM_LOG_EACH(struct tm_owned, owned, &transaction->owned)
    {
        if (owned->version > version)
            version = owned->version;
    }
    return version + 1;
}

void tm_disown(struct tm_transaction *transaction, uint64_t version)
{
    TM_LOG_EACH(struct tm_owned, owned, &transaction->owned)
    {
        /* 1 | number -> 0 | version. A record that a handler has released is free by now, or another transaction's. */
        uint64_t word = transaction->owned_word;
        __atomic_compare_exchange_n(owned->orec, &word, version ? version : owned->version, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
}

void tm_disown_committed(struct tm_transaction *transaction)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
    TM_LOG_EACH(struct tm_owned, owned, &transaction->owned)
    {
        /* 1 | number -> 0 | version. Only this context, and handlers on its processor, write a record that it owns. */
        if (TM_UNLIKELY(!tm_guarded_store64(&transaction->overtaken, owned->orec, transaction->commit_version)))
            return;
    }
}

void tm_undo(struct tm_log *log, size_t mark_bytes, struct tm_stack_range dead, const uint32_t *stop)
{
    for (struct tm_undo *undo = (struct tm_undo *)(void *)log->next; (char *)undo-- != log->begin + mark_bytes;)
        if (!tm_is_in(dead, undo->address) && !tm_store_sized(stop, undo->address, undo->value, undo->size_bytes))
            break;
    /* The log is emptied last: a handler that interrupts the loop repeats it. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    log->next = log->begin + mark_bytes;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Contexts, and what one context must know about all others: that they are out of its way before it runs alone, that
 * there are none (solo), or that none still reads data that it has made private.
 *
 * A transaction is visible from its second read or its first owned record on: `activity` is odd. To become visible it
 * stores `activity`, makes a full fence, and looks at tm_shared.serial. To run alone it stores tm_shared.serial, makes
 * a full fence, and looks at every activity. So one of two sees the other (Dekker). An invisible transaction has read
 * one word and owns nothing, and looks at tm_shared.serial after that read, so no transaction needs to wait for it.
 */
#include "transaction.h"

struct tm_transaction *tm_contexts[TM_PORT_CONTEXTS_MAX];

/* 0 -> 1 while a context is registered or unregistered. */
static uint32_t registry_lock;

static void registry_acquire(void)
{
    unsigned turns = 0;
    while (__atomic_exchange_n(&registry_lock, 1, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
}

static void registry_release(void)
{
    __atomic_store_n(&registry_lock, 0, __ATOMIC_RELEASE);
}

/* The state of a context survives its thread, for contexts that are looking at it and for its next thread. */
bool tm_context_register(struct tm_transaction *transaction)
{
    registry_acquire();
    uint32_t number = tm_shared.contexts_end;
    if (number == TM_PORT_CONTEXTS_MAX) {
        registry_release();
        return false;
    }
    transaction->number = number;
    transaction->owned_word = TM_OREC_OWNED | number;
    transaction->random = 0x9e3779b97f4a7c15ull * (number + 1);
    transaction->direct = true;
    __atomic_store_n(&tm_contexts[number], transaction, __ATOMIC_RELEASE);
    __atomic_store_n(&tm_shared.contexts_end, number + 1, __ATOMIC_RELEASE);
    registry_release();
    return true;
}

void tm_context_use(struct tm_transaction *transaction)
{
    registry_acquire();
    uint32_t count = __atomic_add_fetch(&tm_shared.contexts_count, 1, __ATOMIC_SEQ_CST);
    registry_release();
    if (count == 1 || !TM_PORT_HAS_HEAVY_FENCE)
        return;
    /*
     * Either the former solo context sees the count, or this context sees its solo_active. A third context that comes
     * while the second still waits checks it too.
     */
    tm_port_heavy_fence();
    uint32_t end = __atomic_load_n(&tm_shared.contexts_end, __ATOMIC_ACQUIRE);
    for (uint32_t number = 0; number < end; number++) {
        struct tm_transaction *other = tm_contexts[number];
        unsigned turns = 0;
        while (other != transaction && __atomic_load_n(&other->solo_active, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
    }
}

struct tm_transaction *tm_context_reuse(bool is_interrupt_level)
{
    struct tm_transaction *found = NULL;
    registry_acquire();
    for (uint32_t number = 0; number < tm_shared.contexts_end && !found; number++) {
        struct tm_transaction *context = tm_contexts[number];
        if (!context->in_use && context->is_interrupt_level == is_interrupt_level) {
            context->in_use = true;
            found = context;
        }
    }
    registry_release();
    return found;
}

void tm_context_unuse(struct tm_transaction *transaction, bool was_used)
{
    registry_acquire();
    transaction->in_use = false;
    if (was_used)
        __atomic_sub_fetch(&tm_shared.contexts_count, 1, __ATOMIC_SEQ_CST);
    registry_release();
}

void tm_become_visible(struct tm_transaction *transaction)
{
    if (transaction->activity & 1)
        return;
    /* even -> odd. Release: a context that sees it also sees that this attempt has not been overtaken. */
    __atomic_store_n(&transaction->activity, transaction->activity + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (TM_UNLIKELY(__atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin))
        tm_restart(transaction, TM_CAUSE_SERIAL);
}

void tm_wait_while_serial(struct tm_transaction *transaction)
{
    unsigned turns = 0;
    while ((transaction->serial_begin = __atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE)) & 1) {
        /* A transaction that wants to run alone may wait for one that this handler has interrupted. */
        if (transaction->is_interrupt_level)
            tm_overtake_visible(transaction);
        tm_port_wait(&turns);
    }
}

/* Waits until no other transaction can disturb one that runs alone. */
static void wait_until_alone(const struct tm_transaction *transaction)
{
    uint32_t end = __atomic_load_n(&tm_shared.contexts_end, __ATOMIC_ACQUIRE);
    for (uint32_t number = 0; number < end; number++) {
        struct tm_transaction *other = tm_contexts[number];
        if (other == transaction)
            continue;
        unsigned turns = 0;
        /* An overtaken transaction owns nothing, will not store, and checks its state before it trusts a read. */
        while ((__atomic_load_n(&other->activity, __ATOMIC_ACQUIRE) & 1) &&
               !__atomic_load_n(&other->overtaken, __ATOMIC_ACQUIRE))
            tm_port_wait(&turns);
    }
}

void tm_serial_begin(struct tm_transaction *transaction)
{
    unsigned turns = 0;
    for (;;) {
        transaction->interrupts = tm_port_interrupts_disable();
        uint64_t serial = __atomic_load_n(&tm_shared.serial, __ATOMIC_RELAXED) & ~1ull;
        /* even -> odd */
        if (__atomic_compare_exchange_n(&tm_shared.serial, &serial, serial + 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            break;
        tm_port_interrupts_restore(transaction->interrupts);
        tm_port_wait(&turns);
    }
    TM_FENCE_AFTER_LOCKED();
    wait_until_alone(transaction);
}

bool tm_serial_try_upgrade(struct tm_transaction *transaction, struct tm_stack_range dead)
{
    uint64_t serial = transaction->serial_begin;
    transaction->interrupts = tm_port_interrupts_disable();
    /* even -> odd. If another transaction runs alone, or has done so since the begin, this one restarts. */
    if (!__atomic_compare_exchange_n(&tm_shared.serial, &serial, serial + 1, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED)) {
        tm_port_interrupts_restore(transaction->interrupts);
        return false;
    }
    TM_FENCE_AFTER_LOCKED();
    wait_until_alone(transaction);
    if (!tm_algorithm_become_direct(transaction, dead)) {
        tm_serial_end(transaction);
        return false;
    }
    tm_mode_set(transaction, TM_MODE_SERIAL);
    uint64_t activity = transaction->activity;
    if (activity & 1)
        __atomic_store_n(&transaction->activity, activity + 1, __ATOMIC_RELEASE);
    return true;
}

void tm_serial_end(struct tm_transaction *transaction)
{
    /* odd -> even, another even number than before */
    uint64_t serial = __atomic_load_n(&tm_shared.serial, __ATOMIC_RELAXED);
    __atomic_store_n(&tm_shared.serial, serial + 1, __ATOMIC_RELEASE);
    tm_port_interrupts_restore(transaction->interrupts);
}

void tm_wait_for_readers(struct tm_transaction *transaction)
{
    /*
     * No fence is needed: this transaction has already changed its records with a CAS, and a reader looks at them after
     * it has become visible.
     */
    uint32_t end = __atomic_load_n(&tm_shared.contexts_end, __ATOMIC_ACQUIRE);
    for (uint32_t number = 0; number < end; number++) {
        struct tm_transaction *other = tm_contexts[number];
        uint64_t activity = __atomic_load_n(&other->activity, __ATOMIC_ACQUIRE);
        if (TM_LIKELY(!(activity & 1)) || other == transaction)
            continue;
        unsigned turns = 0;
        while (__atomic_load_n(&other->activity, __ATOMIC_ACQUIRE) == activity)
            tm_port_wait(&turns);
    }
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Accesses that both algorithms share: to addresses that are no multiple of their size, and to private data of a
 * context.
 */
#include "transaction.h"

uint64_t tm_load_unaligned(const void *address, uint32_t size_bytes)
{
    uint64_t value = 0;
    for (uint32_t byte = 0; byte < size_bytes; byte++)
        value |= (uint64_t)tm_load8((const uint8_t *)address + byte) << 8 * byte;
    return value;
}

void tm_store_unaligned(void *address, uint64_t value, uint32_t size_bytes)
{
    for (uint32_t byte = 0; byte < size_bytes; byte++)
        tm_store8((uint8_t *)address + byte, (uint8_t)(value >> 8 * byte));
}

void tm_remember_local(struct tm_transaction *transaction, void *address, uint32_t size_bytes)
{
    transaction->unusual = true;
    tm_remember(transaction, &transaction->local, address, tm_load_sized(address, size_bytes), size_bytes);
}

/*
 * A transaction that is never taken back need not remember. At an address that is no multiple of the size the entries
 * are bytes, because undoing an entry is one store.
 */
#define DEFINE_STORE_LOCAL(bits) \
    void tm_store_local##bits(uint##bits##_t *address, uint##bits##_t value) \
    { \
        struct tm_transaction *transaction = tm_port_transaction(); \
        bool is_aligned = !((uintptr_t)address & (bits / 8 - 1)); \
        if (transaction->depth && (!transaction->direct || transaction->direct_undo)) \
            for (uint32_t byte = 0; byte < bits / 8; byte += is_aligned ? bits / 8 : 1) \
                tm_remember_local(transaction, (char *)address + byte, is_aligned ? bits / 8 : 1); \
        __builtin_memcpy(address, &value, sizeof value); \
    }

DEFINE_STORE_LOCAL(8)
DEFINE_STORE_LOCAL(16)
DEFINE_STORE_LOCAL(32)
DEFINE_STORE_LOCAL(64)

static __attribute__((__noinline__)) bool try_acquire(uint64_t *lock)
{
    /* 0 -> 1. The commit waits for transactions that have read the 0. */
    if (tm_start(0) != TM_STARTED) {
        tm_port_misuse("there is no memory for the transaction of tm_lock, which tries again");
        return false;
    }
    uint64_t held = tm_load64(lock);
    if (!held)
        tm_store64(lock, 1);
    tm_commit();
    return !held;
}

void tm_lock(uint64_t *lock)
{
    unsigned turns = 0;
    tm_port_transaction_enter();
    do {
        while (__atomic_load_n(lock, __ATOMIC_RELAXED))
            tm_port_wait(&turns);
    } while (!try_acquire(lock));
}

void tm_unlock(uint64_t *lock)
{
    /* 1 -> 0. No transaction has continued after reading a 1, so none needs to be told. */
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    tm_port_transaction_leave();
}

void tm_weak_lock(uint64_t *lock)
{
    struct tm_transaction *transaction = tm_port_transaction();
    unsigned turns = 0;
    while (tm_load64(lock)) {
        if (!transaction->direct || transaction->direct_undo) {
            transaction->awaited = lock;
            tm_restart(transaction, TM_CAUSE_EXPLICIT);
        }
        /* This transaction cannot restart, and need not: the holder does not wait for it. */
        tm_port_wait(&turns);
    }
}

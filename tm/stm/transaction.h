/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The common ground of both algorithms and both interfaces: a context's transaction, ownership records, the clock, and
 * the shared read. docs/notes/software-transactions.md describes the protocol.
 */
#ifndef TM_STM_TRANSACTION_H
#define TM_STM_TRANSACTION_H

#include <tm/arch.h>
#include <tm/compiler.h>
#include <tm/port.h>
#include <tm/tm.h>

#if __SIZEOF_POINTER__ != 8
#error "transactions need a 64-bit processor: records and the clock are words of 64 bits, with versions that never wrap"
#endif

/* Calls and data within the library need no detour in a shared object. */
#pragma GCC visibility push(hidden)

#define TM_ALIGNED_TO_LINE __attribute__((aligned(TM_CACHE_LINE_SIZE)))

/*
 * An ownership record guards all blocks of memory that hash to it:
 *
 *     0 | version          free; the version of its last change
 *     1 | context number   owned
 *
 * so an owned record compares greater than any version.
 */
typedef uint64_t tm_orec;
#define TM_OREC_OWNED (1ull << 63)
#define TM_ORECS_COUNT (1ul << TM_PORT_ORECS_LOG2)
/* Blocks have 16 bytes: two words that change together often share a record, and two nodes of a list do not. */
#define TM_BLOCK_LOG2 4

extern tm_orec tm_orecs[TM_ORECS_COUNT];

TM_INLINE tm_orec *tm_orec_of(const volatile void *address)
{
    return &tm_orecs[((uintptr_t)address >> TM_BLOCK_LOG2) & (TM_ORECS_COUNT - 1)];
}

/* Words that every context reads and few write, each in its own cache line. */
struct tm_shared {
    /* No snapshot is later than the clock. Versions may be. */
    uint64_t clock TM_ALIGNED_TO_LINE;
    /* Odd while a transaction runs alone; afterwards even, and never twice the same number. */
    uint64_t serial TM_ALIGNED_TO_LINE;
    /* Contexts ever registered: numbers from here on have never been used. */
    uint32_t contexts_end TM_ALIGNED_TO_LINE;
    /* Contexts in use. While there is only one, its transactions need no records: see tm_solo_begin. */
    uint32_t contexts_count;
    /* Obstinate transactions ever begun. */
    uint64_t obstinate_count TM_ALIGNED_TO_LINE;
};

extern struct tm_shared tm_shared;

struct tm_transaction;
extern struct tm_transaction *tm_contexts[TM_PORT_CONTEXTS_MAX];

/* An array that grows only between attempts. */
struct tm_log {
    char *begin;
    char *next;
    char *end;
};

struct tm_owned {
    tm_orec *orec;
    /* Before the transaction owned the record. */
    uint64_t version;
};

struct tm_undo {
    void *address;
    uint64_t value;
    uint32_t size_bytes;
};

/* An entry of the TL2 write set: those bytes of a word that the mask selects. */
struct tm_written {
    uint64_t *address;
    uint64_t value;
    uint64_t mask;
};

/* The answers that an interface's begin returns. */
struct tm_answers {
    uint32_t started;
    /* For a serial or solo transaction that cannot be cancelled: it may run code without calls to this library. */
    uint32_t direct;
    uint32_t cancelled;
    uint32_t exhausted;
    uint32_t too_deep;
    uint32_t misused;
};

/* The state that a cancelled inner transaction returns to. */
struct tm_nested {
    struct tm_checkpoint checkpoint;
    const struct tm_answers *answers;
    bool closed; /* It can be cancelled by itself. Only then are the members below valid. */
    bool began_undo; /* In a direct transaction: the undo of direct stores began here. */
    size_t undo_bytes, written_bytes, local_bytes, allocated_bytes, freed_bytes,
        commit_actions_bytes, undo_actions_bytes;
    size_t outer_written_bytes; /* written_closed_bytes before it. */
};

enum tm_mode {
    TM_MODE_OPTIMISTIC,
    TM_MODE_PESSIMISTIC,
    TM_MODE_OBSTINATE,
    TM_MODE_SERIAL,
    TM_MODE_SOLO,
};

/* Addresses of dead frames: nothing uses them any more, except perhaps the library itself. */
struct tm_stack_range {
    uintptr_t begin;
    uintptr_t end;
};

TM_INLINE bool tm_is_in(struct tm_stack_range range, const void *address)
{
    return (uintptr_t)address >= range.begin && (uintptr_t)address < range.end;
}

/* Dead frames begin below the frames of the functions that this one calls, which need at most this many bytes. */
#define TM_CALLEES_STACK_BYTES 1024
#define TM_DEAD_BEGIN() ((uintptr_t)__builtin_frame_address(0) - TM_CALLEES_STACK_BYTES)

/* Functions of x86-64 that call no others use this many bytes below the stack pointer. */
#define TM_RED_ZONE_BYTES 128

/* The effect of a handler on a transaction that it interrupted on its own processor and that was in its way. */
enum tm_overtaken {
    TM_OVERTAKEN_NOT,
    /* The handler rolled it back: the transaction has lost its records and must not store. */
    TM_OVERTAKEN_ROLLED_BACK,
    /* Its commit was decided, and the handler has finished it. */
    TM_OVERTAKEN_FINISHED,
};

/* How far a commit has come, for a handler that interrupts it. */
enum tm_phase {
    TM_PHASE_RUNNING,
    /* Decided: it remains to write back and to release the records. */
    TM_PHASE_DECIDED,
};

struct tm_transaction {
    /* Loads and stores go to memory: outside of transactions, in serial and in solo ones. */
    bool direct;
    /* Direct stores are remembered, because the transaction may be cancelled. */
    bool direct_undo;
    bool read_only; /* By its flags: it must not store. */
    uint8_t read_only_recorded; /* This many of the next read-only transactions record their loads. */
    uint8_t mode; /* enum tm_mode, while depth is not 0 */
    uint32_t depth;
    /*
     * Begin and commit have extra work: the transaction nested, freed, restarted, runs alone, or handlers with
     * transactions can interrupt it.
     */
    bool unusual;
    /*
     * The snapshot: everything that the transaction has read is as it was when every version was below this. 0 means
     * none: the transaction has read nothing yet or only the first word, or another context asks it to check `doomed`
     * and `overtaken` at its next load.
     */
    uint64_t horizon;
    /* The last horizon that this context itself has set. */
    uint64_t horizon_own;
    /* The word that marks a record as owned by this context. */
    uint64_t owned_word;
    struct tm_log reads; /* of tm_orec * */
    /* The size of an entry of `reads`; 0 where loads leave no record. */
    uint32_t read_step_bytes;
    uint32_t flags;
    struct tm_log owned; /* of struct tm_owned */
    struct tm_log undo; /* of struct tm_undo: shared memory (2PL), and direct stores */
    struct tm_log local; /* of struct tm_undo: tm_store_local */
    struct tm_log written; /* of struct tm_written (TL2) */
    uint64_t written_filter; /* One bit for each written word's hash. */
    uint64_t *written_index; /* Hash table of entries: epoch << 32 | entry. */
    uint32_t written_epoch; /* Slots of other epochs are free. */
    uint64_t written_slots_mask;
    size_t written_closed_bytes; /* Entries before this offset must not change. */
    uint64_t serial_begin; /* tm_shared.serial at the begin. */
    uint64_t first_version; /* The version of the one record read while there is no snapshot. */
    uint64_t commit_version;
    uint64_t begins; /* Counts all outermost transactions of this context. */
    uint32_t restarts; /* Restarts of the present transaction. */
    uint32_t number; /* The context's number. */
    uint32_t phase; /* enum tm_phase */
    struct tm_log *full; /* The log that was full. */
    const uint64_t *awaited; /* The lock that tm_weak_lock found held. */
    bool alone; /* Runs alone from the next attempt on, after starvation or for lack of memory. */
    uint64_t random;

    /* An obstinate transaction on another processor asks this one to restart. */
    uint32_t doomed TM_ALIGNED_TO_LINE;
    uint32_t overtaken; /* enum tm_overtaken */
    /* Odd while the transaction is visible, that is, others must take it into account. Never twice the same number. */
    uint64_t activity;
    /* Set while a solo transaction runs. */
    uint32_t solo_active;
    /* Of two obstinate transactions the one with the lower number wins: see next_obstinacy in transaction.c. */
    uint64_t obstinacy;

    struct tm_checkpoint checkpoint TM_ALIGNED_TO_LINE;
    const struct tm_answers *answers; /* The answers of tm_start, or of the compiler's begin. */
    bool cancellable;
    struct tm_log nested; /* of struct tm_nested, one for each depth above 1 */
    struct tm_log allocated; /* of void * */
    struct tm_log freed; /* of struct tm_freed */
    struct tm_log commit_actions; /* of struct tm_action: see itm.c */
    struct tm_log undo_actions;
    /* In an interrupt level: the context that it has interrupted. */
    struct tm_transaction *interrupted;
    /* The list of a thread's or processor's interrupt levels; in a level, the next one. */
    struct tm_transaction *levels;
    bool is_interrupt_level;
    bool is_on_interrupted_stack; /* In an interrupt level: its handler runs on the interrupted stack. */
    uintptr_t stack_interrupted; /* The stack pointer when this context was interrupted. */
    /* In an interrupt level: how far its thread has already given back the memory in `freed`. */
    char *freed_drained;
    size_t freed_begin_bytes; /* The part of `freed` that belongs to earlier transactions. */
    struct tm_stack_range rollback_dead; /* The stack that a rollback must not store to. */
    struct tm_stack_range commit_dead; /* The stack that a decided commit must not store to. */
    void *memory; /* The address that the allocator returned. */
    unsigned long interrupts; /* The result of tm_port_interrupts_disable, in a serial transaction. */
    bool in_use; /* A thread uses the context. */
    struct tm_counts counts;
} TM_ALIGNED_TO_LINE;

/* An entry of `freed`. */
struct tm_freed {
    void *memory;
    void (*release)(void *memory);
};

/* An action of the compiler's interface. */
struct tm_action {
    void (*function)(void *argument);
    void *argument;
};

/*
 * Other contexts read the mode (tm_meet_owner), perhaps that of another transaction of the context than they mean, or
 * of its next one.
 */
TM_INLINE void tm_mode_set(struct tm_transaction *transaction, enum tm_mode mode)
{
    __atomic_store_n(&transaction->mode, (uint8_t)mode, __ATOMIC_RELAXED);
}

/* transaction.c */

/* Starts or nests, and returns the interface's answer. It copies `checkpoint`. */
uint32_t tm_begin(uint32_t flags, bool cancellable, const struct tm_checkpoint *checkpoint,
                  const struct tm_answers *answers);

/*
 * Takes everything back; the transaction is no longer open afterwards. `dead` is the stack of the functions that it
 * called, and of the caller.
 */
void tm_rollback(struct tm_transaction *transaction, struct tm_stack_range dead);

/* tm_commit and tm_become_irrevocable, for a function whose caller's stack begins at `callers_stack`. */
int tm_commit_from(uintptr_t callers_stack);
void tm_become_irrevocable_from(uintptr_t callers_stack);

/* Ends a transaction after a rollback that no other attempt follows. */
void tm_end_after_rollback(struct tm_transaction *transaction);

/* Undoes the attempt and begins the transaction again. */
TM_NORETURN void tm_restart(struct tm_transaction *transaction, enum tm_cause cause) __attribute__((cold));

/* Cancels the innermost transaction, or all of them, and returns from its begin. */
TM_NORETURN void tm_cancel_level(struct tm_transaction *transaction, bool outermost);

/* Handles a full log: restarts with a larger one, or in a direct transaction makes it larger at once. */
void tm_log_full(struct tm_transaction *transaction, struct tm_log *log) __attribute__((cold));

/* Whether an irrevocable transaction, which cannot restart for it, has room in a log. Others answer true. */
bool tm_log_has_room(struct tm_transaction *transaction, struct tm_log *log, size_t entry_bytes);

TM_INLINE void *tm_log_add(struct tm_transaction *transaction, struct tm_log *log, size_t entry_bytes)
{
    if (TM_UNLIKELY(log->next + entry_bytes > log->end))
        tm_log_full(transaction, log);
    return log->next;
}

#define TM_LOG_EACH(type, entry, log) \
    for (type *entry = (type *)(void *)(log)->begin; (char *)entry != (log)->next; entry++)

/* reading.c */

/* Does a load that the fast path could not do. The address is a multiple of the size. The value is in the low bits. */
uint64_t tm_load_slow(struct tm_transaction *transaction, const void *address, uint32_t size_bytes);

/* Handles a record that another transaction owns: waits a turn, makes the owner give way, or restarts. */
void tm_meet_owner(struct tm_transaction *transaction, uint64_t word, unsigned *turns);

/* Validates all reads again and moves the horizon beyond `version`, or restarts. */
void tm_extend(struct tm_transaction *transaction, uint64_t version);

/* Whether every record that was read is unchanged or owned by this transaction. */
bool tm_validate(const struct tm_transaction *transaction);

/* Owns a record, or restarts. `word` is the record's last seen content, and not this transaction's. */
void tm_own(struct tm_transaction *transaction, tm_orec *orec, uint64_t word);

/* The version for a commit's changes, before it releases its records. */
uint64_t tm_next_version(const struct tm_transaction *transaction);

/* Ends a commit that owns nothing: it has read one word, or all its reads belong to one time. */
TM_INLINE void tm_commit_reads(struct tm_transaction *transaction)
{
    if (!transaction->horizon_own && __atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin)
        tm_restart(transaction, TM_CAUSE_SERIAL);
}

/* Decides a commit that owns all its records and has its version, or restarts. A decided commit always takes effect. */
TM_INLINE void tm_decide(struct tm_transaction *transaction)
{
    if (!tm_validate(transaction))
        tm_restart(transaction, TM_CAUSE_INVALID);
    if (__atomic_load_n(&transaction->doomed, __ATOMIC_RELAXED) ||
        !tm_guarded_store32(&transaction->overtaken, &transaction->phase, TM_PHASE_DECIDED))
        tm_restart(transaction, TM_CAUSE_DOOMED);
}

/*
 * Releases all records that are still owned, with `version`, or with their old versions if it is 0. For rollbacks, and
 * on behalf of other transactions.
 */
void tm_disown(struct tm_transaction *transaction, uint64_t version);

/* Ends a decided commit: releases all records with commit_version. If a handler overtakes it, that does the rest. */
void tm_disown_committed(struct tm_transaction *transaction);

/* Restores all words stored since `mark_bytes`, except in dead frames, until *stop is set. */
void tm_undo(struct tm_log *log, size_t mark_bytes, struct tm_stack_range dead, const uint32_t *stop);

/* A guard for stores that are always allowed. */
extern const uint32_t tm_never;

/* A guarded store of a size known only at run time. */
bool tm_store_sized(const uint32_t *stop, void *address, uint64_t value, uint32_t size_bytes);

/* A load of a size known only at run time. */
uint64_t tm_load_sized(const void *address, uint32_t size_bytes);

/* access.c: addresses that are no multiple of the size, byte by byte. */
uint64_t tm_load_unaligned(const void *address, uint32_t size_bytes);
void tm_store_unaligned(void *address, uint64_t value, uint32_t size_bytes);

/* Remembers the content of an address that no other context accesses. */
void tm_remember_local(struct tm_transaction *transaction, void *address, uint32_t size_bytes);

/* serial.c: contexts, running alone, waiting for others. */

/* Gives a new context its number; false when there is none left. */
bool tm_context_register(struct tm_transaction *transaction);
/* Returns a context whose thread has gone, or null. */
struct tm_transaction *tm_context_reuse(bool is_interrupt_level);
/* From here on the context may have transactions, and no other context is solo any more. */
void tm_context_use(struct tm_transaction *transaction);
void tm_context_unuse(struct tm_transaction *transaction, bool was_used);
void tm_become_visible(struct tm_transaction *transaction);
void tm_serial_begin(struct tm_transaction *transaction);
bool tm_serial_try_upgrade(struct tm_transaction *transaction, struct tm_stack_range dead);
void tm_serial_end(struct tm_transaction *transaction);

TM_INLINE void tm_solo_end(struct tm_transaction *transaction)
{
    __atomic_store_n(&transaction->solo_active, 0, __ATOMIC_RELEASE);
}

/* Begins a transaction if its context is the only one; false if there are others. */
TM_INLINE bool tm_solo_begin(struct tm_transaction *transaction)
{
    if (!TM_PORT_HAS_HEAVY_FENCE || __atomic_load_n(&tm_shared.contexts_count, __ATOMIC_RELAXED) != 1)
        return false;
    __atomic_store_n(&transaction->solo_active, 1, __ATOMIC_RELAXED);
    /* The registering context provides the processor's part of this fence: tm_context_use. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (TM_LIKELY(__atomic_load_n(&tm_shared.contexts_count, __ATOMIC_ACQUIRE) == 1))
        return true;
    tm_solo_end(transaction);
    return false;
}

void tm_wait_for_readers(struct tm_transaction *transaction);
void tm_wait_while_serial(struct tm_transaction *transaction);

/* interrupt.c */
bool tm_has_interrupted(const struct tm_transaction *level, const struct tm_transaction *other);
void tm_overtake(struct tm_transaction *interrupted);
void tm_overtake_asked(struct tm_transaction *level);
void tm_overtake_visible(struct tm_transaction *level);

/* memory.c */
bool tm_sets_make(struct tm_transaction *transaction);
void tm_sets_free(struct tm_transaction *transaction);
bool tm_set_grow(struct tm_transaction *transaction, struct tm_log *set);
/* tm_free, of memory that this function gives back. */
void tm_free_by(void *memory, void (*release)(void *memory));
void tm_memory_give_back(struct tm_transaction *transaction);
void tm_memory_rollback(struct tm_transaction *transaction, size_t allocated_bytes, size_t freed_bytes);

/*
 * The functions of an algorithm, tl2.c or two_phase.c, one of which is linked. It also provides tm_load* and tm_store*.
 */

/* Makes the algorithm's own sets; false without memory. Called again whenever `written` has grown. */
bool tm_algorithm_make(struct tm_transaction *transaction);
void tm_algorithm_unmake(struct tm_transaction *transaction);
/* Commits an optimistic, pessimistic or obstinate transaction, or restarts it. True if it has changed memory. */
bool tm_algorithm_commit(struct tm_transaction *transaction, uintptr_t callers_stack);
/* Restores memory, and releases the owned records. */
void tm_algorithm_rollback(struct tm_transaction *transaction);
/* Runs after a rollback, which a handler may have done. */
void tm_algorithm_end_attempt(struct tm_transaction *transaction);
/* Completes the commit of a decided transaction that this processor's handler interrupted. */
void tm_algorithm_finish(struct tm_transaction *interrupted);
/*
 * While no other transaction runs: writes all changes to memory, and makes further accesses direct. False: the
 * transaction was invalid.
 */
bool tm_algorithm_become_direct(struct tm_transaction *transaction, struct tm_stack_range dead);
/* Takes back the changes of an inner transaction. */
void tm_algorithm_rollback_nested(struct tm_transaction *transaction, const struct tm_nested *nested,
                                  struct tm_stack_range dead);

/* The read that both algorithms share. tm_load_slow handles its obstacles. */
#define TM_LOAD_SHARED(transaction, address, bits) \
    (__extension__({ \
        const uint##bits##_t *tm_address_ = (address); \
        struct tm_transaction *tm_transaction_ = (transaction); \
        tm_orec *tm_orec_ = tm_orec_of(tm_address_); \
        uint64_t tm_version_ = __atomic_load_n(tm_orec_, __ATOMIC_ACQUIRE); \
        uint##bits##_t tm_value_; \
        bool tm_is_loaded_ = false; \
        /* This check also precedes the load: without a snapshot the address may be in freed memory. */ \
        if (TM_LIKELY(tm_version_ < __atomic_load_n(&tm_transaction_->horizon, __ATOMIC_RELAXED))) { \
            /* Acquire: the load precedes the second look at the record, and then the check of this transaction. */ \
            tm_value_ = __atomic_load_n(tm_address_, __ATOMIC_ACQUIRE); \
            tm_is_loaded_ = __atomic_load_n(tm_orec_, __ATOMIC_ACQUIRE) == tm_version_ && \
                            tm_version_ < __atomic_load_n(&tm_transaction_->horizon, __ATOMIC_RELAXED) && \
                            tm_transaction_->reads.next != tm_transaction_->reads.end; \
        } \
        if (TM_LIKELY(tm_is_loaded_)) { \
            *(tm_orec **)(void *)tm_transaction_->reads.next = tm_orec_; \
            tm_transaction_->reads.next += tm_transaction_->read_step_bytes; \
        } else { \
            tm_value_ = (uint##bits##_t)tm_load_slow(tm_transaction_, tm_address_, bits / 8); \
        } \
        tm_value_; \
    }))

/*
 * Remembers the content of an address before a store. A handler that takes this transaction back finds the entry
 * complete.
 */
TM_INLINE void tm_remember(struct tm_transaction *transaction, struct tm_log *log, void *address, uint64_t value,
                           uint32_t size_bytes)
{
    struct tm_undo *undo = tm_log_add(transaction, log, sizeof *undo);
    undo->address = address;
    undo->value = value;
    undo->size_bytes = size_bytes;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    log->next += sizeof *undo;
}

/* Stores outside of transactions, and in those that run alone. */
#define TM_DEFINE_STORE_DIRECT(bits) \
    TM_INLINE void tm_store_direct##bits(struct tm_transaction *transaction, uint##bits##_t *address, \
                                         uint##bits##_t value) \
    { \
        if (transaction->direct_undo) \
            tm_remember(transaction, &transaction->undo, address, *address, bits / 8); \
        __atomic_store_n(address, value, __ATOMIC_RELAXED); \
    }
TM_DEFINE_STORE_DIRECT(8)
TM_DEFINE_STORE_DIRECT(16)
TM_DEFINE_STORE_DIRECT(32)
TM_DEFINE_STORE_DIRECT(64)

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What both algorithms and both interfaces stand on: a context's transaction, ownership records, the clock, and the read that both share.
 * The protocol is told in docs/notes/software-transactions.md.
 */
#ifndef TM_STM_TRANSACTION_H
#define TM_STM_TRANSACTION_H

#include <tm/arch.h>
#include <tm/compiler.h>
#include <tm/port.h>
#include <tm/tm.h>

#define TM_ALIGNED_TO_LINE __attribute__((aligned(TM_CACHE_LINE_SIZE)))

/*
 * An ownership record guards every block of memory that hashes to it:
 *
 *     0 | version          free; the version of its last change
 *     1 | context number   owned
 *
 * so that an owned one compares greater than any version.
 */
typedef uint64_t tm_orec;
#define TM_OREC_OWNED (1ull << 63)
#define TM_ORECS_COUNT (1ul << TM_PORT_ORECS_LOG2)
/* Blocks of 16 bytes: two words that are changed together often share a record, and two nodes of a list do not. */
#define TM_BLOCK_LOG2 4

extern tm_orec tm_orecs[TM_ORECS_COUNT];

TM_INLINE tm_orec *tm_orec_of(const volatile void *address)
{
    return &tm_orecs[((uintptr_t)address >> TM_BLOCK_LOG2) & (TM_ORECS_COUNT - 1)];
}

/* Words that every context reads and few write, each in a line of its own. */
struct tm_shared {
    /* No snapshot is later than this. Versions may be. */
    uint64_t clock TM_ALIGNED_TO_LINE;
    /* Odd while a transaction runs alone; even, and another number, after it. */
    uint64_t serial TM_ALIGNED_TO_LINE;
    /* Contexts ever registered: those above have never been used. */
    uint32_t contexts_end TM_ALIGNED_TO_LINE;
    /* Contexts in use. While there is one, its transactions need no records: see tm_solo_begin. */
    uint32_t contexts_count;
    /* Obstinate transactions ever begun. */
    uint64_t obstinate_count TM_ALIGNED_TO_LINE;
};

extern struct tm_shared tm_shared;

struct tm_transaction;
extern struct tm_transaction *tm_contexts[TM_PORT_CONTEXTS_MAX];

/* A growing array that only grows between attempts. */
struct tm_log {
    char *begin;
    char *next;
    char *end;
};

struct tm_owned {
    tm_orec *orec;
    /* Before it was owned. */
    uint64_t version;
};

struct tm_undo {
    void *address;
    uint64_t value;
    uint32_t size_bytes;
};

/* Of the TL2 write set: a word's bytes, as the mask says which. */
struct tm_written {
    uint64_t *address;
    uint64_t value;
    uint64_t mask;
};

/* What an interface's begin answers. */
struct tm_answers {
    uint32_t started;
    uint32_t direct; /* In a serial or solo transaction that cannot be cancelled: code without calls to this library may run. */
    uint32_t cancelled;
    uint32_t exhausted;
    uint32_t too_deep;
};

/* What an inner transaction goes back to when it is cancelled. */
struct tm_nested {
    struct tm_checkpoint checkpoint;
    const struct tm_answers *answers;
    bool closed; /* It can be cancelled by itself: what follows is set. */
    bool began_undo; /* Of a direct transaction: direct stores are remembered since this one. */
    size_t undo_bytes, written_bytes, local_bytes, allocated_bytes, freed_bytes, commit_actions_bytes, undo_actions_bytes;
    size_t outer_written_bytes; /* written_closed_bytes before it. */
};

enum tm_mode {
    TM_MODE_OPTIMISTIC,
    TM_MODE_PESSIMISTIC,
    TM_MODE_OBSTINATE,
    TM_MODE_SERIAL,
    TM_MODE_SOLO,
};

/* Addresses of frames that nobody uses any more, but perhaps the library itself. */
struct tm_stack_range {
    uintptr_t begin;
    uintptr_t end;
};

TM_INLINE bool tm_is_in(struct tm_stack_range range, const void *address)
{
    return (uintptr_t)address >= range.begin && (uintptr_t)address < range.end;
}

/* Where dead frames begin: below what this function calls, which is no more than so much. */
#define TM_CALLEES_STACK_BYTES 1024
#define TM_DEAD_BEGIN() ((uintptr_t)__builtin_frame_address(0) - TM_CALLEES_STACK_BYTES)

/* What x86-64 functions that call no others use below the stack pointer. */
#define TM_RED_ZONE_BYTES 128

/* What a handler on the same processor has done with a transaction that it interrupted, and that is in its way. */
enum tm_overtaken {
    TM_OVERTAKEN_NOT,
    /* It was rolled back: what it owned is not its own any more, and it must not store. */
    TM_OVERTAKEN_ROLLED_BACK,
    /* Its commit was decided, and has been finished. */
    TM_OVERTAKEN_FINISHED,
};

/* How far a commit has come, for a handler that interrupts it. */
enum tm_phase {
    TM_PHASE_RUNNING,
    /* Decided: what remains is to write back and to let go. */
    TM_PHASE_DECIDED,
};

struct tm_transaction {
    /* Loads and stores go to memory: outside of transactions, in serial and in solo ones. */
    bool direct;
    /* Direct stores are remembered, because the transaction may be cancelled. */
    bool direct_undo;
    bool read_only; /* By its flags: it must not store. */
    uint8_t read_only_recorded; /* Read-only transactions to come whose loads leave a record. */
    uint8_t mode; /* enum tm_mode, while depth is not 0 */
    uint32_t depth;
    /* Begin and commit have more to do than for most: it nested, freed, restarted, runs alone, or can be interrupted by transactions. */
    bool unusual;
    /*
     * The snapshot: all that was read is as it was when every version was below this. 0: there is none, because nothing was read yet, or
     * the first word only, or because somebody wants the transaction to look at `doomed` and `overtaken` at its next load.
     */
    uint64_t horizon;
    /* The horizon as this context has set it last. */
    uint64_t horizon_own;
    /* This context's word in records that it owns. */
    uint64_t owned_word;
    struct tm_log reads; /* of tm_orec * */
    /* Size of an entry of reads; 0 where they leave no record. */
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
    size_t written_closed_bytes; /* Entries before this must stay as they are. */
    uint64_t serial_begin; /* tm_shared.serial at the begin. */
    uint64_t first_version; /* Of the one record read while there is no snapshot. */
    uint64_t commit_version;
    uint64_t begins; /* Of all of this context's outermost transactions. */
    uint32_t restarts; /* Of this transaction. */
    uint32_t number; /* Of the context. */
    uint32_t phase; /* enum tm_phase */
    struct tm_log *full; /* The set that was full. */
    const uint64_t *awaited; /* The lock that tm_weak_lock found held. */
    bool alone; /* Runs alone from the next attempt on: it has starved, or has no memory. */
    uint64_t random;

    /* An obstinate transaction on another processor asks this one to restart. */
    uint32_t doomed TM_ALIGNED_TO_LINE;
    uint32_t overtaken; /* enum tm_overtaken */
    /* Odd while others have to reckon with the transaction: it is visible. Never twice the same number. */
    uint64_t activity;
    /* Set while a solo transaction is under way. */
    uint32_t solo_active;
    /* The lower of two obstinate transactions wins: see next_obstinacy in transaction.c. */
    uint64_t obstinacy;

    struct tm_checkpoint checkpoint TM_ALIGNED_TO_LINE;
    const struct tm_answers *answers; /* Of tm_start, or the compiler's begin. */
    bool cancellable;
    struct tm_log nested; /* of struct tm_nested, one for each depth above 1 */
    struct tm_log allocated; /* of void * */
    struct tm_log freed; /* of void * */
    struct tm_log commit_actions; /* of struct tm_action: see itm.c */
    struct tm_log undo_actions;
    /* Of an interrupt level: the context that it has interrupted. */
    struct tm_transaction *interrupted;
    /* The interrupt levels of this thread or processor, and of a level the next one. */
    struct tm_transaction *levels;
    bool is_interrupt_level;
    bool is_on_interrupted_stack; /* Of an interrupt level: its handler runs on the stack of what it interrupted. */
    uintptr_t stack_interrupted; /* The stack pointer when this context was interrupted. */
    /* Of an interrupt level: what its thread has given back already of what earlier transactions freed. */
    char *freed_drained;
    size_t freed_begin_bytes; /* What of `freed` is of earlier transactions. */
    struct tm_stack_range rollback_dead; /* What a rollback must not store to. */
    struct tm_stack_range commit_dead; /* What a decided commit must not store to. */
    void *memory; /* As it was allocated. */
    unsigned long interrupts; /* What tm_port_interrupts_disable gave, in a serial transaction. */
    bool in_use; /* The context has a thread. */
    struct tm_counts counts;
} TM_ALIGNED_TO_LINE;

/* An action of the compiler's interface. */
struct tm_action {
    void (*function)(void *argument);
    void *argument;
};

/* Others look at it (tm_meet_owner), and may find that of another transaction of the context, or of its next one. */
TM_INLINE void tm_mode_set(struct tm_transaction *transaction, enum tm_mode mode)
{
    __atomic_store_n(&transaction->mode, (uint8_t)mode, __ATOMIC_RELAXED);
}

/* What threads that have no transaction yet point at: all accesses are direct. */
extern struct tm_transaction tm_outside;

/* transaction.c */

/* Starts or nests, and returns what the interface answers. `checkpoint` is copied. */
uint32_t tm_begin(uint32_t flags, bool cancellable, const struct tm_checkpoint *checkpoint, const struct tm_answers *answers);

/* Takes everything back. The transaction is not open any more after it. `dead`: the stack of what it called, and of the caller. */
void tm_rollback(struct tm_transaction *transaction, struct tm_stack_range dead);

/* tm_commit and tm_become_irrevocable, called by a function whose own caller's stack begins at `callers_stack`. */
int tm_commit_from(uintptr_t callers_stack);
void tm_become_irrevocable_from(uintptr_t callers_stack);

/* After a rollback that no other attempt follows. */
void tm_end_after_rollback(struct tm_transaction *transaction);

/* Undoes the attempt and begins the transaction again. */
void tm_restart(struct tm_transaction *transaction, enum tm_cause cause) __attribute__((noreturn, cold));

/* Cancels the innermost transaction, or all of them, and returns from its begin. */
void tm_cancel_level(struct tm_transaction *transaction, bool outermost) __attribute__((noreturn));

/* A set is full: restarts with a larger one, or in a direct transaction makes it larger. */
void tm_log_full(struct tm_transaction *transaction, struct tm_log *log) __attribute__((cold));

TM_INLINE void *tm_log_add(struct tm_transaction *transaction, struct tm_log *log, size_t entry_bytes)
{
    if (TM_UNLIKELY(log->next + entry_bytes > log->end))
        tm_log_full(transaction, log);
    return log->next;
}

#define TM_LOG_EACH(type, entry, log) \
    for (type *entry = (type *)(void *)(log)->begin; (char *)entry != (log)->next; entry++)

/* reading.c */

/* A load that the short way could not do. The address is a multiple of the size. Value in the low bits. */
uint64_t tm_load_slow(struct tm_transaction *transaction, const void *address, uint32_t size_bytes);

/* What a transaction does that found a record owned by another: waits a turn, makes the other give way, or restarts. */
void tm_meet_owner(struct tm_transaction *transaction, uint64_t word, unsigned *turns);

/* Looks at all reads anew and moves the horizon beyond `version`, or restarts. */
void tm_extend(struct tm_transaction *transaction, uint64_t version);

/* Whether every record that was read is as it was, or owned. */
bool tm_validate(const struct tm_transaction *transaction);

/* Owns a record, or restarts. `word` is what it was when last seen, and not this transaction's. */
void tm_own(struct tm_transaction *transaction, tm_orec *orec, uint64_t word);

/* Before a commit lets go: the version of its changes. */
uint64_t tm_next_version(const struct tm_transaction *transaction);

/* The end of a commit that owns nothing: one word was read, or what was read is of one time. */
TM_INLINE void tm_commit_reads(struct tm_transaction *transaction)
{
    if (!transaction->horizon_own && __atomic_load_n(&tm_shared.serial, __ATOMIC_ACQUIRE) != transaction->serial_begin)
        tm_restart(transaction, TM_CAUSE_SERIAL);
}

/* Decides a commit that owns all its records and has its version, or restarts: from here on it will have happened. */
TM_INLINE void tm_decide(struct tm_transaction *transaction)
{
    if (!tm_validate(transaction))
        tm_restart(transaction, TM_CAUSE_INVALID);
    if (__atomic_load_n(&transaction->doomed, __ATOMIC_RELAXED) ||
        !tm_guarded_store32(&transaction->overtaken, &transaction->phase, TM_PHASE_DECIDED))
        tm_restart(transaction, TM_CAUSE_DOOMED);
}

/* Lets go of everything that is still owned, as `version`, or where that is 0 as it was. For rollbacks, and on behalf of others. */
void tm_disown(struct tm_transaction *transaction, uint64_t version);

/* The end of a decided commit: lets go of everything as commit_version. A handler may do the rest. */
void tm_disown_committed(struct tm_transaction *transaction);

/* Brings back what was stored since `mark_bytes`, but to dead frames, until *stop is set. */
void tm_undo(struct tm_log *log, size_t mark_bytes, struct tm_stack_range dead, const uint32_t *stop);

/* A word to guard stores with that nobody forbids. */
extern const uint32_t tm_never;

/* A guarded store of a size that is known at run time. */
bool tm_store_sized(const uint32_t *stop, void *address, uint64_t value, uint32_t size_bytes);

/* A load of a size that is known at run time. */
uint64_t tm_load_sized(const void *address, uint32_t size_bytes);

/* access.c: of addresses that are no multiple of the size, by bytes. */
uint64_t tm_load_unaligned(const void *address, uint32_t size_bytes);
void tm_store_unaligned(void *address, uint64_t value, uint32_t size_bytes);

/* Remembers what is at an address that no other context accesses. */
void tm_remember_local(struct tm_transaction *transaction, void *address, uint32_t size_bytes);

/* serial.c: contexts, running alone, waiting for others. */

/* Gives a new context its number; false when there is none left. */
bool tm_context_register(struct tm_transaction *transaction);
/* A context whose thread has gone, or null. */
struct tm_transaction *tm_context_reuse(bool is_interrupt_level);
/* From here on it may have transactions: no other one is solo any more. */
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

/* Begins a transaction of the only context there is; false: there are others. */
TM_INLINE bool tm_solo_begin(struct tm_transaction *transaction)
{
    if (!TM_PORT_HAS_HEAVY_FENCE || __atomic_load_n(&tm_shared.contexts_count, __ATOMIC_RELAXED) != 1)
        return false;
    __atomic_store_n(&transaction->solo_active, 1, __ATOMIC_RELAXED);
    /* The processor's part of this fence is done by whoever registers: tm_context_use. */
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
void tm_memory_give_back(struct tm_transaction *transaction);
void tm_memory_rollback(struct tm_transaction *transaction, size_t allocated_bytes, size_t freed_bytes);

/* What an algorithm gives: tl2.c and two_phase.c, of which one is linked. Besides these: tm_load* and tm_store*. */

/* The sets of its own; false without memory. Again whenever `written` has grown. */
bool tm_algorithm_make(struct tm_transaction *transaction);
void tm_algorithm_unmake(struct tm_transaction *transaction);
/* Commits an optimistic, pessimistic or obstinate transaction, or restarts it. True when it had changed something. */
bool tm_algorithm_commit(struct tm_transaction *transaction, uintptr_t callers_stack);
/* Brings memory back, and lets go of what is owned. */
void tm_algorithm_rollback(struct tm_transaction *transaction);
/* After a rollback, which may have been done by a handler. */
void tm_algorithm_end_attempt(struct tm_transaction *transaction);
/* Runs on behalf of a decided transaction that this processor's handler interrupted: does the rest of its commit. */
void tm_algorithm_finish(struct tm_transaction *interrupted);
/* Nobody else runs: what was done so far goes to memory, and from here on accesses are direct. False: it was invalid. */
bool tm_algorithm_become_direct(struct tm_transaction *transaction, struct tm_stack_range dead);
/* Takes back what an inner transaction did. */
void tm_algorithm_rollback_nested(struct tm_transaction *transaction, const struct tm_nested *nested,
                                  struct tm_stack_range dead);

/* The read that both algorithms share: see tm_load_slow for what can be in its way. */
#define TM_LOAD_SHARED(transaction, address, bits) \
    (__extension__({ \
        const uint##bits##_t *tm_address_ = (address); \
        struct tm_transaction *tm_transaction_ = (transaction); \
        tm_orec *tm_orec_ = tm_orec_of(tm_address_); \
        uint64_t tm_version_ = __atomic_load_n(tm_orec_, __ATOMIC_ACQUIRE); \
        uint##bits##_t tm_value_; \
        bool tm_is_loaded_ = false; \
        /* Before the load as well: without a snapshot the address may be of memory that has been freed. */ \
        if (TM_LIKELY(tm_version_ < __atomic_load_n(&tm_transaction_->horizon, __ATOMIC_RELAXED))) { \
            /* Acquire: the record is looked at again after it, and then whether this transaction is still good. */ \
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

/* Remembers what is at an address before a store. A handler that takes this transaction back finds the entry complete. */
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

/* Outside of transactions, and in those that run alone. */
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

#endif

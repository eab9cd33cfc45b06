/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The transactional memory interface that GCC's -fgnu-tm compiles to, after "Intel Transactional Memory Compiler and
 * Runtime Application Binary Interface", revision 1.1, 2009, and the manual of GCC's libitm, chapter 3. Departures:
 * - It lacks exception blocks, as libitm does.
 * - The mode functions know one mode, serial and irrevocable, as GCC does.
 * - It lacks _ITM_realloc, as libitm does: the compiler refuses realloc in an atomic transaction, and makes a relaxed
 *   one irrevocable for it.
 */
#ifndef TM_STM_ITM_H
#define TM_STM_ITM_H

#include "transaction.h"

TM_DECLARATIONS_BEGIN

/* Properties of a transaction's code, an argument of its begin. */
enum itm_property {
    ITM_INSTRUMENTED_CODE = 0x1, /* There is code with calls to this library. */
    ITM_UNINSTRUMENTED_CODE = 0x2, /* There is code without. */
    ITM_HAS_NO_VECTOR_UPDATE = 0x4,
    ITM_HAS_NO_ABORT = 0x8, /* Cannot be cancelled. */
    ITM_HAS_NO_FLOAT_UPDATE = 0x10,
    ITM_HAS_NO_IRREVOCABLE = 0x20, /* Does not become irrevocable. */
    ITM_DOES_GO_IRREVOCABLE = 0x40, /* Becomes irrevocable on every way through it. */
    ITM_WRITE_BARRIERS_OMITTED = 0x100,
    ITM_READ_AFTER_READ_BARRIERS_OMITTED = 0x200,
    ITM_UNDO_LOG_CODE = 0x400,
    ITM_PREFER_UNINSTRUMENTED = 0x800,
    ITM_EXCEPTION_BLOCK = 0x1000,
    ITM_HAS_ELSE = 0x2000,
    ITM_READ_ONLY = 0x4000, /* Stores to no shared data. */
};

/* The answer of a begin: what the code has to do now. */
enum itm_action {
    ITM_RUN_INSTRUMENTED = 0x1,
    ITM_RUN_UNINSTRUMENTED = 0x2,
    ITM_SAVE_LIVE_VARIABLES = 0x4,
    ITM_RESTORE_LIVE_VARIABLES = 0x8,
    ITM_ABORT = 0x10, /* Continue after the transaction: it was cancelled. */
};

/* The reasons for a call of _ITM_abortTransaction. */
enum itm_abort_reason {
    ITM_USER_ABORT = 0x1, /* __transaction_cancel */
    ITM_USER_RETRY = 0x2,
    ITM_CONFLICT = 0x4,
    ITM_EXCEPTION_BLOCK_ABORT = 0x8,
    ITM_OUTER_ABORT = 0x10, /* With ITM_USER_ABORT: cancels the outermost transaction. */
};

/* The answers of _ITM_inTransaction. */
enum itm_how_executing {
    ITM_OUTSIDE_TRANSACTION,
    ITM_IN_RETRYABLE_TRANSACTION,
    ITM_IN_IRREVOCABLE_TRANSACTION,
};

/* The argument of _ITM_changeTransactionMode. */
enum itm_mode {
    ITM_MODE_SERIAL_IRREVOCABLE,
};

/* An identifier of a transaction. */
typedef uint64_t itm_transaction_id;
#define ITM_NO_TRANSACTION_ID 1

/* The revision of the interface, as the compiler asks for it. */
#define ITM_VERSION_NUMBER 90

/* A place in the source, in the compiler's format. */
struct itm_source_location {
    uint32_t reserved_1;
    uint32_t flags;
    uint32_t reserved_2;
    uint32_t reserved_3;
    const char *source;
};

/*
 * Starts or nests a transaction, as tm_start does. `properties` are bits of enum itm_property, the answer is of enum
 * itm_action.
 */
uint32_t _ITM_beginTransaction(uint32_t properties, ...) __attribute__((returns_twice));

/* Ends the innermost transaction, as tm_commit does. Without a transaction: tm_port_fatal. */
void _ITM_commitTransaction(void);

/*
 * Ends the innermost transaction when an exception leaves it, as _ITM_commitTransaction does. If the transaction restarts
 * instead, the exception is dropped.
 */
void _ITM_commitTransactionEH(void *header);

/* Exceptions of C++ in transactions: the functions without _ITM of the Itanium C++ ABI. itm_exceptions.c */
void *_ITM_cxa_allocate_exception(size_t size_bytes);
void _ITM_cxa_free_exception(void *object);
void _ITM_cxa_throw(void *object, void *type, void (*destroy)(void *object)) __attribute__((noreturn));
void *_ITM_cxa_begin_catch(void *header);
void _ITM_cxa_end_catch(void);

/*
 * ITM_USER_ABORT cancels the innermost transaction, with ITM_OUTER_ABORT the outermost; ITM_USER_RETRY and ITM_CONFLICT
 * restart. It calls tm_port_fatal without a transaction, in an irrevocable one, and for other reasons.
 */
void _ITM_abortTransaction(uint32_t reason) __attribute__((noreturn));

/*
 * Makes the transaction irrevocable, perhaps by restarting it. It calls tm_port_fatal for modes other than
 * ITM_MODE_SERIAL_IRREVOCABLE.
 */
void _ITM_changeTransactionMode(uint32_t mode);

/* Returns an enum itm_how_executing. */
uint32_t _ITM_inTransaction(void);

/*
 * Returns the identifier of the innermost transaction, unique among all threads, except that inner transactions of one
 * depth share one. A thread's identifiers repeat after 2 to the power of 40 transactions. Outside:
 * ITM_NO_TRANSACTION_ID.
 */
itm_transaction_id _ITM_getTransactionId(void);

/* Whether the library supports code of this revision of the interface. */
int _ITM_versionCompatible(int version);

/* Names the library and its algorithm. */
const char *_ITM_libraryVersion(void);

/* Ends the program with an error that the compiler found in it, through tm_port_fatal. */
void _ITM_error(const struct itm_source_location *location, int code) __attribute__((noreturn));

/*
 * Calls `function` after the outermost transaction has committed, in the order in which they were added; outside of a
 * transaction at once. `resuming` has to be ITM_NO_TRANSACTION_ID. An action may begin transactions.
 */
void _ITM_addUserCommitAction(void (*function)(void *argument), itm_transaction_id resuming, void *argument);

/*
 * Calls `function` when this transaction is cancelled or restarted, after memory has been restored; the last added
 * first.
 */
void _ITM_addUserUndoAction(void (*function)(void *argument), void *argument);

/*
 * States that the transaction does not depend on this memory any more. The library ignores it: forgetting would only
 * save space.
 */
void _ITM_dropReferences(void *memory, size_t size_bytes);

/* malloc, calloc and free of code in transactions: tm_alloc and tm_free. */
void *_ITM_malloc(size_t size_bytes);
void *_ITM_calloc(size_t count, size_t size_bytes);
void _ITM_free(void *memory);

/* operator new and operator delete of C++ in transactions: itm_new.c. */
struct nothrow;
#define ITM_DECLARE_NEW(new) \
    void *_ZGTt##new(size_t size_bytes); \
    void *_ZGTt##new##RKSt9nothrow_t(size_t size_bytes, const struct nothrow *nothrow);
#define ITM_DECLARE_DELETE(delete) \
    void _ZGTt##delete(void *memory); \
    void _ZGTt##delete##m(void *memory, size_t size_bytes); \
    void _ZGTt##delete##RKSt9nothrow_t(void *memory, const struct nothrow *nothrow); \
    void _ZGTt##delete##mRKSt9nothrow_t(void *memory, size_t size_bytes, const struct nothrow *nothrow);
ITM_DECLARE_NEW(nwm)
ITM_DECLARE_NEW(nam)
ITM_DECLARE_DELETE(dlPv)
ITM_DECLARE_DELETE(daPv)

/*
 * Functions and their instrumented copies ("clones"), as pairs of addresses in the compiler's table. The C run-time's
 * start code calls these for each program and shared library, and a freestanding program calls them for its own table.
 * A transaction must not. The table is copied. Without memory for the copy, its functions are treated as having no
 * clones.
 */
void _ITM_registerTMCloneTable(void *table, size_t count);
void _ITM_deregisterTMCloneTable(void *table);

/*
 * Returns the clone of a function whose type says that it is safe in transactions. If there is none, it calls
 * tm_port_fatal.
 */
void *_ITM_getTMCloneSafe(void *function);

/*
 * Returns the function's clone. A function without a clone is returned itself, and the transaction becomes irrevocable.
 */
void *_ITM_getTMCloneOrIrrevocable(void *function);

/*
 * Accesses, for types T:
 *
 *     T _ITM_R{,aR,aW,fW}T(const T *)     a load: the first, after another load, after a store, before a store
 *     void _ITM_W{,aR,aW}T(T *, T)        a store: the first, after a load, after another store
 *     void _ITM_LT(const T *)             remembers memory that no other context accesses, before an ordinary store
 *
 * tm_load and tm_store have the names U1, U2, U4, U8 as well, defined beside them (itm_names.h). F, D, E, CF, CD, CE
 * are float, double, long double and their complex types; M64, M128, M256 are vectors of x86. Accesses to an address
 * that is no multiple of 8, and accesses of more than 8 bytes, are done in smaller pieces. The transaction makes them
 * atomic, like all its accesses.
 */
#define ITM_DECLARE_ACCESSES(suffix, type) \
    type _ITM_R##suffix(const type *address); \
    type _ITM_RaR##suffix(const type *address); \
    type _ITM_RaW##suffix(const type *address); \
    type _ITM_RfW##suffix(const type *address); \
    void _ITM_W##suffix(type *address, type value); \
    void _ITM_WaR##suffix(type *address, type value); \
    void _ITM_WaW##suffix(type *address, type value); \
    void _ITM_L##suffix(const type *address);

ITM_DECLARE_ACCESSES(U1, uint8_t)
ITM_DECLARE_ACCESSES(U2, uint16_t)
ITM_DECLARE_ACCESSES(U4, uint32_t)
ITM_DECLARE_ACCESSES(U8, uint64_t)

/* As _ITM_L, of any number of bytes. */
void _ITM_LB(const void *address, size_t size_bytes);

/*
 * memcpy and memmove: R says how the source is loaded and W how the destination is stored to. n is an ordinary access,
 * t a transactional one, taR and taW a transactional one after another load or store. Sizes and addresses may be
 * anything; areas may overlap in both. They return `to`: libitm's functions return nothing, but GCC expects `to` in the
 * result's register.
 */
#define ITM_DECLARE_COPY(how) \
    void *_ITM_memcpy##how(void *to, const void *from, size_t size_bytes); \
    void *_ITM_memmove##how(void *to, const void *from, size_t size_bytes);
ITM_DECLARE_COPY(RnWt)
ITM_DECLARE_COPY(RnWtaR)
ITM_DECLARE_COPY(RnWtaW)
ITM_DECLARE_COPY(RtWn)
ITM_DECLARE_COPY(RtaRWn)
ITM_DECLARE_COPY(RtaWWn)
ITM_DECLARE_COPY(RtWt)
ITM_DECLARE_COPY(RtWtaR)
ITM_DECLARE_COPY(RtWtaW)
ITM_DECLARE_COPY(RtaRWt)
ITM_DECLARE_COPY(RtaRWtaR)
ITM_DECLARE_COPY(RtaRWtaW)
ITM_DECLARE_COPY(RtaWWt)
ITM_DECLARE_COPY(RtaWWtaR)
ITM_DECLARE_COPY(RtaWWtaW)

/* memset: `byte` as in memset. Returns `to`. */
void *_ITM_memsetW(void *to, int byte, size_t size_bytes);
void *_ITM_memsetWaR(void *to, int byte, size_t size_bytes);
void *_ITM_memsetWaW(void *to, int byte, size_t size_bytes);

TM_DECLARATIONS_END

#pragma GCC visibility push(hidden)

/* The half of _ITM_beginTransaction in C; checkpoint.S calls it. */
uint32_t tm_itm_begin(uint32_t properties, const struct tm_checkpoint *checkpoint);

/*
 * Adds an undo action that does nothing yet, for the caller to change. Null if this transaction, or code outside of any,
 * is never taken back. May restart the transaction.
 */
struct tm_action *tm_itm_add_undo(struct tm_transaction *transaction);
void tm_itm_do_nothing(void *unused);

/* Whether the address is in an exception that this transaction is constructing. */
bool tm_itm_is_in_exception(const struct tm_transaction *transaction, const void *address);

/*
 * itm_block.c: loads or stores a block of shared memory by words as large as its address allows. The private end may be
 * unaligned as well.
 */
void tm_itm_load_block(void *to, const void *from, size_t size_bytes);
void tm_itm_store_block(void *to, const void *from, size_t size_bytes);

/* Clears memory that no other context accesses. */
void tm_itm_clear_private(void *memory, size_t size_bytes);

#pragma GCC visibility pop

/* Words of private memory, at any address. */
typedef uint64_t __attribute__((may_alias)) itm_aligned_word;
typedef uint64_t __attribute__((may_alias, aligned(1))) itm_unaligned_word;

/* Loads or stores values of whole words that are nearly always aligned. */
TM_INLINE void tm_itm_load_words(void *to, const void *from, size_t words)
{
    if (TM_UNLIKELY((uintptr_t)from % 8)) {
        tm_itm_load_block(to, from, 8 * words);
        return;
    }
    for (size_t word = 0; word < words; word++)
        ((itm_aligned_word *)to)[word] = tm_load64((const uint64_t *)from + word);
}

TM_INLINE void tm_itm_store_words(void *to, const void *from, size_t words)
{
    if (TM_UNLIKELY((uintptr_t)to % 8)) {
        tm_itm_store_block(to, from, 8 * words);
        return;
    }
    for (size_t word = 0; word < words; word++)
        tm_store64((uint64_t *)to + word, ((const itm_aligned_word *)from)[word]);
}

/* Other names for _ITM_R... and _ITM_W... of a type, behind their definitions. */
#define ITM_ALIAS(name, function) \
    extern __typeof__(function) _ITM_##name __attribute__((alias(#function), visibility("default")));
#define ITM_OTHER_NAMES(suffix) \
    ITM_ALIAS(RaR##suffix, _ITM_R##suffix) \
    ITM_ALIAS(RaW##suffix, _ITM_R##suffix) \
    ITM_ALIAS(RfW##suffix, _ITM_R##suffix) \
    ITM_ALIAS(WaR##suffix, _ITM_W##suffix) \
    ITM_ALIAS(WaW##suffix, _ITM_W##suffix)

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Software transactions: the plain interface, after Bressler, "Software Transactional Memory in the Linux Kernel", 2012, section 3.1.
 * Where it departs from the paper:
 * - tm_start takes no jump buffer. It returns again at each restart, and keeps the registers in the thread's own state.
 * - Restarting (tm_abort) and giving up (tm_cancel) are told apart.
 * - Its macros TM_LOAD64 and so on are the functions tm_load64 and so on, without a second name.
 * - A transaction has a mode (Schultz, "Using Software Transactional Memory in Interrupt-Driven Systems", 2009).
 *
 *     if (tm_start(0) == TM_STARTED) {
 *         tm_store(&to, tm_load(&to) + 1);
 *         tm_commit();
 *     }
 *
 * Transactions access shared data through tm_load and tm_store. tm_store_local is for data of one thread that existed
 * before the transaction. A local variable that is changed without it keeps an undefined value after a restart, as
 * after setjmp.
 *
 * Transactions are opaque: no transaction, not even one that will restart, ever sees a state that was not committed as
 * a whole. They are atomic with each other and not with plain accesses, but privatization and publication are safe.
 * Data that a transaction has made unreachable for others may be accessed plainly once its tm_commit has returned, and
 * a transaction may publish data that was accessed plainly. For programs without races this equals one global lock
 * around every transaction, with one exception: a thread that learns from its own read-only transaction that another
 * transaction has privatized data has to wait until the tm_commit of that transaction has returned.
 *
 * A function that contains tm_start must not return before the transaction has ended.
 */
#ifndef TM_TM_H
#define TM_TM_H

#include <tm/port.h>

TM_DECLARATIONS_BEGIN

/* Options of tm_start. */
#define TM_READ_ONLY 1u /* Only loads, which need leave no record. A store restarts the transaction without this. */
#define TM_PESSIMISTIC 2u /* Loads lock what they read, so no other transaction invalidates it. */
#define TM_SERIAL 4u /* Runs alone, and is irrevocable: never restarts, cannot be cancelled, may do anything. */
#define TM_OBSTINATE 8u /* Beats every conflict, for interrupt handlers. Never waits for a transaction that it interrupted. */
#define TM_NOT_PRIVATIZING 16u /* The caller makes nothing private and frees nothing: the commit need not wait for slower readers. */

/* Answers of tm_start. The caller is in a transaction only after TM_STARTED. */
#define TM_STARTED 0u
#define TM_CANCELLED 1u /* tm_cancel was called, and nothing has happened. */
#define TM_EXHAUSTED 2u /* There is no memory for the transaction's sets, and nothing has happened. */
#define TM_TOO_DEEP 3u /* TM_DEPTH_MAX transactions are open. */
#define TM_MISUSED 5u /* TM_SERIAL in an interrupt handler, where the port does not end the program for it. */
#define TM_RESTARTED 4u /* Only of tm_restart_here: the transaction has begun again. */

/* Answers of tm_commit. */
#define TM_COMMITTED 0
#define TM_NO_TRANSACTION 1 /* None was open. */

#define TM_DEPTH_MAX 255u

/*
 * Starts a transaction, or nests: an inner transaction commits with the outermost. Returns again at each restart.
 *
 * A context's state is made at its first transaction; where there is no memory for it the answer is TM_EXHAUSTED. An interrupt handler's is
 * made by tm_port_interrupts_prepare, and its transactions are always obstinate.
 *
 * It orders memory like the acquire of a lock, and tm_commit like its release.
 */
unsigned tm_start(unsigned flags) __attribute__((returns_twice, warn_unused_result));

/*
 * For callers whose frames nothing may jump over, such as those of languages with destructors. Answers TM_STARTED, and
 * from then on a restart or a cancel of the open transaction returns from this call, with TM_RESTARTED or TM_CANCELLED (or
 * TM_EXHAUSTED), instead of from tm_start. It holds until the function that called it returns: a caller that calls it
 * before each other call of the library may leave the function that contains tm_start.
 */
unsigned tm_restart_here(void) __attribute__((returns_twice, warn_unused_result));

/*
 * Ends the innermost transaction; the outermost one's changes become visible all at once, or it restarts and this does not return.
 * Waits for transactions that may still see what this one has made private, unless it wrote nothing or said TM_NOT_PRIVATIZING.
 */
int tm_commit(void);

/* Restarts the outermost transaction. Without a transaction it does nothing and returns. */
void tm_abort(void);

/*
 * Gives the innermost transaction up: its tm_start returns TM_CANCELLED, and nothing of it has happened. Without a transaction it
 * does nothing and returns. An irrevocable transaction cannot be cancelled: tm_port_fatal.
 */
void tm_cancel(void);

/* Whether a transaction is open in this context. */
int tm_in_transaction(void);

/* Makes the transaction irrevocable, perhaps by restarting it: from here on it runs alone, and may do what cannot be undone. */
void tm_become_irrevocable(void);

/*
 * Loads and stores of 8 to 64 bits. An address that is no multiple of its size is accessed by bytes: still atomic with other transactions.
 * Outside of a transaction they are plain accesses.
 */
uint8_t tm_load8(const uint8_t *address);
uint16_t tm_load16(const uint16_t *address);
uint32_t tm_load32(const uint32_t *address);
uint64_t tm_load64(const uint64_t *address);
void tm_store8(uint8_t *address, uint8_t value);
void tm_store16(uint16_t *address, uint16_t value);
void tm_store32(uint32_t *address, uint32_t value);
void tm_store64(uint64_t *address, uint64_t value);

/* Stores to what nobody but this context accesses until it commits: a restart or a cancel brings the old value back. */
void tm_store_local8(uint8_t *address, uint8_t value);
void tm_store_local16(uint16_t *address, uint16_t value);
void tm_store_local32(uint32_t *address, uint32_t value);
void tm_store_local64(uint64_t *address, uint64_t value);

/* tm_load, tm_store and tm_store_local are those of the object's type, from <tm/access.h> at the end. */

/*
 * Allocates memory that a restart or a cancel frees again. `flags` goes to the host's allocator (Linux: GFP_KERNEL and the like; elsewhere
 * 0). Null when there is none, and in signal and bare interrupt handlers. What is not yet published may be written plainly.
 */
void *tm_alloc(size_t size_bytes, unsigned flags);

/* Frees memory once the transaction has committed and no other one can still read it. Outside of a transaction: at once. */
void tm_free(void *memory);

/*
 * Locked sections that exclude transactions (Bressler, section 3.1): for what cannot be in a transaction. The lock is a 64-bit word that
 * begins as 0. tm_lock waits until it is free and until no transaction that has called tm_weak_lock for it is under way; a transaction
 * that calls tm_weak_lock (at its beginning) waits while the lock is held. Not for use in a transaction or an interrupt
 * handler: tm_lock, tm_unlock. A section of tm_lock contains no transaction, and so no other tm_lock.
 */
void tm_lock(uint64_t *lock);
void tm_unlock(uint64_t *lock);
void tm_weak_lock(uint64_t *lock);

/* Counted for each context, and of the calling one. */
struct tm_counts {
    uint64_t commits; /* Of outermost transactions. */
    uint64_t read_only_commits; /* Of them, those that had written nothing. */
    uint64_t cancels;
    uint64_t serial_commits; /* Of them, those that ran alone. */
    uint64_t restarts[8]; /* By cause: enum tm_cause. */
};

enum tm_cause {
    TM_CAUSE_LOCKED, /* Another transaction held a record for too long. */
    TM_CAUSE_INVALID, /* A word that the transaction had read was changed. */
    TM_CAUSE_DOOMED, /* An obstinate transaction needed a record that this one had locked. */
    TM_CAUSE_SERIAL, /* Another transaction runs alone. */
    TM_CAUSE_EXPLICIT, /* tm_abort, and tm_weak_lock on a lock that was held. */
    TM_CAUSE_FULL, /* A set was full, and is made larger. */
    TM_CAUSE_READ_ONLY, /* A transaction that said TM_READ_ONLY stored, or would have had to look back. */
    TM_CAUSE_IRREVOCABLE, /* It asked to become irrevocable and could not where it was. */
};

void tm_read_counts(struct tm_counts *counts);

/* "tl2" or "2pl". */
extern const char tm_algorithm_name[];

TM_DECLARATIONS_END

#include <tm/access.h>

#endif

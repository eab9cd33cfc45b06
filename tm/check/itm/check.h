/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Checks of the compiler's interface: programs compiled with -fgnu-tm against libtm. Every suite runs twice: while its
 * context is the only one, whose transactions touch memory directly, and beside another context, where they do not.
 */
#ifndef TM_CHECK_ITM_CHECK_H
#define TM_CHECK_ITM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks are counted, and failures are printed. Not in transactions. */
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
void check(bool holds, const char *condition, const char *file, int line);

/* The suites, each in its file. */
void check_accesses(void);
void check_vectors(void); /* x86-64 */
void check_blocks(unsigned step); /* Every step-th alignment. */
void check_nesting(void);
void check_locals(void);
void check_irrevocable(void);
void check_clones(void);
void check_memory(void);
void check_logs(void);
void check_calls(void);

/*
 * Contended workloads: a preparation, the work of each of `threads` threads at a time (`turns` sets the length), and
 * the check of the result.
 */
void prepare_torture(void);
void torture(unsigned thread, unsigned threads, unsigned turns, uint64_t seed);
void check_torture(unsigned threads, unsigned turns);

/* The interface for programs (stm/itm.h), in the form that the compiler has to know. */
#define PURE __attribute__((transaction_pure))
#define SAFE __attribute__((transaction_safe))
#define CALLABLE __attribute__((transaction_callable))
#define NOINLINE __attribute__((noinline))

PURE uint32_t _ITM_inTransaction(void);
PURE uint64_t _ITM_getTransactionId(void);
PURE void _ITM_abortTransaction(uint32_t reason);
PURE void _ITM_addUserCommitAction(void (*function)(void *argument), uint64_t resuming, void *argument);
PURE void _ITM_addUserUndoAction(void (*function)(void *argument), void *argument);
PURE void _ITM_dropReferences(void *memory, size_t size_bytes);
int _ITM_versionCompatible(int version);
const char *_ITM_libraryVersion(void);

#define IN_RETRYABLE_TRANSACTION 1
#define IN_IRREVOCABLE_TRANSACTION 2
#define USER_RETRY 2
#define NO_TRANSACTION_ID 1

/* The address itself, hidden from the compiler. */
PURE long *escape(long *address);

/* Functions of the C library, or of its stand-in (host_bare.c); in transactions the compiler calls its own instead. */
void *malloc(size_t size_bytes);
void *calloc(size_t count, size_t size_bytes);
void free(void *memory);
void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes);
void *memmove(void *to, const void *from, size_t size_bytes);
void *memset(void *to, int value, size_t size_bytes);

/* Restarts the transaction if that is possible and has not happened yet; `restarts` counts. */
PURE void restart_once(unsigned *restarts);

#endif

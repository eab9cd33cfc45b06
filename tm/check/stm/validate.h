/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of the validation of transactions: tests by families, and the functions that they need beyond the host of
 * the check programs.
 */
#ifndef TM_CHECK_STM_VALIDATE_H
#define TM_CHECK_STM_VALIDATE_H

#include <tm/tm.h>

#include "../host.h"
#include "../random.h"

struct validate_test {
    const char *name;
    void (*run)(void);
};

struct validate_family {
    const char *name;
    const struct validate_test *tests;
};

/* Tests of each family. The last has no name. */
extern const struct validate_test validate_words[], validate_nesting[], validate_memory[], validate_locks[];
extern const struct validate_test validate_litmus[], validate_interrupts[];
/* Of user programs. */
extern const struct validate_test validate_joining[], validate_stepping[];

/* The number of transactions of a test, all threads together. */
extern uint64_t validate_operations;
extern unsigned validate_threads;
extern uint64_t validate_seed;

/*
 * Reports, and ends the program. Also inside of a transaction, whether it will commit or not: no transaction may ever
 * see an invalid state.
 */
void validate_failed(const char *what) __attribute__((noreturn));
#define VALIDATE(condition, what) ((condition) ? (void)0 : validate_failed(what))

/* `run` has to end by tm_port_fatal with this text, or the test fails. It does nothing on a host that cannot tell. */
void validate_dies(void (*run)(void), const char *text);

#define VALIDATE_NOINLINE __attribute__((noinline))

/* Begins a transaction. Any other answer is a failure. */
#define VALIDATE_START(flags) VALIDATE(tm_start(flags) == TM_STARTED, "tm_start answered something else than TM_STARTED")
#define VALIDATE_COMMIT() VALIDATE(tm_commit() == TM_COMMITTED, "tm_commit answered something else than TM_COMMITTED")

/* The present part of the test, for the report of a failure, or null. */
extern const char *validate_case;
extern uint64_t validate_step;

/* Runs body(0) to body(validate_threads - 1), all at a time. */
void validate_run(void (*body)(unsigned thread));

/* A thread's part of the operations. */
uint64_t validate_share(void);

/* A short delay, so that transactions begin in the middle of others. */
static inline void validate_wait(uint32_t turns)
{
    while (turns--)
        tm_port_relax();
}

/* Random flags of a transaction: most have none. All hints are right for all transactions, except TM_READ_ONLY. */
unsigned validate_flags(uint64_t *random);
/* The same, for transactions that can be cancelled. */
unsigned validate_flags_cancellable(uint64_t *random);

/*
 * Memory of tm_alloc with these flags (through tm_port_allocate, which the program replaces) is guarded: accesses after
 * it was freed are detected, by a fault if the host has memory protection.
 */
#define VALIDATE_GUARDED 0x40000000u
/* From now on every `period`-th allocation of this program fails; 0: none. */
void validate_fail_allocations(unsigned period);
/* Guarded allocations that have not been freed. */
uint64_t validate_guarded_count(void);

/* validate_host_HOST.c */

/* Memory of at least `size_bytes`; filled with VALIDATE_POISON or protected when it is freed. */
#define VALIDATE_POISON 0x5a
void *validate_guarded_allocate(size_t size_bytes);
/* False for memory that is not guarded. */
bool validate_guarded_free(void *memory);

/* The number of levels in which handlers with transactions interrupt each other, on any host. */
#define VALIDATE_LEVELS_MAX 4u

/*
 * Interrupts the calling thread at about this rate; transactions are allowed in the handler. Its depth begins with 1.
 */
void validate_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us);
void validate_interrupts_end(void);

/* Runs before the first test. */
void validate_host_prepare(void);

/* Families of tests for this host alone. The last has no name. */
extern const struct validate_family validate_host_families[];

#endif

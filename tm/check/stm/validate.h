/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the validation of transactions is made of: tests by families, and what they need beyond the host of the check programs. */
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

/* How many transactions a test runs, all threads together. */
extern uint64_t validate_operations;
extern unsigned validate_threads;
extern uint64_t validate_seed;

/* Reports, and ends the program. Also inside of a transaction, whatever becomes of it: none may ever see what is wrong. */
void validate_failed(const char *what) __attribute__((noreturn));
#define VALIDATE(condition, what) ((condition) ? (void)0 : validate_failed(what))

/* `run` has to end by tm_port_fatal with this text, or the test fails; nothing where the host cannot tell. */
void validate_dies(void (*run)(void), const char *text);

#define VALIDATE_NOINLINE __attribute__((noinline))

/* Begins a transaction that has to begin. */
#define VALIDATE_START(flags) VALIDATE(tm_start(flags) == TM_STARTED, "tm_start answered something else than TM_STARTED")
#define VALIDATE_COMMIT() VALIDATE(tm_commit() == TM_COMMITTED, "tm_commit answered something else than TM_COMMITTED")

/* What the test is doing, for the report of a failure; null: nothing in particular. */
extern const char *validate_case;
extern uint64_t validate_step;

/* Runs body(0) to body(validate_threads - 1), all at a time. */
void validate_run(void (*body)(unsigned thread));

/* A thread's part of the operations. */
uint64_t validate_share(void);

/* A little while, so that transactions meet in the middle of others. */
static inline void validate_wait(uint32_t turns)
{
    while (turns--)
        tm_port_relax();
}

/* Flags of a transaction, as different ones meet: most have none. All hints are right for all transactions, but for TM_READ_ONLY. */
unsigned validate_flags(uint64_t *random);
/* The same, of transactions that can be cancelled. */
unsigned validate_flags_cancellable(uint64_t *random);

/*
 * Memory of tm_alloc with these flags (through tm_port_allocate, which the program replaces): accesses that come after it was freed are
 * found out, by a fault where the host has memory protection.
 */
#define VALIDATE_GUARDED 0x40000000u
/* From now on every so many-th allocation of this program fails; 0: none. */
void validate_fail_allocations(unsigned period);
/* Guarded allocations that have not been freed. */
uint64_t validate_guarded_count(void);

/* validate_host_HOST.c */

/* Memory of at least `size_bytes`; filled with VALIDATE_POISON or protected when it is freed. */
#define VALIDATE_POISON 0x5a
void *validate_guarded_allocate(size_t size_bytes);
/* False where the memory is not such. */
bool validate_guarded_free(void *memory);

/* How deep handlers with transactions interrupt each other, on any host. */
#define VALIDATE_LEVELS_MAX 4u

/* The calling thread is interrupted about as often; transactions are allowed in the handler. Its depth begins with 1. */
void validate_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us);
void validate_interrupts_end(void);

/* Before the first test. */
void validate_host_prepare(void);

/* Families of tests that only this host has. The last has no name. */
extern const struct validate_family validate_host_families[];

#endif

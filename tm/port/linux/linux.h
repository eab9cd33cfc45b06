/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Declarations that the parts of the module share. */
#ifndef TM_LINUX_H
#define TM_LINUX_H

/* Makes the states of interrupts: 0, or -ENOMEM with some of them made. */
int tm_linux_contexts_make(void);

/* Frees all states. By then no thread has one (tm_linux_threads), and no interrupt uses the library. */
void tm_linux_contexts_free(void);

/* Threads that have a transaction state. Each holds a reference to the module. */
unsigned tm_linux_threads(void);

/*
 * Runs every test with `threads` threads, each of which does `iterations` pieces of work. Returns 0, or an error whose
 * reason is on the console.
 */
int tm_linux_test(unsigned threads, unsigned iterations, u64 seed);

/* Makes the mistakes of callers that warn. Returns 0, or an error if they do more than that. */
int tm_linux_test_misuse(void);

#endif

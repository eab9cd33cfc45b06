/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of the module tell each other. */
#ifndef TM_LINUX_H
#define TM_LINUX_H

/* Makes the states of interrupts: 0, or -ENOMEM with some of them made. */
int tm_linux_contexts_make(void);

/* Frees all states. No thread has one any more (tm_linux_threads), and no interrupt uses the library. */
void tm_linux_contexts_free(void);

/* Threads that have a transaction state. Each holds a reference to the module. */
unsigned tm_linux_threads(void);

/*
 * Runs every test with `threads` threads that do `iterations` pieces of work each: 0, or an error, with its reason on
 * the console.
 */
int tm_linux_test(unsigned threads, unsigned iterations, u64 seed);

#endif

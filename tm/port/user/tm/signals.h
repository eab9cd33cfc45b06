/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactions in signal handlers. Each thread that may be interrupted by such a signal prepares, and the handler says where it begins and
 * where it ends:
 *
 *     static void handler(int signal, siginfo_t *information, void *context)
 *     {
 *         tm_signal_enter(context);
 *         if (tm_start(0) == TM_STARTED) { ...; tm_commit(); }
 *         tm_signal_leave();
 *     }
 *
 * Its transactions are obstinate: they beat those of threads and never wait for the one that was interrupted. What they free is freed by
 * the thread later. What they take out of others' reach must not be accessed plainly in the handler: only tm_free waits for slower readers.
 */
#ifndef TM_SIGNALS_H
#define TM_SIGNALS_H

#include <signal.h>

/* Handlers of one thread that can interrupt each other. */
#define TM_SIGNAL_LEVELS_MAX 4u

/* Says which signals' handlers contain transactions; before the first of them can come. While a transaction runs alone they wait. */
void tm_signals_declare(const sigset_t *signals);

/* Makes the calling thread ready for `levels` handlers within each other. 0, or ENOMEM, or EINVAL above TM_SIGNAL_LEVELS_MAX,
 * or EBUSY in a transaction. */
int tm_signals_prepare(unsigned levels);

/* In a handler installed with SA_SIGINFO: `context` is its third argument. */
void tm_signal_enter(void *context);
void tm_signal_leave(void);

#endif

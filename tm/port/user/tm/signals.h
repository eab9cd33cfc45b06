/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactions in signal handlers. Each thread that such a signal may interrupt prepares for it, and the handler marks
 * its begin and its end:
 *
 *     static void handler(int signal, siginfo_t *information, void *context)
 *     {
 *         tm_signal_enter(context);
 *         if (tm_start(0) == TM_STARTED) { ...; tm_commit(); }
 *         tm_signal_leave();
 *     }
 *
 * The handler's transactions are obstinate: they win against those of threads and never wait for the interrupted one.
 * Memory that they free is given back by the thread later. Data that they make private must not be accessed plainly in
 * the handler: only tm_free waits for slower readers.
 */
#ifndef TM_SIGNALS_H
#define TM_SIGNALS_H

#include <signal.h>

#include <tm/compiler.h>

TM_DECLARATIONS_BEGIN

/* Nested handlers of one thread. */
#define TM_SIGNAL_LEVELS_MAX 4u

/*
 * Declares the signals whose handlers contain transactions, before the first of them can arrive. While a transaction
 * runs alone they wait.
 */
void tm_signals_declare(const sigset_t *signals);

/*
 * Prepares the calling thread for `levels` nested handlers. Returns 0, or ENOMEM, or EINVAL above TM_SIGNAL_LEVELS_MAX,
 * or EBUSY in a transaction.
 */
int tm_signals_prepare(unsigned levels);

/* In a handler installed with SA_SIGINFO: `context` is its third argument. */
void tm_signal_enter(void *context);
void tm_signal_leave(void);

TM_DECLARATIONS_END

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef CONCORD_INSTANCES_H
#define CONCORD_INSTANCES_H

/* The largest accepted number of processes. */
#define INSTANCES_MAX 4096

/*
 * Runs work(number, context) in `count` processes, with numbers from 0 to count - 1, and waits for all of
 * them. All processes start first and wait at a barrier. The machine's region of interest lasts from
 * the opening of the barrier to the end of the last process. The environment variable CONCORD_GEAR
 * chooses its gear ("timed" or "functional"); without the variable the gear does not change. After the
 * region one line on standard output says how all processors spent their time, as the kernel counts it.
 *
 * Returns the number of processes that did not end with status 0, and names each on standard error.
 * Ends the program with status 1 if memory or processes are lacking.
 */
unsigned instances_run(unsigned count, int (*work)(unsigned number, void *context), void *context);

/* Prints a message and the reason in errno, and ends the program with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/*
 * Reads `text` as a whole number from `minimum` to `maximum`. Any other text ends the program with status
 * 2 and a message that names the value as `what`.
 */
unsigned long number_of(const char *what, const char *text, unsigned long minimum, unsigned long maximum);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef CONCORD_INSTANCES_H
#define CONCORD_INSTANCES_H

/* More than this many processes at once are refused. */
#define INSTANCES_MAX 4096

/*
 * Runs work(number, context) in `count` processes, number 0 to count - 1, and waits for them all. They are started first and held at
 * a barrier; the machine's region of interest lasts from the barrier's opening to the end of the last process, and runs in the gear
 * that the environment variable CONCORD_GEAR names ("timed" or "functional"; without it the gear stays). After the region a line
 * on standard output says how the time of all processors was spent, as the kernel counts it.
 *
 * Returns the number of processes that did not end with status 0; each is named on standard error. What cannot be done at all
 * (no memory, no process) ends the program with status 1.
 */
unsigned instances_run(unsigned count, int (*work)(unsigned number, void *context), void *context);

/* Prints a message and the reason in errno, and ends the program with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* The whole number that `text` is, from `minimum` to `maximum`; anything else ends the program with status 2 and names `what`. */
unsigned long number_of(const char *what, const char *text, unsigned long minimum, unsigned long maximum);

#endif

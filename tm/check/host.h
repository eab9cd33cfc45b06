/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that check programs need from their host beyond the library's port. A program defines check_main;
 * host_HOST.c defines the rest.
 *
 * Words `key=value` are a program's parameters: arguments of a user program, the kernel command line of the machine.
 */
#ifndef TM_CHECK_HOST_H
#define TM_CHECK_HOST_H

#include <tm/port.h>

/* No program runs more threads at a time than this, nor more than host_threads_max. */
#define HOST_THREADS_MAX 1024u

/* The program. It returns its exit code: 0 is success. */
int check_main(void);

/* Returns the value of the word `key=value`, or `otherwise` if there is none. */
const char *host_text(const char *key, const char *otherwise);

/* The same for a number. A value that is no number ends the program. */
uint64_t host_number(const char *key, uint64_t otherwise);

/* Processors that threads run on. */
unsigned host_processors(void);

/* Threads that host_run can run. */
unsigned host_threads_max(void);

/*
 * Runs body(0) to body(threads - 1), each on its own thread and all at a time, and returns when they have returned.
 * They start together, as far as there are processors. The caller is none of them, but may share its processor with
 * one.
 */
void host_run(unsigned threads, void (*body)(unsigned thread));

/* Lets another thread run, where several share a processor. */
void host_yield(void);

/* A clock that all threads share, and the number of its units in a second. */
uint64_t host_clock(void);
uint64_t host_clock_frequency_hz(void);

/* "ns" or "cycles": the unit of host_clock, for the names of results. */
const char *host_clock_unit(void);

/* Prints on the standard output, at once, and unmixed with what other threads print. */
void host_print(const char *text);

/* Ends the program, whether or not other threads still run. */
void host_exit(int code) __attribute__((noreturn));

/*
 * Runs the body in its own process, and returns its report if it ended through tm_port_fatal, otherwise "". Returns
 * NULL on a host without processes, where the body has not run.
 */
const char *host_fatal(void (*body)(void));

/* Ends the program as failed unless it is called again within this time. 0: never. */
void host_watchdog(unsigned seconds);

/* The number of levels in which interrupt handlers interrupt each other; 0 if the host has none. */
unsigned host_interrupt_levels(void);

/*
 * From here on the calling thread is interrupted now and then, also in handlers, until host_interrupts_end. The
 * argument of `handler` is the depth: 1 if it interrupts the thread itself, 2 if it interrupts that handler, up to
 * host_interrupt_levels.
 */
void host_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us);
void host_interrupts_end(void);

#endif

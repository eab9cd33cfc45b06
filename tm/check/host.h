/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the check programs need of their host beyond the library's port. A program defines check_main; host_HOST.c
 * has the rest.
 *
 * A program is told what to do by words `key=value`: arguments of a user program, the kernel command line of the
 * machine.
 */
#ifndef TM_CHECK_HOST_H
#define TM_CHECK_HOST_H

#include <tm/port.h>

/* No program runs more threads at a time than this, nor more than host_threads_max. */
#define HOST_THREADS_MAX 1024u

/* The program. What it returns is how it ends: 0 is success. */
int check_main(void);

/* The value of the word `key=value`, or `otherwise` where there is none. */
const char *host_text(const char *key, const char *otherwise);

/* The same for a number. What is not a number ends the program. */
uint64_t host_number(const char *key, uint64_t otherwise);

/* Processors that threads run on. */
unsigned host_processors(void);

/* Threads that host_run can run. */
unsigned host_threads_max(void);

/*
 * Runs body(0) to body(threads - 1), each on a thread of its own and all at a time, and returns when they have
 * returned. They start together, as far as there are processors. Who calls this is none of them, but its processor may
 * be.
 */
void host_run(unsigned threads, void (*body)(unsigned thread));

/* Lets another thread run, where several share a processor. */
void host_yield(void);

/* A clock that all threads share, and how many of its units are a second. */
uint64_t host_clock(void);
uint64_t host_clock_frequency_hz(void);

/* "ns" or "cycles": the unit of host_clock, for the names of results. */
const char *host_clock_unit(void);

/* Prints on the standard output, at once, and unmixed with what other threads print. */
void host_print(const char *text);

/* Ends the program, whatever other threads do. */
void host_exit(int code) __attribute__((noreturn));

/*
 * Runs the body in a process of its own, and returns what it printed as it ended through tm_port_fatal: "" where it did
 * not end so. NULL where the host has no processes, and the body has not run.
 */
const char *host_fatal(void (*body)(void));

/* Unless called again within this time, the program ends as failed. 0: never. */
void host_watchdog(unsigned seconds);

/* How deep interrupt handlers interrupt each other; 0 where the host has none. */
unsigned host_interrupt_levels(void);

/*
 * From here on the calling thread is interrupted now and then, until host_interrupts_end, also in handlers.
 * `handler` is given the depth: 1 where it interrupts the thread itself, 2 where it interrupts that handler, up to
 * host_interrupt_levels.
 */
void host_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us);
void host_interrupts_end(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The interface between sections.c, compiled for each lock whose sections may be transactions, and sections_main.c. */
#ifndef TM_CHECK_SECTIONS_H
#define TM_CHECK_SECTIONS_H

#include <tm/port.h>

struct sections {
    const char *name;
    /* Runs all tests. A failure is reported, and ends the program. */
    void (*run)(void);
};

/* Sections that each thread runs through. */
extern uint64_t sections_count;
extern uint64_t sections_seed;
extern unsigned sections_threads;

/* Reports the result of a test. With `failure` not NULL it does not return. */
void sections_report(const char *lock, const char *test, const char *failure);

#endif

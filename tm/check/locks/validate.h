/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The interface between validate.c, compiled for each lock, and validate_main.c. */
#ifndef TM_CHECK_LOCKS_VALIDATE_H
#define TM_CHECK_LOCKS_VALIDATE_H

#include <tm/port.h>

struct validation {
    const char *name;
    /* Runs the requested tests. A failure is reported, and ends the program. */
    void (*run)(void);
};

/* Sections that each stress test runs through, all threads together. */
extern uint64_t validate_sections;
extern uint64_t validate_seed;

/* Reports the result. With `failure` not NULL it does not return. */
void validate_report(const char *lock, const char *test, const char *failure);

#endif

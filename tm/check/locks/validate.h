/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What validate.c makes of each lock, and what validate_main.c tells it. */
#ifndef TM_CHECK_LOCKS_VALIDATE_H
#define TM_CHECK_LOCKS_VALIDATE_H

#include <tm/port.h>

struct validation {
    const char *name;
    /* Runs the tests that are asked for. A failure is reported, and ends the program. */
    void (*run)(void);
};

/* Sections that each stress test runs through, all threads together. */
extern uint64_t validate_sections;
extern uint64_t validate_seed;

/* Reports the result. With `failure` not NULL it does not return. */
void validate_report(const char *lock, const char *test, const char *failure);

#endif

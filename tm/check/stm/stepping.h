/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The transactions to step through (stepping_cases.c), and the stepping (validate_stepping.c). */
#ifndef TM_CHECK_STM_STEPPING_H
#define TM_CHECK_STM_STEPPING_H

#include "validate.h"

#define STEPPING_WORDS 4u

/* The code that interrupts the stepped transaction. */
enum stepping_mode {
    STEPPING_HANDLER,
    STEPPING_HANDLERS, /* Another handler interrupts them. */
    STEPPING_THREAD,
    STEPPING_SECOND_CONTEXT, /* A thread, without other contexts. */
};

struct stepping_case {
    const char *name;
    /* The stepped transaction adds these amounts to the words when it commits; nothing to the last word. */
    uint64_t adds[STEPPING_WORDS];
    unsigned flags;
    void (*stepped)(void);
    void (*interrupting)(void);
    void (*prepare)(void);
    void (*check)(void);
    bool is_for_threads_only;
    /*
     * The other thread pauses in its middle (stepping_pause) until the stepped one has executed a few more
     * instructions.
     */
    bool has_pause;
};

extern const struct stepping_case stepping_cases[];
extern const unsigned stepping_cases_count;

/* Of the present run. */
extern enum stepping_mode stepping_mode;
extern const struct stepping_case *stepping_current;
extern unsigned stepping_variant;

/* The number of kinds of interrupting transactions in the present case. */
unsigned stepping_variants(void);

/* Before and after each run. */
void stepping_prepare(void);
void stepping_check(void);

/* In the interrupting transaction of a case that has a pause: lets the stepped one go on for a few instructions. */
void stepping_pause(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The calls of the library in C that Rust makes. A restart must not jump over frames of Rust, whose destructors would not
 * run: each function here moves the place that a restart returns to into itself, makes one call, and returns the answer
 * (TM_RESTARTED, ...). So no place is left in a function that has returned when the library is called again.
 */
#include <tm/tm.h>

uint32_t concord_tm_begin(void);
uint32_t concord_tm_nest(void);
uint32_t concord_tm_load(const uint64_t *address, uint64_t *value);
uint32_t concord_tm_store(uint64_t *address, uint64_t value);
uint32_t concord_tm_commit(void);
uint32_t concord_tm_restart(void);
uint32_t concord_tm_cancel(void);
uint32_t concord_tm_is_open(void);

uint32_t concord_tm_begin(void)
{
    return tm_start(0);
}

uint32_t concord_tm_nest(void)
{
    unsigned answer = tm_restart_here();
    return answer == TM_STARTED ? tm_start(0) : answer;
}

uint32_t concord_tm_load(const uint64_t *address, uint64_t *value)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        *value = tm_load64(address);
    return answer;
}

uint32_t concord_tm_store(uint64_t *address, uint64_t value)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_store64(address, value);
    return answer;
}

uint32_t concord_tm_commit(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_commit();
    return answer;
}

/* Answers TM_RESTARTED, or TM_EXHAUSTED. */
uint32_t concord_tm_restart(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_abort();
    return answer;
}

/* Answers TM_CANCELLED. */
uint32_t concord_tm_cancel(void)
{
    unsigned answer = tm_restart_here();
    if (answer == TM_STARTED)
        tm_cancel();
    return answer;
}

uint32_t concord_tm_is_open(void)
{
    return (uint32_t)tm_in_transaction();
}

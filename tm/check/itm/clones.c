/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Function pointers. */
#include "check.h"

typedef SAFE void safe_function(long *);
typedef void any_function(long *);

static long value;
static unsigned plain_calls;

static NOINLINE SAFE void add_one(long *to)
{
    ++*to;
}

static NOINLINE SAFE void add_two(long *to)
{
    *to += 2;
}

static NOINLINE CALLABLE void add_three(long *to)
{
    *to += 3;
}

static NOINLINE void add_four_plainly(long *to)
{
    plain_calls++;
    *to += 4;
}

static safe_function *const safe_functions[] = {add_one, add_two};
static any_function *volatile any_functions[] = {(any_function *)add_one, add_three, add_four_plainly};

static NOINLINE void call_safe(safe_function *function, bool cancel)
{
    __transaction_atomic
    {
        function(&value);
        if (cancel)
            __transaction_cancel;
    }
}

static NOINLINE uint32_t call_any(any_function *function)
{
    uint32_t how;
    __transaction_relaxed
    {
        value += 100;
        function(&value);
        how = _ITM_inTransaction();
    }
    return how;
}

/* A table like that of a library that is loaded and unloaded. */
struct clone {
    void *function;
    void *clone;
};
void _ITM_registerTMCloneTable(void *table, size_t count);
void _ITM_deregisterTMCloneTable(void *table);
void *_ITM_getTMCloneSafe(void *function);
void *_ITM_getTMCloneOrIrrevocable(void *function);

#define LARGE_COUNT 100

static void check_tables(void)
{
    static char functions[LARGE_COUNT], clones[LARGE_COUNT];
    static struct clone table[LARGE_COUNT];
    for (int again = 0; again < 3; again++) {
        size_t count = again ? LARGE_COUNT : 5;
        /* Not sorted. */
        for (size_t entry = 0; entry < count; entry++)
            table[entry] = (struct clone){&functions[entry * 37 % count], &clones[entry * 37 % count]};
        _ITM_registerTMCloneTable(table, count);
        for (size_t entry = 0; entry < count; entry++)
            CHECK(_ITM_getTMCloneSafe(&functions[entry]) == &clones[entry]);
        _ITM_deregisterTMCloneTable(table);
        /* Unregistered again. */
        CHECK(_ITM_getTMCloneOrIrrevocable(&functions[1]) == &functions[1]);
    }
    _ITM_registerTMCloneTable(table, 0);
}

void check_clones(void)
{
    value = 0;
    call_safe(safe_functions[0], false);
    CHECK(value == 1);
    call_safe(safe_functions[1], true);
    CHECK(value == 1);
    call_safe(safe_functions[1], false);
    CHECK(value == 3);

    call_any(any_functions[0]);
    CHECK(value == 104);
    call_any(any_functions[1]);
    CHECK(value == 207);
    plain_calls = 0;
    CHECK(call_any(any_functions[2]) == IN_IRREVOCABLE_TRANSACTION);
    CHECK(value == 311 && plain_calls == 1);

    check_tables();
}

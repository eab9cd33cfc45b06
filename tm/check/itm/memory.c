/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* malloc, calloc and free in transactions. */
#include "check.h"

static long *kept;
static unsigned allocations;

static NOINLINE void *allocate(size_t size_bytes, unsigned *restarts, bool cancel)
{
    void *memory = NULL;
    __transaction_atomic
    {
        long *words = malloc(size_bytes);
        words[0] = 1;
        words[size_bytes / 8 - 1] = 2;
        kept = words;
        memory = words;
        allocations++;
        restart_once(restarts);
        if (cancel)
            __transaction_cancel;
    }
    return memory;
}

static NOINLINE void replace(bool cancel)
{
    __transaction_atomic
    {
        long *words = malloc(sizeof *words);
        *words = *kept + 1;
        free(kept);
        kept = words;
        if (cancel)
            __transaction_cancel;
    }
}

/* Memory that the transaction itself has allocated. */
static NOINLINE void allocate_and_free(void)
{
    __transaction_atomic
    {
        long *words = malloc(64);
        words[1] = 7;
        long *more = calloc(3, 5);
        allocations += words[1] + more[0];
        free(words);
        free(more);
        free(NULL);
    }
}

static NOINLINE bool is_clear(size_t count, size_t size_bytes)
{
    bool clear = true;
    __transaction_atomic
    {
        unsigned char *bytes = calloc(count, size_bytes);
        for (size_t i = 0; i < count * size_bytes; i++)
            if (bytes[i])
                clear = false;
        free(bytes);
    }
    return clear;
}

static NOINLINE bool is_refused(size_t count, size_t size_bytes)
{
    void *memory;
    __transaction_atomic
    {
        memory = calloc(count, size_bytes);
    }
    return !memory;
}

void check_memory(void)
{
    unsigned restarts = 0;

    kept = NULL;
    allocations = 0;
    allocate(80, &restarts, true);
    CHECK(!kept && allocations == 0);
    restarts = 0;
    long *memory = allocate(80, &restarts, false);
    CHECK(kept == memory && allocations == 1 && memory[0] == 1 && memory[9] == 2);

    memory[0] = 5;
    replace(true);
    /* Not freed, and not overwritten. */
    CHECK(kept == memory && memory[0] == 5);
    replace(false);
    CHECK(*kept == 6);
    free(kept);

    for (int again = 0; again < 1000; again++)
        allocate_and_free();
    CHECK(allocations == 7001);

    for (size_t size_bytes = 1; size_bytes < 40; size_bytes++)
        CHECK(is_clear(3, size_bytes));
    static volatile size_t too_many = SIZE_MAX / 2;
    CHECK(is_refused(too_many, 4));
}

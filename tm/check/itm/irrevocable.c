/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Relaxed transactions: an action that cannot be undone happens once, and earlier effects of the transaction hold. */
#include "check.h"

static long a, b;
static unsigned done;

/* Stands for a system call: its effect cannot be taken back. */
static NOINLINE __attribute__((transaction_unsafe)) void do_once(void)
{
    __asm__ volatile("" : : : "memory");
    done++;
}

static NOINLINE void always(void)
{
    __transaction_relaxed
    {
        do_once();
        a++;
    }
}

static NOINLINE uint32_t sometimes(bool condition, unsigned *restarts)
{
    uint32_t how = 0;
    __transaction_relaxed
    {
        a++;
        restart_once(restarts);
        if (condition) {
            b = a;
            do_once();
            how = _ITM_inTransaction();
        }
        b++;
    }
    return how;
}

/* The inner transaction can still be cancelled. */
static NOINLINE void cancel_inside(bool cancel)
{
    __transaction_relaxed
    {
        a = 1;
        do_once();
        b = 1;
        __transaction_atomic
        {
            a = 2;
            b = 2;
            if (cancel)
                __transaction_cancel;
        }
        b += a;
    }
}

static NOINLINE CALLABLE void callable(bool condition)
{
    a++;
    if (condition)
        do_once();
    b = a;
}

static NOINLINE void call_callable(bool condition)
{
    __transaction_relaxed
    {
        callable(condition);
        a++;
    }
}

/* A relaxed transaction inside of one that has not become irrevocable yet. */
static NOINLINE CALLABLE void relaxed_inside(void)
{
    __transaction_relaxed
    {
        do_once();
        a++;
    }
}

static NOINLINE uint32_t nest_relaxed(void)
{
    uint32_t how;
    __transaction_relaxed
    {
        a++;
        relaxed_inside();
        how = _ITM_inTransaction();
        b = a;
    }
    return how;
}

void check_irrevocable(void)
{
    unsigned restarts = 0;

    a = b = 0;
    done = 0;
    always();
    CHECK(a == 1 && done == 1);
    CHECK(sometimes(false, &restarts) == 0);
    CHECK(a == 2 && b == 1 && done == 1);
    restarts = 0;
    CHECK(sometimes(true, &restarts) == IN_IRREVOCABLE_TRANSACTION);
    CHECK(a == 3 && b == 4 && done == 2);
    CHECK(_ITM_inTransaction() == 0);

    cancel_inside(true);
    CHECK(a == 1 && b == 2 && done == 3);
    cancel_inside(false);
    CHECK(a == 2 && b == 4 && done == 4);

    a = 0;
    call_callable(false);
    CHECK(a == 2 && b == 1 && done == 4);
    call_callable(true);
    CHECK(a == 4 && b == 3 && done == 5);

    a = 0;
    CHECK(nest_relaxed() == IN_IRREVOCABLE_TRANSACTION);
    CHECK(a == 2 && b == 2 && done == 6);
}

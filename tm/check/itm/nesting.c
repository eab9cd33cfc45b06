/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Cancel, of inner and of outer transactions, and what goes on afterwards. */
#include "check.h"

static long a, b, c;

static NOINLINE bool cancel_if(bool condition)
{
    bool done = false;
    __transaction_atomic
    {
        a = 1;
        b++;
        if (condition)
            __transaction_cancel;
        done = true;
    }
    return done;
}

/* The effects of the inner transaction are undone, and those before and after it stay. */
static NOINLINE void cancel_inner(bool inner, bool outer)
{
    __transaction_atomic
    {
        a = 10;
        b = 10;
        __transaction_atomic
        {
            a = 20;
            c = 20;
            if (inner)
                __transaction_cancel;
        }
        b += a;
        if (outer)
            __transaction_cancel;
    }
}

/* Stored again after an inner transaction was cancelled that had stored there, by parts of the word too. */
static union {
    long word;
    unsigned char bytes[8];
} parts;

static NOINLINE void store_around_cancel(void)
{
    __transaction_atomic
    {
        parts.bytes[0] = 1;
        __transaction_atomic
        {
            parts.bytes[0] = 2;
            parts.bytes[1] = 2;
            __transaction_cancel;
        }
        parts.bytes[2] = (unsigned char)(parts.bytes[0] + parts.bytes[1] + 3);
        __transaction_atomic
        {
            parts.word += 0x10;
            __transaction_atomic
            {
                parts.word = -1;
                __transaction_cancel;
            }
        }
        __transaction_atomic
        {
            parts.bytes[7] = 9;
        }
    }
}

/* A function of its own: its caller tells the begin that it will not be cancelled. */
static NOINLINE SAFE bool inner_function(long *own, bool cancel)
{
    bool done = false;
    long local = 5;
    long *escaped = escape(&local);
    __transaction_atomic
    {
        a++;
        ++*own;
        ++*escaped;
        if (cancel)
            __transaction_cancel;
        done = true;
    }
    return done && local == 6;
}

static NOINLINE long call_inner(bool first, bool second)
{
    long own = 100;
    __transaction_atomic
    {
        a = 50;
        if (inner_function(&own, first))
            b++;
        if (inner_function(&own, second))
            c++;
    }
    return own;
}

static NOINLINE __attribute__((transaction_may_cancel_outer)) void cancel_outer(void)
{
    b = 77;
    __transaction_cancel [[outer]];
}

static NOINLINE bool with_outer(bool cancel)
{
    bool done = false;
    __transaction_atomic [[outer]]
    {
        a = 5;
        __transaction_atomic
        {
            b = 6;
            if (cancel)
                cancel_outer();
        }
        done = true;
    }
    return done;
}

static NOINLINE __attribute__((transaction_may_cancel_outer)) long descend(unsigned depth, bool cancel)
{
    long deepest = 0;
    __transaction_atomic
    {
        a++;
        if (depth)
            deepest = descend(depth - 1, cancel);
        else if (cancel)
            __transaction_cancel [[outer]];
        else
            deepest = a;
    }
    return deepest;
}

static NOINLINE long descend_from(unsigned depth, bool cancel)
{
    long deepest = -1;
    __transaction_atomic [[outer]]
    {
        deepest = descend(depth, cancel);
    }
    return deepest;
}

static void set(long value)
{
    a = b = c = value;
}

void check_nesting(void)
{
    set(0);
    CHECK(!cancel_if(true));
    CHECK(a == 0 && b == 0);
    CHECK(cancel_if(false));
    CHECK(a == 1 && b == 1);

    set(0);
    cancel_inner(true, false);
    CHECK(a == 10 && b == 20 && c == 0);
    set(0);
    cancel_inner(false, false);
    CHECK(a == 20 && b == 30 && c == 20);
    set(0);
    cancel_inner(false, true);
    CHECK(a == 0 && b == 0 && c == 0);
    cancel_inner(true, true);
    CHECK(a == 0 && b == 0 && c == 0);

    parts.word = 0;
    store_around_cancel();
    CHECK((unsigned long)parts.word == 0x0900000000040011);

    set(0);
    CHECK(call_inner(true, true) == 100);
    CHECK(a == 50 && b == 0 && c == 0);
    CHECK(call_inner(false, true) == 101);
    CHECK(a == 51 && b == 1 && c == 0);
    CHECK(call_inner(true, false) == 101);
    CHECK(a == 51 && b == 1 && c == 1);
    CHECK(call_inner(false, false) == 102);
    CHECK(a == 52 && b == 2 && c == 2);

    set(0);
    CHECK(!with_outer(true));
    CHECK(a == 0 && b == 0);
    CHECK(with_outer(false));
    CHECK(a == 5 && b == 6);

    set(0);
    CHECK(descend_from(200, true) == -1);
    CHECK(a == 0);
    CHECK(descend_from(200, false) == 201);
    CHECK(a == 201);
}

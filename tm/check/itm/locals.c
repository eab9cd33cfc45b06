/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Registers and frames of a function whose transaction restarts or is cancelled. */
#include "check.h"

static long shared = 3;
static double shared_double = 0.5;
/* Hides the value from the compiler. */
static volatile long one = 1;

/* More values than registers. Some are in preserved registers, which calls after the begin use otherwise. */
static NOINLINE PURE long use_registers(long seed)
{
    long v[16];
    double w[16];
    for (int i = 0; i < 16; i++) {
        v[i] = seed + i * one;
        w[i] = (double)v[i] * 0.5;
    }
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 16; j++) {
            v[j] += v[(j + 1) & 15] ^ i;
            w[j] += w[(j + 3) & 15];
        }
    }
    return v[3] + (long)w[5];
}

static NOINLINE long in_registers(unsigned *restarts)
{
    long a = one + 1, b = one + 2, c = one + 3, d = one + 4, e = one + 5, f = one + 6, g = one + 7;
    double p = (double)one + 0.5, q = (double)one + 1.5, r = (double)one + 2.5, s = (double)one + 3.5;
    long result = 0;
    __transaction_atomic
    {
        a += shared;
        p += shared_double;
        use_registers(a);
        shared++;
        b += shared;
        q += p;
        restart_once(restarts);
        c += a + b;
        result = a + b + c + d + e + f + g + (long)(2 * (p + q + r + s));
    }
    return result + a + b + c + (long)(2 * (p + q));
}

/* Arrays and values whose address is taken are in the frame. */
static NOINLINE long in_frame(unsigned *restarts, long index)
{
    long array[8];
    for (int i = 0; i < 8; i++)
        array[i] = i * one;
    __transaction_atomic
    {
        for (long i = 0; i < 8; i++)
            array[(i + index) & 7] += shared;
        array[index & 7] += array[(index + 1) & 7];
        shared++;
        restart_once(restarts);
    }
    long sum = 0;
    for (int i = 0; i < 8; i++)
        sum = sum * 3 + array[i];
    return sum;
}

static NOINLINE SAFE void add_shared(long *to)
{
    *to += shared;
}

static NOINLINE long by_address(unsigned *restarts, bool cancel)
{
    long own = 10 * one;
    __transaction_atomic
    {
        add_shared(&own);
        add_shared(&own);
        restart_once(restarts);
        if (cancel)
            __transaction_cancel;
    }
    return own;
}

/* Frames of called functions are gone when the transaction is taken back, and when it writes back. */
static NOINLINE SAFE long deep(long depth)
{
    long array[32];
    long *escaped = escape(array);
    for (int i = 0; i < 32; i++)
        escaped[i] = shared + depth;
    long below = depth ? deep(depth - 1) : 0;
    return below + escaped[depth & 31];
}

static NOINLINE long call_deep(unsigned *restarts)
{
    long sum = 0;
    __transaction_atomic
    {
        sum = deep(20);
        restart_once(restarts);
        shared++;
    }
    return sum;
}

void check_locals(void)
{
    for (int again = 0; again < 2; again++) {
        unsigned restarts = 0;
        shared = 3;
        long result = in_registers(&restarts);
        CHECK(shared == 4);
        /* a 5, b 7, c 16, d to g 5 to 8 (26), p 2, q 4.5, r 3.5, s 4.5. */
        CHECK(result == 5 + 7 + 16 + 26 + 29 + 5 + 7 + 16 + 13);

        unsigned first = 0;
        shared = 3;
        long with_restart = in_frame(&first, 5);
        CHECK(shared == 4);
        unsigned no_more = 1;
        shared = 3;
        CHECK(with_restart == in_frame(&no_more, 5));

        restarts = 0;
        shared = 7;
        CHECK(by_address(&restarts, true) == 10);
        restarts = 0;
        CHECK(by_address(&restarts, false) == 24);

        restarts = 0;
        shared = 1;
        CHECK(call_deep(&restarts) == 21 + 210);
        CHECK(shared == 2);
    }
}

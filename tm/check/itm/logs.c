/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Private memory of a thread, remembered before ordinary stores: as the compiler finds out by itself, and by explicit
 * calls.
 */
#include "check.h"

PURE void _ITM_LB(const void *address, size_t size_bytes);
PURE void _ITM_LU2(const uint16_t *address);
PURE void _ITM_LF(const float *address);
PURE void _ITM_LD(const double *address);
PURE void _ITM_LE(const long double *address);
PURE void _ITM_LCF(const float _Complex *address);
PURE void _ITM_LCD(const double _Complex *address);
PURE void _ITM_LCE(const long double _Complex *address);

static long shared;

static struct own {
    unsigned char bytes[40];
    uint16_t u2;
    float f;
    double d;
    long double e;
    float _Complex cf;
    double _Complex cd;
    long double _Complex ce;
} own;

static NOINLINE PURE void set(struct own *to, unsigned offset, unsigned char value)
{
    for (unsigned i = 0; i < 17; i++)
        to->bytes[offset + i] = value;
    to->u2 = to->f = to->d = to->e = to->cf = to->cd = to->ce = value;
}

static NOINLINE void change(unsigned offset, bool cancel, unsigned *restarts)
{
    __transaction_atomic
    {
        shared++;
        _ITM_LB(own.bytes + offset, 17);
        _ITM_LU2(&own.u2);
        _ITM_LF(&own.f);
        _ITM_LD(&own.d);
        _ITM_LE(&own.e);
        _ITM_LCF(&own.cf);
        _ITM_LCD(&own.cd);
        _ITM_LCE(&own.ce);
        set(&own, offset, 9);
        __transaction_atomic
        {
            _ITM_LB(own.bytes + offset + 3, 5);
            own.bytes[offset + 3] = 1;
            __transaction_cancel;
        }
        restart_once(restarts);
        if (cancel)
            __transaction_cancel;
    }
}

static bool all_are(unsigned offset, unsigned char value)
{
    for (unsigned i = 0; i < 17; i++)
        if (own.bytes[offset + i] != value)
            return false;
    return own.u2 == value && own.f == value && own.d == value && own.e == value && own.cf == value && own.cd == value &&
           own.ce == value;
}

void check_logs(void)
{
    for (unsigned offset = 0; offset < 16; offset++) {
        unsigned restarts = 0;
        set(&own, offset, 4);
        change(offset, true, &restarts);
        CHECK(all_are(offset, 4));
        restarts = 0;
        change(offset, false, &restarts);
        CHECK(all_are(offset, 9));
    }
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The compiler's interface: floating-point accesses. Not for hosts that may not use these registers. */
#include "itm.h"

ITM_DECLARE_ACCESSES(F, float)
ITM_DECLARE_ACCESSES(D, double)
ITM_DECLARE_ACCESSES(E, long double)
ITM_DECLARE_ACCESSES(CF, float _Complex)
ITM_DECLARE_ACCESSES(CD, double _Complex)
ITM_DECLARE_ACCESSES(CE, long double _Complex)

float _ITM_RF(const float *address)
{
    union {
        uint32_t word;
        float value;
    } both = {.word = tm_load32((const uint32_t *)(const void *)address)};
    return both.value;
}

void _ITM_WF(float *address, float value)
{
    union {
        float value;
        uint32_t word;
    } both = {.value = value};
    tm_store32((uint32_t *)(void *)address, both.word);
}

void _ITM_LF(const float *address)
{
    _ITM_LU4((const uint32_t *)(const void *)address);
}

ITM_OTHER_NAMES(F)

/* Types that are whole words. */
#define DEFINE_WORDS(suffix, type) \
    type _ITM_R##suffix(const type *address) \
    { \
        type value; \
        tm_itm_load_words(&value, address, sizeof value / 8); \
        return value; \
    } \
    void _ITM_W##suffix(type *address, type value) \
    { \
        tm_itm_store_words(address, &value, sizeof value / 8); \
    } \
    void _ITM_L##suffix(const type *address) \
    { \
        _ITM_LB(address, sizeof *address); \
    } \
    ITM_OTHER_NAMES(suffix)

DEFINE_WORDS(D, double)
DEFINE_WORDS(CF, float _Complex)
DEFINE_WORDS(CD, double _Complex)

#if __LDBL_MANT_DIG__ != 64

DEFINE_WORDS(E, long double)
DEFINE_WORDS(CE, long double _Complex)

#else

/* x87's 10 bytes; the 6 behind them are nobody's, and a structure that is packed may have others there. */
#define EXTENDED_SIZE_BYTES 10

long double _ITM_RE(const long double *address)
{
    long double value = 0;
    tm_itm_load_block(&value, address, EXTENDED_SIZE_BYTES);
    return value;
}

void _ITM_WE(long double *address, long double value)
{
    tm_itm_store_block(address, &value, EXTENDED_SIZE_BYTES);
}

void _ITM_LE(const long double *address)
{
    _ITM_LB(address, EXTENDED_SIZE_BYTES);
}

ITM_OTHER_NAMES(E)

long double _Complex _ITM_RCE(const long double _Complex *address)
{
    const long double *parts = (const long double *)(const void *)address;
    long double _Complex value;
    __real__ value = _ITM_RE(&parts[0]);
    __imag__ value = _ITM_RE(&parts[1]);
    return value;
}

void _ITM_WCE(long double _Complex *address, long double _Complex value)
{
    long double *parts = (long double *)(void *)address;
    _ITM_WE(&parts[0], __real__ value);
    _ITM_WE(&parts[1], __imag__ value);
}

void _ITM_LCE(const long double _Complex *address)
{
    _ITM_LB(address, sizeof *address);
}

ITM_OTHER_NAMES(CE)

#endif

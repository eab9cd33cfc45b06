/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The compiler's interface: floating-point accesses. Not for hosts that may not use these registers. */
#include "itm.h"

#pragma GCC visibility push(default)

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

/* 6 bytes of the x87's long double have no meaning. They are copied with it. */
DEFINE_WORDS(E, long double)
DEFINE_WORDS(CE, long double _Complex)

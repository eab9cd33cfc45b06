/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The compiler's interface: accesses to vectors of x86-64. Not for hosts that may not use these registers. */
#include "itm.h"

#pragma GCC visibility push(default)

typedef int vector64 __attribute__((vector_size(8), may_alias));
typedef float vector128 __attribute__((vector_size(16), may_alias));
typedef float vector256 __attribute__((vector_size(32), may_alias));

/* `target`: the processor feature that the type needs. Callers run only on processors that have it. */
#define DEFINE_VECTOR(suffix, type, target) \
    target type _ITM_R##suffix(const type *address); \
    target void _ITM_W##suffix(type *address, type value); \
    void _ITM_L##suffix(const type *address); \
    type _ITM_R##suffix(const type *address) \
    { \
        uint64_t words[sizeof(type) / 8]; \
        tm_itm_load_words(words, address, sizeof(type) / 8); \
        return *(const unaligned_##type *)words; \
    } \
    void _ITM_W##suffix(type *address, type value) \
    { \
        uint64_t words[sizeof(type) / 8]; \
        *(unaligned_##type *)words = value; \
        tm_itm_store_words(address, words, sizeof(type) / 8); \
    } \
    void _ITM_L##suffix(const type *address) \
    { \
        _ITM_LB(address, sizeof *address); \
    } \
    ITM_OTHER_NAMES(suffix)

typedef vector64 unaligned_vector64 __attribute__((aligned(1)));
typedef vector128 unaligned_vector128 __attribute__((aligned(1)));
typedef vector256 unaligned_vector256 __attribute__((aligned(1)));

DEFINE_VECTOR(M64, vector64, )
DEFINE_VECTOR(M128, vector128, )
DEFINE_VECTOR(M256, vector256, __attribute__((target("avx"))))

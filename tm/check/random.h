/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Numbers that a seed repeats: Marsaglia, "Xorshift RNGs", 2003, with a multiplication. */
#ifndef TM_CHECK_RANDOM_H
#define TM_CHECK_RANDOM_H

#include <tm/port.h>

/* A thread's state, from the run's seed. Never 0. */
static inline uint64_t random_state(uint64_t seed, unsigned thread)
{
    return (seed * 0x9e3779b97f4a7c15 ^ (thread + 1) * 0xbf58476d1ce4e5b9ull) | 1;
}

/* The next number, below `limit`, which is at most 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545f4914f6cdd1d >> 32) * limit >> 32);
}

#endif

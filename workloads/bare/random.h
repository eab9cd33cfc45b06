/* Pseudo-random numbers, the same in every run: Marsaglia's xorshift. */
#pragma once

#include "bare.h"

/* The initial state for a hart, never 0. */
static inline u64 random_seed(u64 index)
{
    return (index + 1) * 0x9e3779b97f4a7c15;
}

/* A number from 0 to `bound` - 1. */
static inline u64 random_below(u64 *state, u64 bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 11) % bound;
}

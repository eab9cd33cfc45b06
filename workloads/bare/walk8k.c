/*
 * Hits in L1: an iteration increments each of the 1024 words of a hart's own 8 KB, five instructions a word.
 */
#include "loops.h"

#define WORDS 1024

static u64 buffers[HARTS_MAX][WORDS] __attribute__((aligned(4096)));

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    while (iterations--)
        walk(buffers[index], buffers[index] + WORDS);
}

u32 verify(u64 harts, u64 iterations)
{
    for (u64 index = 0; index < harts; index++)
        for (u64 word = 0; word < WORDS; word++)
            if (buffers[index][word] != iterations)
                return 1;
    return 0;
}

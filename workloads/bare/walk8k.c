/*
 * Hits in L1: an iteration increments each of the 1024 words of a hart's own 8 KB, five instructions a word.
 */
#include "bare.h"

#define WORDS 1024

static u64 buffers[HARTS_MAX][WORDS] __attribute__((aligned(4096)));

void run(u64 index, u64 harts, u64 iterations)
{
    u64 *end = buffers[index] + WORDS;
    (void)harts;
    while (iterations--) {
        u64 *word = buffers[index];
        u64 value;
        __asm__ volatile(
            "1:\n"
            "  ld %[value], 0(%[word])\n"
            "  addi %[value], %[value], 1\n"
            "  sd %[value], 0(%[word])\n"
            "  addi %[word], %[word], 8\n"
            "  bne %[word], %[end], 1b\n"
            : [word] "+r"(word), [value] "=&r"(value)
            : [end] "r"(end)
            : "memory");
    }
}

u32 verify(u64 harts, u64 iterations)
{
    for (u64 index = 0; index < harts; index++)
        for (u64 word = 0; word < WORDS; word++)
            if (buffers[index][word] != iterations)
                return 1;
    return 0;
}

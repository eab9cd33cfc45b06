/*
 * Misses in L1: an iteration touches each 64-byte line of a hart's own 256 KB once, loads from the even lines and
 * stores to the odd ones, five instructions for two lines.
 */
#include "bare.h"

#define LINES 4096
#define WORDS_PER_LINE (LINE_SIZE_BYTES / 8)

static u64 buffers[HARTS_MAX][LINES * WORDS_PER_LINE] __attribute__((aligned(4096)));
static u64 sums[HARTS_MAX];

void run(u64 index, u64 harts, u64 iterations)
{
    u64 *end = buffers[index] + LINES * WORDS_PER_LINE;
    u64 sum = 0;
    (void)harts;
    for (u64 line = 0; line < LINES; line += 2)
        buffers[index][line * WORDS_PER_LINE] = line + index;
    while (iterations--) {
        u64 *word = buffers[index];
        u64 value;
        __asm__ volatile(
            "1:\n"
            "  ld %[value], 0(%[word])\n"
            "  add %[sum], %[sum], %[value]\n"
            "  sd %[sum], 64(%[word])\n"
            "  addi %[word], %[word], 128\n"
            "  bne %[word], %[end], 1b\n"
            : [word] "+r"(word), [value] "=&r"(value), [sum] "+r"(sum)
            : [end] "r"(end)
            : "memory");
    }
    sums[index] = sum;
}

u32 verify(u64 harts, u64 iterations)
{
    for (u64 index = 0; index < harts; index++) {
        /* The even line numbers below LINES, and the index once for each. */
        u64 pass = (LINES / 2) * (LINES / 2 - 1) + index * (LINES / 2);
        u64 last = buffers[index][(LINES - 1) * WORDS_PER_LINE];
        if (sums[index] != pass * iterations || last != sums[index])
            return 1;
    }
    return 0;
}

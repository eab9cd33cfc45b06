/* Every hart runs for ever. */
#include "bare.h"

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    if (index == 0)
        print("all harts spin\n");
    __asm__ volatile("1: j 1b");
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    return 1;
}

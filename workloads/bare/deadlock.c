/* Every hart waits for an interrupt, and none is enabled: nothing will ever happen again. */
#include "bare.h"

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    if (index == 0)
        print("all harts wait\n");
    for (;;)
        __asm__ volatile("wfi");
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    return 1;
}

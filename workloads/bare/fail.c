/* Reports failure code 7 through the finisher. */
#include "bare.h"

void run(u64 index, u64 harts, u64 iterations)
{
    (void)index;
    (void)harts;
    (void)iterations;
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    return 7;
}

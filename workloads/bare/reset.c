/* Asks the SBI for a cold reboot. */
#include "bare.h"

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    if (index == 0)
        print("asking for a reboot\n");
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    sbi_call(SBI_EXTENSION_RESET, 0, SBI_RESET_COLD_REBOOT, 0, 0);
    return 1;
}

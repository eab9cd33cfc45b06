/* Prints, and powers off by the SBI's system reset extension. */
#include "bare.h"

void run(u64 index, u64 harts, u64 iterations)
{
    (void)iterations;
    if (index)
        return;
    print("Hello from ");
    print_decimal(harts);
    print(" harts.\n");
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    sbi_call(SBI_EXTENSION_RESET, 0, SBI_RESET_SHUTDOWN, 0, 0);
    return 1;
}

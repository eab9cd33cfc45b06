/*
 * Registers only: an iteration is twenty instructions (additions, shifts, logic, one multiplication, one branch) with
 * neither loads nor stores. All harts compute the same number, which is printed, so that two machines can be compared.
 */
#include "loops.h"

static u64 results[HARTS_MAX];

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    results[index] = compute(0x9e3779b97f4a7c15, iterations);
}

u32 verify(u64 harts, u64 iterations)
{
    (void)iterations;
    print("result ");
    print_hex(results[0]);
    print("\n");
    for (u64 index = 1; index < harts; index++)
        if (results[index] != results[0])
            return 1;
    return 0;
}

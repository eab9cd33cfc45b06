/*
 * The boot hart jumps where nothing is, with a trap vector that is nowhere either: from then on it traps for ever
 * without executing one instruction.
 */
#include "bare.h"

/* Between the devices of QEMU's virt board, and of no device there. */
#define NOWHERE 0x08000000

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    if (index)
        return;
    print("jumping nowhere\n");
    __asm__ volatile("csrw stvec, %0\n\tjr %0" : : "r"((u64)NOWHERE));
}

u32 verify(u64 harts, u64 iterations)
{
    (void)harts;
    (void)iterations;
    return 1;
}

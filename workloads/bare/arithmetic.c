/*
 * Registers only: an iteration is twenty instructions (additions, shifts, logic, one multiplication, one branch) with
 * neither loads nor stores. All harts compute the same number, which is printed, so that two machines can be compared.
 */
#include "bare.h"

static u64 results[HARTS_MAX];

void run(u64 index, u64 harts, u64 iterations)
{
    u64 a = 0x9e3779b97f4a7c15, b = 0xbf58476d1ce4e5b9, c = 1, t;
    (void)harts;
    if (iterations)
        __asm__ volatile(
            "1:\n"
            "  slli %[t], %[a], 13\n"
            "  xor %[a], %[a], %[t]\n"
            "  srli %[t], %[a], 7\n"
            "  xor %[a], %[a], %[t]\n"
            "  slli %[t], %[a], 17\n"
            "  xor %[a], %[a], %[t]\n"
            "  add %[c], %[c], %[a]\n"
            "  mul %[b], %[b], %[a]\n"
            "  addi %[b], %[b], 1234\n"
            "  sub %[c], %[c], %[b]\n"
            "  sltu %[t], %[c], %[b]\n"
            "  add %[c], %[c], %[t]\n"
            "  andi %[t], %[b], 255\n"
            "  or %[c], %[c], %[t]\n"
            "  srai %[t], %[c], 9\n"
            "  addw %[t], %[t], %[c]\n"
            "  xor %[b], %[b], %[t]\n"
            "  xori %[c], %[c], 1023\n"
            "  addi %[n], %[n], -1\n"
            "  bnez %[n], 1b\n"
            : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [t] "=&r"(t), [n] "+r"(iterations));
    results[index] = a ^ b ^ c;
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

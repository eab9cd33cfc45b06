/* Loops for measurements of speed, written in assembler, so that they are the same in every program. */
#pragma once

#include "bare.h"

/* Rounds of twenty instructions on registers only: additions, shifts, logic, one multiplication, one branch. */
static inline __attribute__((always_inline)) u64 compute(u64 a, u64 rounds)
{
    u64 b = 0xbf58476d1ce4e5b9, c = 1, t;
    if (rounds)
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
            : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [t] "=&r"(t), [n] "+r"(rounds));
    return a ^ b ^ c;
}

/* Adds one to each word from `word` up to, not including, `end`; at least one word. Five instructions a word. */
static inline __attribute__((always_inline)) void walk(u64 *word, const u64 *end)
{
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

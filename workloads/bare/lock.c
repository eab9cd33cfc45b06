/*
 * All harts increment one counter under one test-and-set lock, `iterations` times in sum whatever the number of harts
 * (rounded down to a multiple of it), because every hart spins as long as any hart works. LOCK_WITH_RESERVATION takes
 * the lock by LR and SC; otherwise an AMOSWAP does. LOCK_WITH_HINTS tells the machine about each critical section and
 * each wait for the lock, as TxLinux does. Lock and counter have a line each.
 *
 * What to look at in the result of LOCK_WITH_HINTS: the section's spin cycles and its attempts at the lock, against the
 * number of harts.
 */
#include "bare.h"
#include "../include/concord.h"

#ifdef LOCK_WITH_HINTS
#define hint(code, lock) concord_hint(code, lock)
/* The hint that begins a section names the caller by the return address. */
#define LOCK_FUNCTION NAMED
#else
#define hint(code, lock) (void)(lock)
#define LOCK_FUNCTION
#endif

static struct {
    u32 word __attribute__((aligned(LINE_SIZE_BYTES)));
    u64 counter __attribute__((aligned(LINE_SIZE_BYTES)));
} shared __attribute__((aligned(LINE_SIZE_BYTES)));

static LOCK_FUNCTION void acquire(u32 *word)
{
    u32 old;
#ifdef LOCK_WITH_RESERVATION
    __asm__ volatile(
        "1:\n"
        "  lr.w.aq %[old], (%[word])\n"
        "  bnez %[old], 1b\n"
        "  sc.w %[old], %[one], (%[word])\n"
        "  bnez %[old], 1b\n"
        : [old] "=&r"(old)
        : [word] "r"(word), [one] "r"(1)
        : "memory");
#else
    __asm__ volatile("amoswap.w.aq %0, %2, (%1)" : "=&r"(old) : "r"(word), "r"(1) : "memory");
    if (old)
        hint(CONCORD_HINT_LOCK_SPIN_BEGIN, word);
    while (old) {
        hint(CONCORD_HINT_LOCK_TEST_AND_SET, word);
        __asm__ volatile("amoswap.w.aq %0, %2, (%1)" : "=&r"(old) : "r"(word), "r"(1) : "memory");
    }
#endif
    hint(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_SPIN, word);
}

static void release(u32 *word)
{
    hint(CONCORD_HINT_SECTION_END, word);
    __asm__ volatile("amoswap.w.rl zero, zero, (%0)" : : "r"(word) : "memory");
}

void run(u64 index, u64 harts, u64 iterations)
{
    (void)index;
    for (u64 count = iterations / harts; count; count--) {
        acquire(&shared.word);
        /* A load and a store that another hart's could come between, were the lock broken. */
        *(volatile u64 *)&shared.counter += 1;
        release(&shared.word);
    }
}

u32 verify(u64 harts, u64 iterations)
{
    print("counter ");
    print_decimal(shared.counter);
    print("\n");
    return shared.counter != iterations / harts * harts;
}

/*
 * Harts that conflict: each adds 1 to two of four shared counters in a transaction, `iterations` times, with some work
 * between a load and its store, so that the transactions of several harts overlap.
 *
 * What to look at: on the console, the sum, which is right, the restarts, and the cycles that harts backed off; in the
 * result, the winner and the loser of each conflict; and how all of this changes with --harts and with the contention
 * manager.
 */
#include "bare.h"
#include "random.h"
#include "../include/xmetatm.h"

#define COUNTERS 4
#define WORK_ROUNDS 10

/* Each counter has its own line, so that only transactions with a common counter conflict. */
static struct {
    u64 value;
} __attribute__((aligned(LINE_SIZE_BYTES))) counters[COUNTERS];

static struct {
    u64 restarts;
    u64 backoff_cycles;
} __attribute__((aligned(LINE_SIZE_BYTES))) notes[HARTS_MAX];

void run(u64 index, u64 harts, u64 iterations)
{
    u64 random = random_seed(index);
    (void)harts;
    while (iterations--) {
        u64 first = random_below(&random, COUNTERS);
        u64 second = random_below(&random, COUNTERS);
        xbegin();
        u64 value = counters[first].value;
        for (u64 round = 0; round < WORK_ROUNDS; round++)
            __asm__ volatile("nop" : : : "memory");
        counters[first].value = value + 1;
        counters[second].value++;
        xend();
    }
    notes[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
    notes[index].backoff_cycles = xmetatm_csr_read(CSR_XBACKOFF);
}

u32 verify(u64 harts, u64 iterations)
{
    u64 sum = 0, restarts = 0, backoff_cycles = 0;
    for (u64 counter = 0; counter < COUNTERS; counter++)
        sum += counters[counter].value;
    for (u64 index = 0; index < harts; index++) {
        restarts += notes[index].restarts;
        backoff_cycles += notes[index].backoff_cycles;
    }
    print_counted("sum ", sum);
    print_counted(" restarts ", restarts);
    print_counted(" cycles of back-off ", backoff_cycles);
    print("\n");
    return sum != 2 * harts * iterations;
}

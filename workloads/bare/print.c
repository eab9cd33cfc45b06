/*
 * A transaction that prints. Every hart enters a section `iterations` times and counts in it; in every fourth section
 * it also prints a line. Printing cannot be undone, so the machine cancels the access before it reaches the console,
 * and restarts the transaction with cause NEED_EXCLUSIVE. cx_optimistic then takes the lock, and the section runs again
 * without a transaction.
 *
 * What to look at: the lines on the console are complete and in order, and none appears twice, although several harts
 * wanted to print at once and each began to print in a transaction that was cancelled. In the result: one restart with
 * cause NEED_EXCLUSIVE for each line; restarts with cause NONTRANSACTIONAL of transactions that were in the section
 * when a hart took the lock; and the number of times that the contention manager refused the lock in favour of a
 * transaction. The other sections commit as transactions; they conflict with each other, because all count in one word.
 *
 * A program that knows beforehand that a section prints saves the attempt with cx_exclusive.
 */
#include "bare.h"
#include "cx.h"

#define PRINT_EVERY 4

static cx_lock lock __attribute__((aligned(LINE_SIZE_BYTES))) = CX_FREE;
static u64 sections __attribute__((aligned(LINE_SIZE_BYTES)));
static u64 lines;

static struct {
    u64 exclusive;
    u64 restarts;
} __attribute__((aligned(LINE_SIZE_BYTES))) notes[HARTS_MAX];

/* Prints one line from inside a section. The code is the same in a transaction and with the lock. */
static NAMED void print_line(u64 index)
{
    lines++;
    print_counted("line ", lines);
    print_counted(" by hart ", index);
    print("\n");
}

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    for (u64 count = 1; count <= iterations; count++) {
        cx_optimistic(&lock);
        sections++;
        if (count % PRINT_EVERY == 0)
            print_line(index);
        u64 exclusive = (u64)cx_is_exclusive();
        cx_end(&lock);
        notes[index].exclusive += exclusive;
    }
    notes[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
}

u32 verify(u64 harts, u64 iterations)
{
    u64 exclusive = 0, restarts = 0;
    u64 lines_expected = iterations / PRINT_EVERY * harts;
    for (u64 index = 0; index < harts; index++) {
        exclusive += notes[index].exclusive;
        restarts += notes[index].restarts;
    }
    print_counted("sections ", sections);
    print_counted(" with the lock ", exclusive);
    print_counted(" restarts ", restarts);
    print("\n");
    /* A section that printed cannot have been a transaction, and each was one first. */
    return sections != iterations * harts || lines != lines_expected || exclusive < lines || restarts < lines;
}

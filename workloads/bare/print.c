/*
 * A transaction that prints. Every hart enters a section `iterations` times and counts in it; in every fourth it also prints a line.
 * What is printed cannot be taken back, so the machine cancels the access to the console before the console sees it, and restarts the
 * transaction with cause NEED_EXCLUSIVE; cx_optimistic then takes the lock, and the section runs once more, as no transaction.
 *
 * What to look at: the lines on the console are whole and in order, and none is there twice, though several harts wanted to print at
 * once and each began to print a line in a transaction that was cancelled. In the result: the restarts with cause NEED_EXCLUSIVE, one
 * for each line; those with cause NONTRANSACTIONAL, of transactions that were in the section when a hart took the lock; and how often
 * a hart that wanted the lock was refused, because it was a transaction's turn. The other sections commit as transactions, and lose
 * to each other, as all count in one word.
 *
 * Where it is known beforehand that a section prints, cx_exclusive saves the attempt.
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

/* One line, from a section. Nothing here knows whether it is in a transaction. */
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

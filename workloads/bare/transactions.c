/*
 * Measures the cost of transactions in the simulator: every tenth instruction is in a transaction, and harts share
 * nothing. An iteration is about 510 instructions: arithmetic, a walk over a part of the hart's own 8 KiB, and a
 * transaction of 51 instructions that reads and writes four lines of the hart's own. 51 is the average of TxLinux
 * ("TxLinux", SOSP 2007, section 3.2).
 *
 * With `transactions=0` in the bootargs the same loop runs without xbegin and xend. Both must end with the same
 * numbers, and the ratio of their speeds is the cost (bench/run).
 */
#include "loops.h"
#include "../include/xmetatm.h"

#define WORDS 1024
#define COMPUTE_ROUNDS 14
#define WALK_WORDS 33
#define RECORDS 8
#define RECORD_LINES 4
#define RECORD_WORDS (RECORD_LINES * LINE_SIZE_BYTES / 8)
/* The sum of what an iteration adds to the words of a record. */
#define RECORD_ADDITION (2 * RECORD_LINES)

static struct {
    u64 walked[WORDS];
    u64 records[RECORDS][RECORD_WORDS];
    u64 result;
    u64 restarts;
} __attribute__((aligned(LINE_SIZE_BYTES))) own[HARTS_MAX];

/*
 * 49 instructions, and 51 with xbegin and xend. Two in five access memory, as in the walk. On each line of the record
 * the section reads one word and increments another twice, so that three of the five accesses are the first of their
 * kind to their word.
 */
static inline __attribute__((always_inline)) u64 section(u64 *record, int transactional)
{
    u64 sum, value, t;
    if (transactional)
        xbegin();
    __asm__ volatile(
        "  li %[sum], 0\n"
        ".irp line, 0, 64, 128, 192\n"
        "  ld %[value], \\line + 0(%[record])\n"
        "  add %[sum], %[sum], %[value]\n"
        "  ld %[value], \\line + 8(%[record])\n"
        "  addi %[value], %[value], 1\n"
        "  sd %[value], \\line + 8(%[record])\n"
        "  slli %[t], %[value], 3\n"
        "  xor %[sum], %[sum], %[t]\n"
        "  ld %[value], \\line + 8(%[record])\n"
        "  addi %[value], %[value], 1\n"
        "  sd %[value], \\line + 8(%[record])\n"
        "  srli %[t], %[value], 2\n"
        "  add %[sum], %[sum], %[t]\n"
        ".endr\n"
        : [sum] "=&r"(sum), [value] "=&r"(value), [t] "=&r"(t)
        : [record] "r"(record)
        : "memory");
    if (transactional)
        xend();
    return sum;
}

static inline __attribute__((always_inline)) void loop(u64 index, u64 iterations, int transactional)
{
    u64 result = 1;
    u64 *word = own[index].walked;
    u64 *record = own[index].records[0];
    const u64 *word_last = own[index].walked + WORDS - WALK_WORDS;
    const u64 *records_end = own[index].records[RECORDS];
    while (iterations--) {
        result = compute(result, COMPUTE_ROUNDS);
        walk(word, word + WALK_WORDS);
        word += WALK_WORDS;
        if (word > word_last)
            word = own[index].walked;
        result += section(record, transactional);
        record += RECORD_WORDS;
        if (record == records_end)
            record = own[index].records[0];
    }
    own[index].result = result;
}

void run(u64 index, u64 harts, u64 iterations)
{
    (void)harts;
    if (argument("transactions", 1))
        loop(index, iterations, 1);
    else
        loop(index, iterations, 0);
    own[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
}

static u64 sum(const u64 *words, u64 count)
{
    u64 sum = 0;
    while (count--)
        sum += *words++;
    return sum;
}

u32 verify(u64 harts, u64 iterations)
{
    u64 restarts = 0;
    int right = 1;
    for (u64 index = 0; index < harts; index++) {
        restarts += own[index].restarts;
        right &= own[index].result == own[0].result;
        right &= sum(own[index].walked, WORDS) == WALK_WORDS * iterations;
        right &= sum(own[index].records[0], RECORDS * RECORD_WORDS) == RECORD_ADDITION * iterations;
    }
    print("result ");
    print_hex(own[0].result);
    print_counted(" restarts ", restarts);
    print("\n");
    /* Harts share nothing, so no transaction may have restarted. */
    return !right || restarts != 0;
}

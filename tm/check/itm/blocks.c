/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* memcpy, memmove, memset and structures, at all alignments, of sizes around every step. */
#include "check.h"

#define AREA_SIZE_BYTES 640
#define ALIGNMENTS 16

static unsigned char area[AREA_SIZE_BYTES] __attribute__((aligned(64)));
static unsigned char other[AREA_SIZE_BYTES] __attribute__((aligned(64)));
static unsigned char expected[AREA_SIZE_BYTES];

static const size_t sizes_bytes[] = {0,  1,  2,  3,  4,  5,   7,   8,   9,   15,  16,
                                     17, 23, 31, 64, 100, 127, 128, 129, 136, 255, 300};
#define SIZES_COUNT (sizeof sizes_bytes / sizeof sizes_bytes[0])

static void fill(unsigned char *memory, unsigned seed)
{
    for (size_t i = 0; i < AREA_SIZE_BYTES; i++)
        memory[i] = (unsigned char)(i * 7 + i / 256 + seed);
}

static bool same(const unsigned char *a, const unsigned char *b, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static NOINLINE void do_memcpy(void *to, const void *from, size_t size_bytes, bool cancel)
{
    __transaction_atomic
    {
        memcpy(to, from, size_bytes);
        if (cancel)
            __transaction_cancel;
    }
}

static NOINLINE void do_memmove(void *to, const void *from, size_t size_bytes, bool cancel)
{
    __transaction_atomic
    {
        memmove(to, from, size_bytes);
        if (cancel)
            __transaction_cancel;
    }
}

static NOINLINE void do_memset(void *to, int byte, size_t size_bytes, bool cancel)
{
    __transaction_atomic
    {
        memset(to, byte, size_bytes);
        if (cancel)
            __transaction_cancel;
    }
}

static void check_copies_of(size_t size_bytes, unsigned to, unsigned from)
{
    for (int cancel = 1; cancel >= 0; cancel--) {
        fill(area, 1);
        fill(other, 2);
        memcpy(expected, area, sizeof area);
        if (!cancel)
            memcpy(expected + to, other + from, size_bytes);
        do_memcpy(area + to, other + from, size_bytes, cancel);
        CHECK(same(area, expected, sizeof area));

        /* Overlapping, the other way too. */
        for (unsigned distance_bytes = 0; distance_bytes <= 160; distance_bytes += 40) {
            unsigned ends[2] = {to, from + distance_bytes};
            for (int way = 0; way < 2; way++) {
                fill(area, 3);
                memcpy(expected, area, sizeof area);
                if (!cancel)
                    memmove(expected + ends[way], expected + ends[!way], size_bytes);
                do_memmove(area + ends[way], area + ends[!way], size_bytes, cancel);
                CHECK(same(area, expected, sizeof area));
            }
        }
    }
}

static void check_sets_of(size_t size_bytes, unsigned to)
{
    for (int cancel = 1; cancel >= 0; cancel--) {
        fill(area, 4);
        memcpy(expected, area, sizeof area);
        if (!cancel)
            memset(expected + to, 0x1a5, size_bytes);
        do_memset(area + to, 0x1a5, size_bytes, cancel);
        CHECK(same(area, expected, sizeof area));
    }
}

/* A block load sees the transaction's own stores, and loads of bytes see its block stores. */
static NOINLINE unsigned copy_what_was_stored(void)
{
    unsigned sum = 0;
    __transaction_atomic
    {
        area[9] = 100;
        memcpy(other + 3, area + 2, 40);
        area[9] = 1;
        sum = other[10];
        memmove(other + 4, other + 3, 40);
        sum += other[11];
        memset(area + 8, 5, 3);
        sum += area[9];
    }
    return sum;
}

struct large {
    char bytes[67];
    long words[5];
};
static struct large large_a, large_b;

static NOINLINE void swap_structures(bool cancel)
{
    struct large large;
    __transaction_atomic
    {
        large = large_a;
        large_a = large_b;
        large_b = large;
        if (cancel)
            __transaction_cancel;
    }
}

static void check_structures(void)
{
    for (int cancel = 1; cancel >= 0; cancel--) {
        memset(&large_a, 1, sizeof large_a);
        memset(&large_b, 2, sizeof large_b);
        swap_structures(cancel);
        CHECK(large_a.bytes[0] == (cancel ? 1 : 2) && large_a.bytes[66] == (cancel ? 1 : 2));
        CHECK(large_b.words[4] == (cancel ? 0x0202020202020202 : 0x0101010101010101));
    }
}

/* The forms that the compiler calls if one side is private to its thread. */
PURE void *_ITM_memcpyRnWt(void *to, const void *from, size_t size_bytes);
PURE void *_ITM_memcpyRtWn(void *to, const void *from, size_t size_bytes);
PURE void *_ITM_memmoveRtWn(void *to, const void *from, size_t size_bytes);
PURE void *_ITM_memmoveRnWt(void *to, const void *from, size_t size_bytes);

static NOINLINE PURE void change_own(unsigned char *own)
{
    own[0]++;
}

static NOINLINE void to_and_fro(unsigned char *own, size_t size_bytes, unsigned offset)
{
    __transaction_atomic
    {
        _ITM_memcpyRtWn(own, area + offset, size_bytes);
        change_own(own);
        _ITM_memcpyRnWt(other + 5, own, size_bytes);
        _ITM_memmoveRtWn(own + 1, other + 5, size_bytes);
        _ITM_memmoveRnWt(other + 5, own + 1, size_bytes);
    }
}

static void check_own(void)
{
    unsigned char own[200];
    for (unsigned offset = 0; offset < 8; offset++) {
        fill(area, 5);
        fill(other, 6);
        memcpy(expected, other, sizeof other);
        memcpy(expected + 5, area + offset, 150);
        expected[5]++;
        to_and_fro(own, 150, offset);
        CHECK(same(other, expected, sizeof other));
        CHECK(same(own + 1, expected + 5, 150));
    }
}

void check_blocks(unsigned step)
{
    for (size_t size = 0; size < SIZES_COUNT; size++) {
        for (unsigned to = 0; to < ALIGNMENTS; to += step) {
            check_sets_of(sizes_bytes[size], to);
            for (unsigned from = 0; from < ALIGNMENTS; from += size < 12 ? step : 3 * step)
                check_copies_of(sizes_bytes[size], to, from);
        }
    }
    fill(area, 0);
    CHECK(copy_what_was_stored() == 205);
    check_structures();
    check_own();
}

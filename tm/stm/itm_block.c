/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The compiler's interface: memcpy, memmove and memset of shared memory. They access shared memory by the largest
 * aligned words, so that a word that another transaction stores as a whole is read as a whole. Private memory may be
 * aligned differently.
 */
#include "itm.h"

/* Shared memory is copied through a buffer of this size if both ends are shared, or if they overlap. */
#define CHUNK_SIZE_BYTES 128

TM_INLINE uint64_t load_private64(const char *from)
{
    return (uintptr_t)from % 8 ? *(const itm_unaligned_word *)from : *(const itm_aligned_word *)from;
}

TM_INLINE void store_private64(char *to, uint64_t value)
{
    if ((uintptr_t)to % 8)
        *(itm_unaligned_word *)to = value;
    else
        *(itm_aligned_word *)to = value;
}

#define DEFINE_PRIVATE(bits) \
    typedef uint##bits##_t __attribute__((may_alias, aligned(1))) unaligned##bits; \
    TM_INLINE uint##bits##_t load_private##bits(const char *from) \
    { \
        return *(const unaligned##bits *)from; \
    } \
    TM_INLINE void store_private##bits(char *to, uint##bits##_t value) \
    { \
        *(unaligned##bits *)to = value; \
    }
DEFINE_PRIVATE(8)
DEFINE_PRIVATE(16)
DEFINE_PRIVATE(32)

/*
 * Calls step(bits, at) for pieces of shared memory from `begin` to `end`, in order, each aligned to its size. If the
 * first loop of small pieces ends before a word's boundary, the rest is smaller than the next piece, and the address is
 * aligned for all of it.
 */
#define EACH_PIECE(step, begin, end) \
    do { \
        uintptr_t at = (begin), end_ = (end); \
        EDGE_PIECE(step, 8, at % 2 && end_ - at >= 1) \
        EDGE_PIECE(step, 16, at % 4 && end_ - at >= 2) \
        EDGE_PIECE(step, 32, at % 8 && end_ - at >= 4) \
        for (; end_ - at >= 8; at += 8) \
            step(64, at); \
        EDGE_PIECE(step, 32, end_ - at >= 4) \
        EDGE_PIECE(step, 16, end_ - at >= 2) \
        EDGE_PIECE(step, 8, end_ - at >= 1) \
    } while (0)
#define EDGE_PIECE(step, bits, condition) \
    if (condition) { \
        step(bits, at); \
        at += bits / 8; \
    }

void tm_itm_load_block(void *to, const void *from, size_t size_bytes)
{
    uintptr_t begin = (uintptr_t)from;
#define STEP(bits, at) store_private##bits((char *)to + (at - begin), tm_load##bits((const uint##bits##_t *)at))
    EACH_PIECE(STEP, begin, begin + size_bytes);
#undef STEP
}

void tm_itm_store_block(void *to, const void *from, size_t size_bytes)
{
    uintptr_t begin = (uintptr_t)to;
#define STEP(bits, at) tm_store##bits((uint##bits##_t *)at, load_private##bits((const char *)from + (at - begin)))
    EACH_PIECE(STEP, begin, begin + size_bytes);
#undef STEP
}

void tm_itm_clear_private(void *memory, size_t size_bytes)
{
#define STEP(bits, at) store_private##bits((char *)at, 0)
    EACH_PIECE(STEP, (uintptr_t)memory, (uintptr_t)memory + size_bytes);
#undef STEP
}

static void copy_private(void *to, const void *from, size_t size_bytes)
{
    uintptr_t begin = (uintptr_t)to;
#define STEP(bits, at) store_private##bits((char *)at, load_private##bits((const char *)from + (at - begin)))
    EACH_PIECE(STEP, begin, begin + size_bytes);
#undef STEP
}

static void load_any(void *to, const void *from, size_t size_bytes, bool is_shared)
{
    if (is_shared)
        tm_itm_load_block(to, from, size_bytes);
    else
        copy_private(to, from, size_bytes);
}

static void store_any(void *to, const void *from, size_t size_bytes, bool is_shared)
{
    if (is_shared)
        tm_itm_store_block(to, from, size_bytes);
    else
        copy_private(to, from, size_bytes);
}

/*
 * memmove. It loads a chunk whole before it stores any of it; chunks begin, or end, at word boundaries of the source.
 */
static void copy(void *to, const void *from, size_t size_bytes, bool load_is_shared, bool store_is_shared)
{
    uint64_t buffer[CHUNK_SIZE_BYTES / 8 + 1];
    size_t distance_bytes = (size_t)((uintptr_t)to - (uintptr_t)from);
    bool is_backward = distance_bytes < size_bytes;
    size_t done_bytes = 0;
    while (done_bytes < size_bytes) {
        size_t left_bytes = size_bytes - done_bytes;
        uintptr_t edge = (uintptr_t)from + (is_backward ? left_bytes : done_bytes);
        size_t chunk_bytes = is_backward ? CHUNK_SIZE_BYTES - 8 + edge % 8 : CHUNK_SIZE_BYTES - edge % 8;
        if (chunk_bytes > left_bytes)
            chunk_bytes = left_bytes;
        size_t offset_bytes = is_backward ? left_bytes - chunk_bytes : done_bytes;
        const char *source = (const char *)from + offset_bytes;
        /* The buffer has the alignment of the source: words are aligned in both. */
        char *aligned = (char *)buffer + (uintptr_t)source % 8;
        load_any(aligned, source, chunk_bytes, load_is_shared);
        store_any((char *)to + offset_bytes, aligned, chunk_bytes, store_is_shared);
        done_bytes += chunk_bytes;
    }
}

static void *copy_shared(void *to, const void *from, size_t size_bytes)
{
    copy(to, from, size_bytes, true, true);
    return to;
}

static void *copy_from_private(void *to, const void *from, size_t size_bytes)
{
    uintptr_t target = (uintptr_t)to, source = (uintptr_t)from;
    if (tm_itm_is_in_exception(tm_port_transaction(), to))
        copy_private(to, from, size_bytes);
    else if (source - target >= size_bytes && target - source >= size_bytes)
        tm_itm_store_block(to, from, size_bytes);
    else
        copy(to, from, size_bytes, false, true);
    return to;
}

static void *copy_to_private(void *to, const void *from, size_t size_bytes)
{
    uintptr_t target = (uintptr_t)to, source = (uintptr_t)from;
    if (source - target >= size_bytes && target - source >= size_bytes)
        tm_itm_load_block(to, from, size_bytes);
    else
        copy(to, from, size_bytes, true, false);
    return to;
}

#define NAMES(how, function) \
    ITM_ALIAS(memcpy##how, function) \
    ITM_ALIAS(memmove##how, function)
NAMES(RnWt, copy_from_private)
NAMES(RnWtaR, copy_from_private)
NAMES(RnWtaW, copy_from_private)
NAMES(RtWn, copy_to_private)
NAMES(RtaRWn, copy_to_private)
NAMES(RtaWWn, copy_to_private)
NAMES(RtWt, copy_shared)
NAMES(RtWtaR, copy_shared)
NAMES(RtWtaW, copy_shared)
NAMES(RtaRWt, copy_shared)
NAMES(RtaRWtaR, copy_shared)
NAMES(RtaRWtaW, copy_shared)
NAMES(RtaWWt, copy_shared)
NAMES(RtaWWtaR, copy_shared)
NAMES(RtaWWtaW, copy_shared)

void *_ITM_memsetW(void *to, int byte, size_t size_bytes)
{
    uint64_t pattern = (uint8_t)byte * 0x0101010101010101ull;
#define STEP(bits, at) tm_store##bits((uint##bits##_t *)at, (uint##bits##_t)pattern)
    EACH_PIECE(STEP, (uintptr_t)to, (uintptr_t)to + size_bytes);
#undef STEP
    return to;
}
ITM_ALIAS(memsetWaR, _ITM_memsetW)
ITM_ALIAS(memsetWaW, _ITM_memsetW)

/* Remembers private memory that ordinary stores are about to change, if the transaction may have to restore it. */
#define DEFINE_LOG(suffix, bits) \
    void _ITM_L##suffix(const uint##bits##_t *address) \
    { \
        struct tm_transaction *transaction = tm_port_transaction(); \
        if (!transaction->direct || transaction->direct_undo) \
            tm_remember_local(transaction, (void *)(uintptr_t)address, bits / 8); \
    }
DEFINE_LOG(U1, 8)
DEFINE_LOG(U2, 16)
DEFINE_LOG(U4, 32)
DEFINE_LOG(U8, 64)

void _ITM_LB(const void *address, size_t size_bytes)
{
    struct tm_transaction *transaction = tm_port_transaction();
    if (transaction->direct && !transaction->direct_undo)
        return;
#define STEP(bits, at) tm_remember_local(transaction, (void *)at, bits / 8)
    EACH_PIECE(STEP, (uintptr_t)address, (uintptr_t)address + size_bytes);
#undef STEP
}

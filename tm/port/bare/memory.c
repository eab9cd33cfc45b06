/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory for the library's transactions: blocks of powers of two, cut from an arena, and kept by size when they are
 * freed. Free blocks are never joined: transactions ask for few sizes, again and again.
 */
#include <tm/lock/byte.h>

#define CLASS_SMALLEST_LOG2 5
#define CLASSES 40

/* The header before each block. In a free block, the pointer to the next free block of its size follows. */
struct block {
    uint64_t class;
    struct block *next;
};
#define HEADER_SIZE sizeof(struct block)

static unsigned char arena[TM_BARE_ARENA_BYTES] __attribute__((aligned(16)));
static size_t arena_used;
static struct block *free_blocks[CLASSES];
static struct tm_byte_lock lock;

static unsigned class_of(size_t size_bytes)
{
    unsigned class = 0;

    while (class < CLASSES && (1ul << (CLASS_SMALLEST_LOG2 + class)) - HEADER_SIZE < size_bytes)
        class++;
    return class;
}

void *tm_port_allocate(size_t size_bytes, unsigned flags)
{
    unsigned class = class_of(size_bytes);
    size_t block_bytes = 1ul << (CLASS_SMALLEST_LOG2 + class);
    struct block *block = NULL;

    (void)flags;
    if (class >= CLASSES || tm_bare_interrupt_level())
        return NULL;
    tm_byte_lock_acquire(&lock);
    if (free_blocks[class]) {
        block = free_blocks[class];
        free_blocks[class] = block->next;
    } else if (block_bytes <= TM_BARE_ARENA_BYTES - arena_used) {
        block = (struct block *)(void *)(arena + arena_used);
        arena_used += block_bytes;
        block->class = class;
    }
    tm_byte_lock_release(&lock);
    return block ? (void *)(block + 1) : NULL;
}

void tm_port_free(void *memory)
{
    struct block *block = memory;

    if (!memory)
        return;
    block--;
    tm_byte_lock_acquire(&lock);
    block->next = free_blocks[block->class];
    free_blocks[block->class] = block;
    tm_byte_lock_release(&lock);
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The word of the locks that have a queue of processors behind 32 bits: queued, paravirtualized and unfair. In drawings
 * it is (tail, pending, locked).
 *
 *     bits 31..16   tail: the last in the queue; processor + 1 in 14 bits, then the nesting level in 2. 0: no queue
 *     bits 15..8    pending
 *     bits 7..0     locked
 *
 * It is changed as a whole by compare-and-swap and by addition. Parts are changed by plain stores where only one
 * processor may change the part: a compare-and-swap of the whole word that races with such a store either precedes it,
 * and the store leaves the other parts alone, or fails.
 */
#ifndef TM_LOCK_QUEUE_WORD_H
#define TM_LOCK_QUEUE_WORD_H

#include <tm/lock/holder.h>

TM_DECLARATIONS_BEGIN

union tm_queue_word {
    uint32_t value;
    /* Little-endian, as both processors are. */
    struct {
        uint8_t locked;
        uint8_t pending;
        uint16_t tail;
    };
    uint16_t locked_pending;
};

#define TM_QUEUE_LOCKED 0x1u
#define TM_QUEUE_LOCKED_MASK 0xffu
#define TM_QUEUE_PENDING 0x100u
#define TM_QUEUE_PENDING_MASK 0xff00u
#define TM_QUEUE_TAIL_MASK 0xffff0000u

/* (0, 0, 0) -> (0, 0, 1): takes the lock if it is free and no processor waits. Acquire if so. */
TM_INLINE bool tm_queue_word_take(union tm_queue_word *word)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(&word->value, &free, TM_QUEUE_LOCKED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

TM_DECLARATIONS_END

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The queue behind a lock word: nodes, and what the queued, paravirtualized and unfair locks do with them alike.
 *
 * Each processor has a node for each of four nesting levels: a wait, and waits in interrupt handlers that interrupted
 * one. A node is in use from the join to the leave of one wait, and the lock is not known to it. It is never freed, so
 * that a stale pointer to one always points at one.
 *
 *     word.tail -------------------------------+
 *                                              v
 *     [head, next] -> [waiting, next] -> [waiting, NULL]
 *
 * The links point from the head to the tail. A node is linked only after the tail has been exchanged. So a processor
 * that finds NULL in `next` while its node is not the tail waits for the link.
 */
#ifndef TM_LOCK_NODE_H
#define TM_LOCK_NODE_H

#include <tm/lock/queue_word.h>

#define TM_LOCK_LEVELS 4u

struct tm_lock_node {
    struct tm_lock_node *next;
    /* The predecessor. Only for unfair locks, and not for the head. */
    struct tm_lock_node *previous;
    /* Not 0 once this node is the head of the queue. */
    uint32_t head;
    /* The approximate number of nodes ahead. Only for unfair locks. */
    uint32_t position;
    /* Whether the waiter of this node sleeps. Only for paravirtualized locks; sleepers sleep on this word. */
    uint32_t state;
} TM_ALIGNED_TO_LINE;

struct tm_lock_processor {
    struct tm_lock_node nodes[TM_LOCK_LEVELS];
    /* Nodes in use. An interrupt handler restores it before it returns. */
    uint32_t levels;
};

extern struct tm_lock_processor tm_lock_processors[TM_PROCESSORS_MAX];

_Static_assert(TM_PROCESSORS_MAX < 1u << 14, "a tail has 14 bits for the processor's number and one");

/* The tail of a word in which this processor's node of this level is the last. Never 0. */
TM_INLINE uint32_t tm_lock_tail(uint32_t processor, uint32_t level)
{
    return (processor + 1) << 18 | level << 16;
}

/* The node that a tail other than 0 stands for. */
TM_INLINE struct tm_lock_node *tm_lock_tail_node(uint32_t tail)
{
    return &tm_lock_processors[(tail >> 18) - 1].nodes[tail >> 16 & (TM_LOCK_LEVELS - 1)];
}

/* The processor whose node this is. */
TM_INLINE uint32_t tm_lock_node_processor(const struct tm_lock_node *node)
{
    return (uint32_t)(((uintptr_t)node - (uintptr_t)tm_lock_processors) / sizeof(struct tm_lock_processor));
}

/* The tail of a word in which this node is the last. */
TM_INLINE uint32_t tm_lock_node_tail(const struct tm_lock_node *node)
{
    uint32_t processor = tm_lock_node_processor(node);

    return tm_lock_tail(processor, (uint32_t)(node - tm_lock_processors[processor].nodes));
}

/*
 * Takes a node of this processor, and its tail: NULL when all four levels are in use. tm_lock_node_leave ends its use.
 */
TM_INLINE struct tm_lock_node *tm_lock_node_enter(uint32_t *tail)
{
    uint32_t number = tm_port_processor();
    struct tm_lock_processor *processor = &tm_lock_processors[number];
    uint32_t level = processor->levels;
    struct tm_lock_node *node;

    if (TM_UNLIKELY(level == TM_LOCK_LEVELS)) {
        tm_statistics_add(TM_STATISTIC_UNQUEUED);
        return NULL;
    }
    processor->levels = level + 1;
    node = &processor->nodes[level];
    /* The node is taken before this processor writes to it: a later interrupt handler takes another. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /*
     * Atomic for ThreadSanitizer's sake: it takes a release of the locked byte for one of the whole word, which would
     * undo the release of the tail here.
     */
    __atomic_store_n(&node->next, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&node->head, 0, __ATOMIC_RELAXED);
    *tail = tm_lock_tail(number, level);
    tm_statistics_add(TM_STATISTIC_QUEUED);
    return node;
}

/* Gives back the node of this processor's innermost wait. */
TM_INLINE void tm_lock_node_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tm_lock_processors[tm_port_processor()].levels--;
}

/*
 * (m, p, l) -> (tail, p, l): becomes the last in the queue. Returns the whole old word.
 *
 * Release: a processor that finds the tail finds the node initialized. Acquire: the initialization of the node of tail
 * m precedes this processor's link in it.
 */
TM_INLINE uint32_t tm_lock_tail_exchange(union tm_queue_word *word, uint32_t tail)
{
    uint32_t old = __atomic_load_n(&word->value, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(&word->value, &old, (old & ~TM_QUEUE_TAIL_MASK) | tail, 1, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
        ;
    return old;
}

/* The successor. It has exchanged the tail, and may still have to link itself. Acquire: finds it initialized. */
TM_INLINE struct tm_lock_node *tm_lock_node_next(struct tm_lock_node *node)
{
    struct tm_lock_node *next;
    unsigned turns = 0;

    while (!(next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE)))
        tm_port_wait(&turns);
    return next;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* No transactions: everything is a constant, and compilers drop what would use them. See <tm/htm.h>. */
#ifndef TM_HTM_NONE_H
#define TM_HTM_NONE_H

struct tm_htm_tries {
    unsigned failures;
};

TM_INLINE enum tm_htm_kind tm_htm_kind(void)
{
    return TM_HTM_NONE;
}

TM_INLINE unsigned long tm_htm_begin(void)
{
    return ~TM_HTM_STARTED;
}

TM_INLINE enum tm_htm_cause tm_htm_cause(unsigned long status)
{
    (void)status;
    return TM_HTM_OTHER;
}

TM_INLINE unsigned long tm_htm_again(void)
{
    return ~TM_HTM_STARTED;
}

TM_INLINE void tm_htm_abandon(void)
{
}

TM_INLINE void tm_htm_commit(void)
{
}

TM_INLINE void tm_htm_abort(enum tm_htm_cause cause)
{
    (void)cause;
}

TM_INLINE bool tm_htm_active(void)
{
    return false;
}

TM_INLINE bool tm_htm_test(const uint32_t *word, uint32_t value)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value;
}

TM_INLINE bool tm_htm_wait(const uint32_t *word, uint32_t value)
{
    return tm_htm_test(word, value);
}

TM_INLINE void tm_htm_count(uint64_t *counter)
{
    ++*counter;
}

TM_INLINE struct tm_htm_tries tm_htm_tries(void)
{
    return (struct tm_htm_tries){0};
}

TM_INLINE unsigned tm_htm_tries_failed(struct tm_htm_tries *tries)
{
    return ++tries->failures;
}

TM_INLINE enum tm_htm_answer tm_htm_acquire(uint32_t *word, uint32_t value)
{
    uint32_t expected = 0;

    return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
               ? TM_HTM_SWAPPED
               : TM_HTM_DIFFERED;
}

TM_INLINE void tm_htm_order(void)
{
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Restricted transactional memory, of Intel's processors: "Intel 64 and IA-32 Architectures Software Developer's
 * Manual", volume 1, chapter 16. See <tm/htm.h> for what the functions mean.
 *
 * A transaction that fails has ended. Its registers except eax are those of the xbegin, and its stores have been
 * discarded, so a local variable can count failures. A processor without the instructions must not execute them (#UD),
 * so the kind is determined first.
 */
#ifndef TM_HTM_RTM_H
#define TM_HTM_RTM_H

/* Bits of eax after an abort. With none of them set: TM_HTM_OTHER. */
#define TM_RTM_EXPLICIT 1u
#define TM_RTM_CONFLICT 4u
#define TM_RTM_CAPACITY 8u
#define TM_RTM_CODE_SHIFT 24

struct tm_htm_tries {
    unsigned failures;
};

TM_INLINE enum tm_htm_kind tm_htm_kind(void)
{
    enum tm_htm_kind kind = __atomic_load_n(&tm_htm_found.kind, __ATOMIC_RELAXED);

    return TM_UNLIKELY(kind == TM_HTM_UNKNOWN) ? tm_htm_find() : kind;
}

/* The status is the complement of eax, which the processor does not change when a transaction starts. */
TM_INLINE unsigned long tm_htm_begin(void)
{
    unsigned eax = ~0u;

    __asm__ volatile("xbegin 1f\n"
                     "1:"
                     : "+a"(eax)
                     :
                     : "memory");
    return ~eax;
}

TM_INLINE enum tm_htm_cause tm_htm_cause(unsigned long status)
{
    unsigned eax = ~(unsigned)status;

    if (eax & TM_RTM_EXPLICIT) {
        unsigned code = eax >> TM_RTM_CODE_SHIFT;
        return code == TM_HTM_TAKEN || code == TM_HTM_IO ? (enum tm_htm_cause)code : TM_HTM_EXPLICIT;
    }
    if (eax & TM_RTM_CAPACITY)
        return TM_HTM_CAPACITY;
    return eax & TM_RTM_CONFLICT ? TM_HTM_CONFLICT : TM_HTM_OTHER;
}

TM_INLINE unsigned long tm_htm_again(void)
{
    return tm_htm_begin();
}

TM_INLINE void tm_htm_abandon(void)
{
}

TM_INLINE void tm_htm_commit(void)
{
    __asm__ volatile("xend" ::: "memory");
}

/* The code, an immediate, is the cause. Codes of other programs are TM_HTM_EXPLICIT. */
TM_INLINE __attribute__((noreturn)) void tm_htm_abort(enum tm_htm_cause cause)
{
    TM_STATIC_ASSERT(TM_HTM_EXPLICIT == 2 && TM_HTM_TAKEN == 3 && TM_HTM_IO == 4, "the codes below");
    if (cause == TM_HTM_TAKEN)
        __asm__ volatile("xabort $3" ::: "memory");
    if (cause == TM_HTM_IO)
        __asm__ volatile("xabort $4" ::: "memory");
    __asm__ volatile("xabort $2" ::: "memory");
    /* Outside of a transaction xabort does nothing. */
    __builtin_trap();
}

TM_INLINE bool tm_htm_active(void)
{
    bool active;

    if (tm_htm_kind() == TM_HTM_NONE)
        return false;
    __asm__ volatile("xtest" : "=@ccnz"(active) : : "memory");
    return active;
}

TM_INLINE bool tm_htm_test(const uint32_t *word, uint32_t value)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value;
}

TM_INLINE __attribute__((noreturn)) bool tm_htm_wait(const uint32_t *word, uint32_t value)
{
    (void)word;
    (void)value;
    tm_htm_abort(TM_HTM_TAKEN);
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

/* A store always wins. */
TM_INLINE enum tm_htm_answer tm_htm_acquire(uint32_t *word, uint32_t value)
{
    uint32_t expected = 0;

    return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
               ? TM_HTM_SWAPPED
               : TM_HTM_DIFFERED;
}

/* A locked instruction takes effect before any later read. */
TM_INLINE void tm_htm_order(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Xmetatm: docs/xmetatm.md. See <tm/htm.h> for what the functions mean.
 *
 * A transaction that fails is open again, at depth 1 and with empty sets, and local variables are those of its xbegin.
 * The hart counts failures (xrestarts, 16 bits, including those of handlers), and all other data that must survive a
 * failure is stored between xpush and xpop.
 */
#ifndef TM_HTM_XMETATM_H
#define TM_HTM_XMETATM_H

#include <xmetatm.h>

/* The code of requested restarts, if the cause does not say it: XMETATM_CAUSE_EXPLICIT has two meanings here. */
#define TM_XMETATM_CODE_TAKEN 1

struct tm_htm_tries {
    unsigned short restarts_base;
};

TM_INLINE enum tm_htm_kind tm_htm_kind(void)
{
    enum tm_htm_kind kind = __atomic_load_n(&tm_htm_found.kind, __ATOMIC_RELAXED);

    return TM_UNLIKELY(kind == TM_HTM_UNKNOWN) ? tm_htm_find() : kind;
}

TM_INLINE unsigned long tm_htm_begin(void)
{
    return xbegin();
}

TM_INLINE enum tm_htm_cause tm_htm_cause(unsigned long status)
{
    static const unsigned char causes[] = {
        [XMETATM_CAUSE_NONE] = TM_HTM_OTHER,
        [XMETATM_CAUSE_CONFLICT] = TM_HTM_CONFLICT,
        [XMETATM_CAUSE_NONTRANSACTIONAL] = TM_HTM_NONTRANSACTIONAL,
        [XMETATM_CAUSE_EXPLICIT] = TM_HTM_EXPLICIT,
        [XMETATM_CAUSE_NEED_EXCLUSIVE] = TM_HTM_IO,
        [XMETATM_CAUSE_CAPACITY] = TM_HTM_CAPACITY,
        [XMETATM_CAUSE_INTERRUPT] = TM_HTM_INTERRUPT,
        [XMETATM_CAUSE_DEPTH] = TM_HTM_NESTING,
    };
    unsigned long cause = xmetatm_cause(status);

    if (xmetatm_code(status) == TM_XMETATM_CODE_TAKEN)
        return TM_HTM_TAKEN;
    return cause < sizeof(causes) ? (enum tm_htm_cause)causes[cause] : TM_HTM_OTHER;
}

TM_INLINE unsigned long tm_htm_again(void)
{
    return TM_HTM_STARTED;
}

TM_INLINE void tm_htm_abandon(void)
{
    xend();
}

TM_INLINE void tm_htm_commit(void)
{
    xend();
}

TM_INLINE __attribute__((noreturn)) void tm_htm_abort(enum tm_htm_cause cause)
{
    if (cause == TM_HTM_IO)
        xrestart(xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, 0));
    xrestart(xmetatm_status(XMETATM_CAUSE_EXPLICIT, cause == TM_HTM_TAKEN ? TM_XMETATM_CODE_TAKEN : 0));
}

TM_INLINE bool tm_htm_active(void)
{
    return tm_htm_kind() != TM_HTM_NONE && xgettxid() != 0;
}

TM_INLINE bool tm_htm_test(const uint32_t *word, uint32_t value)
{
    if (tm_htm_kind() == TM_HTM_NONE)
        return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value;
    return xtest_w(word, value);
}

TM_INLINE bool tm_htm_wait(const uint32_t *word, uint32_t value)
{
    bool nested = xmetatm_depth(xmetatm_csr_read(CSR_XSTATUS)) > 1;
    unsigned turns = nested ? tm_htm_nested_wait_turns : tm_htm_wait_turns;

    while (turns--) {
        if (xtest_w(word, value))
            return true;
        tm_port_relax();
    }
    if (nested)
        tm_htm_abort(TM_HTM_TAKEN);
    return false;
}

/*
 * One piece of assembler, because nothing may be stored to a stack frame between xpush and xpop. A trap there uses
 * another stack, or the stack below: the caller's frame is not above the transaction's checkpoint, because the caller,
 * or a function that called it, has begun the transaction.
 */
TM_INLINE void tm_htm_count(uint64_t *counter)
{
    unsigned long scratch;

    __asm__ volatile(".insn i 0x0b, 4, x0, x0, 0\n" /* xpush */
                     "  ld %0, %1\n"
                     "  addi %0, %0, 1\n"
                     "  sd %0, %1\n"
                     "  .insn i 0x0b, 5, x0, x0, 0" /* xpop */
                     : "=&r"(scratch), "+m"(*counter));
}

TM_INLINE struct tm_htm_tries tm_htm_tries(void)
{
    return (struct tm_htm_tries){(unsigned short)xmetatm_csr_read(CSR_XRESTARTS)};
}

/*
 * The register saturates. A full register has no more information: it is cleared, and this transaction has used up its
 * tries, as have those that are suspended meanwhile.
 */
TM_INLINE unsigned tm_htm_tries_failed(struct tm_htm_tries *tries)
{
    unsigned long restarts = xmetatm_csr_read(CSR_XRESTARTS);

    if (restarts == XMETATM_RESTARTS_MAX) {
        xmetatm_csr_write(CSR_XRESTARTS, 0);
        return ~0u;
    }
    return (unsigned short)(restarts - tries->restarts_base);
}

/* The instruction orders memory like an AMO with aq and rl. */
TM_INLINE enum tm_htm_answer tm_htm_acquire(uint32_t *word, uint32_t value)
{
    uint32_t expected = 0;

    if (tm_htm_kind() != TM_HTM_NONE)
        switch (xcas_w(word, 0, value)) {
        case XCAS_SWAPPED:
            return TM_HTM_SWAPPED;
        case XCAS_DIFFERED:
            return TM_HTM_DIFFERED;
        default:
            return TM_HTM_REFUSED;
        }
    return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
               ? TM_HTM_SWAPPED
               : TM_HTM_DIFFERED;
}

/*
 * If only the LR acquires, an SC may take effect after the loads behind it. A transaction could then commit in between,
 * without having seen that the lock is taken.
 */
TM_INLINE void tm_htm_order(void)
{
    __asm__ volatile("fence rw, rw" ::: "memory");
}

#endif

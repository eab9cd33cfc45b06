/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Finds the kind of the processor's transactions, and holds the budgets of failures: <tm/htm.h>. */
#include <tm/htm.h>

/*
 * The number of failed trials after which RTM counts as never committing: microcode can make all transactions fail, and
 * an interrupt can make any one fail.
 */
#define PROBES 64

unsigned tm_htm_budgets[TM_HTM_CAUSES] = {
    [TM_HTM_CONFLICT] = 16,
    [TM_HTM_NONTRANSACTIONAL] = 16,
    /* A section with this failure waits for another processor, and may do so a few times before it takes the lock. */
    [TM_HTM_EXPLICIT] = 3,
    [TM_HTM_TAKEN] = 16,
    [TM_HTM_INTERRUPT] = 3,
    [TM_HTM_OTHER] = 3,
};

unsigned tm_htm_wait_turns = 4096;
unsigned tm_htm_nested_wait_turns = 1024;
unsigned tm_htm_refusals_max = 64;

struct tm_htm_found tm_htm_found;

#if defined(TM_HTM_OFF) || !(defined(__x86_64__) || (defined(__riscv) && __riscv_xlen == 64))

static enum tm_htm_kind probe(void)
{
    return TM_HTM_NONE;
}

#elif defined(__x86_64__)

#define CPUID_FEATURES 7
#define CPUID_FEATURES_EBX_RTM (1u << 11)
#define CPUID_FEATURES_EDX_RTM_ALWAYS_ABORT (1u << 11)

struct cpuid {
    unsigned eax, ebx, ecx, edx;
};

static struct cpuid read_cpuid(unsigned leaf)
{
    struct cpuid answer;

    __asm__ volatile("cpuid"
                     : "=a"(answer.eax), "=b"(answer.ebx), "=c"(answer.ecx), "=d"(answer.edx)
                     : "a"(leaf), "c"(0));
    return answer;
}

static enum tm_htm_kind probe(void)
{
    struct cpuid features;
    volatile unsigned word = 0;
    unsigned count;

    if (read_cpuid(0).eax < CPUID_FEATURES)
        return TM_HTM_NONE;
    features = read_cpuid(CPUID_FEATURES);
    if (!(features.ebx & CPUID_FEATURES_EBX_RTM) || (features.edx & CPUID_FEATURES_EDX_RTM_ALWAYS_ABORT))
        return TM_HTM_NONE;
    for (count = 0; count < PROBES && !word; count++) {
        if (tm_htm_begin() == TM_HTM_STARTED) {
            word = 1;
            tm_htm_commit();
        }
    }
    return word ? TM_HTM_RTM : TM_HTM_NONE;
}

#else

static enum tm_htm_kind probe(void)
{
    return tm_port_has_xmetatm() ? TM_HTM_XMETATM : TM_HTM_NONE;
}

#endif

enum tm_htm_kind tm_htm_find(void)
{
    enum tm_htm_kind kind = probe(), before = TM_HTM_UNKNOWN;

    /* The first thread to finish decides for all: probes of one processor need not agree. */
    if (!__atomic_compare_exchange_n(&tm_htm_found.kind, &before, kind, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        kind = before;
    return kind;
}

void tm_htm_disable(void)
{
    __atomic_store_n(&tm_htm_found.kind, TM_HTM_NONE, __ATOMIC_RELAXED);
}

const char *tm_htm_kind_name(enum tm_htm_kind kind)
{
    static const char *const names[] = {"unknown", "none", "rtm", "xmetatm"};

    return names[kind];
}

const char *tm_htm_cause_name(enum tm_htm_cause cause)
{
    static const char *const names[TM_HTM_CAUSES] = {"conflict", "nontransactional", "explicit",  "taken", "io",
                                                     "capacity", "interrupt",        "nesting", "other"};

    return names[cause];
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Numbers for threads. A number is a bit of a map. A thread gets the first free one, so numbers are dense. The
 * destructor of a key that every numbered thread has frees the number when the thread exits.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include <tm/port.h>

#define BITS_PER_WORD (8u * sizeof(unsigned long))

static unsigned long slots_taken[TM_PROCESSORS_MAX / BITS_PER_WORD];
static pthread_key_t exit_key;

__thread unsigned tm_port_slot;

static void slot_free(unsigned slot)
{
    unsigned index = slot - 1;

    /*
     * Release, and acquire in slot_find: the last owner's accesses to its queue nodes precede those of the next owner.
     */
    __atomic_fetch_and(&slots_taken[index / BITS_PER_WORD], ~(1ul << index % BITS_PER_WORD), __ATOMIC_RELEASE);
}

static unsigned slot_find(void)
{
    for (unsigned i = 0; i < TM_PROCESSORS_MAX / BITS_PER_WORD; i++) {
        unsigned long taken = __atomic_load_n(&slots_taken[i], __ATOMIC_RELAXED);

        while (~taken) {
            unsigned bit = (unsigned)__builtin_ctzl(~taken);

            if (__atomic_compare_exchange_n(&slots_taken[i], &taken, taken | 1ul << bit, 0, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return (unsigned)(i * BITS_PER_WORD) + bit + 1;
        }
    }
    tm_port_fatal("more threads use locks or transactions than TM_PROCESSORS_MAX");
}

/* Another key's destructor may take a lock after this: then the thread gets a number again, and this runs again. */
static void thread_exits(void *unused)
{
    unsigned slot = tm_port_slot;

    (void)unused;
    if (slot) {
        tm_port_slot = 0;
        slot_free(slot);
    }
}

__attribute__((constructor)) static void exit_key_make(void)
{
    if (pthread_key_create(&exit_key, thread_exits))
        tm_port_fatal("the process has no key left for thread exits");
}

unsigned tm_port_slot_take(void)
{
    unsigned none = 0, slot = slot_find();

    /* A signal handler that came in between has given the thread a number. */
    if (__atomic_compare_exchange_n(&tm_port_slot, &none, slot, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        pthread_setspecific(exit_key, &tm_port_slot);
    else
        slot_free(slot);
    return tm_port_slot - 1;
}

void tm_port_yield(void)
{
    sched_yield();
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Workloads are compiled once for each way to write a transaction: by the compiler (backend_itm.h), by the plain
 * interface (backend_plain.h), and by a lock instead of transactions (backend_spinlock.h). The backend is the first
 * header of each file, by -include. It defines:
 *
 *     TRANSACTION ... END                 around accesses; no jump leaves it, and it reads no variable that it changes
 *     READ_ONLY_TRANSACTION ... END       the same, without stores
 *     LOAD(place), STORE(place, value)    of words and pointers
 *     ALLOCATE(size_bytes), RELEASE(memory)
 *     SAFE                                on functions that are called in transactions
 *     BACKEND_NAME                        of results
 */
#ifndef TM_CHECK_STM_BENCH_WORKLOAD_H
#define TM_CHECK_STM_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../random.h"

#define NOINLINE __attribute__((noinline))

struct workload {
    const char *name;
    /* Runs before threads begin. */
    void (*prepare)(void);
    /* One operation; `random` is the thread's own. */
    void (*operate)(uint64_t *random);
    /* Whether the final state is consistent; it may be emptied. */
    bool (*adds_up)(uint64_t operations);
};

extern const struct workload increment, read16, read16_write4, bank, list, hash_table, tree;

/* Sets of keys: of 2 * SET_UPDATES + SET_LOOKUPS operations, these numbers insert, remove, and look up. */
#define SET_UPDATES 1
#define SET_LOOKUPS 8

enum set_operation {
    SET_INSERT,
    SET_REMOVE,
    SET_LOOK_UP,
};

static inline enum set_operation next_set_operation(uint64_t *random)
{
    uint32_t number = random_below(random, 2 * SET_UPDATES + SET_LOOKUPS);
    return number < SET_UPDATES ? SET_INSERT : number < 2 * SET_UPDATES ? SET_REMOVE : SET_LOOK_UP;
}

#endif

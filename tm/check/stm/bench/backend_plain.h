/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Transactions by tm/tm.h. */
#ifndef TM_CHECK_STM_BENCH_BACKEND_H
#define TM_CHECK_STM_BENCH_BACKEND_H

#include <stdlib.h>

#include <tm/tm.h>

#define BACKEND_NAME "plain"
#define SAFE
#define TRANSACTION \
    if (tm_start(0) == TM_STARTED) {
#define READ_ONLY_TRANSACTION \
    if (tm_start(TM_READ_ONLY) == TM_STARTED) {
#define END \
    tm_commit(); \
    } \
    else \
    { \
        abort(); \
    }
#define LOAD(place) ((__typeof__(place))tm_load64((const uint64_t *)(const void *)&(place)))
#define STORE(place, value) tm_store64((uint64_t *)(void *)&(place), (uint64_t)(__typeof__(place))(value))
#define ALLOCATE(size_bytes) tm_alloc(size_bytes, 0)
#define RELEASE(memory) tm_free(memory)

#endif

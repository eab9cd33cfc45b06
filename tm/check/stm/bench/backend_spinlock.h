/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One spinlock around everything. */
#ifndef TM_CHECK_STM_BENCH_BACKEND_H
#define TM_CHECK_STM_BENCH_BACKEND_H

#include <stdlib.h>

#include <tm/lock/byte.h>

/* Of all files. */
__attribute__((weak)) struct tm_byte_lock bench_lock TM_ALIGNED_TO_LINE;

#define BACKEND_NAME "spinlock"
#define SAFE
#define TRANSACTION \
    { \
        tm_byte_lock_acquire(&bench_lock);
#define READ_ONLY_TRANSACTION TRANSACTION
#define END \
    tm_byte_lock_release(&bench_lock); \
    }
#define LOAD(place) (place)
#define STORE(place, value) ((place) = (value))
#define ALLOCATE(size_bytes) malloc(size_bytes)
#define RELEASE(memory) free(memory)

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Transactions of the compiler: -fgnu-tm. */
#ifndef TM_CHECK_STM_BENCH_BACKEND_H
#define TM_CHECK_STM_BENCH_BACKEND_H

#include <stdlib.h>

#define BACKEND_NAME "itm"
#define SAFE __attribute__((transaction_safe))
#define TRANSACTION __transaction_atomic {
#define READ_ONLY_TRANSACTION __transaction_atomic {
#define END }
#define LOAD(place) (place)
#define STORE(place, value) ((place) = (value))
#define ALLOCATE(size_bytes) malloc(size_bytes)
#define RELEASE(memory) free(memory)

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Checks of C++ in transactions. Every suite runs twice: alone, and beside a thread that has had a transaction. */
#ifndef TM_CHECK_ITM_CXX_CHECK_H
#define TM_CHECK_ITM_CXX_CHECK_H

#include <cstddef>
#include <cstdint>

#define PURE __attribute__((transaction_pure))
#define SAFE __attribute__((transaction_safe))
#define NOINLINE __attribute__((noinline))

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
void check(bool holds, const char *condition, const char *file, int line);

/* Restarts the transaction if that is possible and has not happened yet; `restarts` counts. */
PURE void restart_once(unsigned *restarts);

/* operator new and operator delete of this program count here, and fail on request. */
struct allocations {
    unsigned objects, arrays;
    bool fails;
};
extern allocations allocations;

void check_exceptions();
void check_memory();
/* What `threads` threads do at a time, `turns` times each, and the check of the result. */
void run_contended(unsigned turns);
void check_contended(unsigned threads, unsigned turns);

#endif

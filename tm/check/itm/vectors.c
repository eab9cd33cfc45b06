/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Vectors of x86-64. Compiled with -mavx, and called where the processor has it. */
#include "check.h"

#define CHECK_VECTOR(name, element, count) \
    typedef element name __attribute__((vector_size(sizeof(element) * (count)), aligned(4))); \
    static char name##_memory[sizeof(name) + 64] __attribute__((aligned(64))); \
    static NOINLINE name name##_double(name *vector, bool cancel) \
    { \
        name result = {0}; \
        __transaction_atomic \
        { \
            *vector = *vector + *vector; \
            result = *vector; \
            if (cancel) \
                __transaction_cancel; \
        } \
        return result; \
    } \
    static void check_##name(void) \
    { \
        for (unsigned offset = 0; offset < 32; offset += 4) { \
            name *vector = (void *)(name##_memory + offset); \
            element *elements = (void *)(name##_memory + offset); \
            for (int i = -1; i <= (count); i++) \
                if (offset + i * sizeof(element) < sizeof name##_memory) \
                    elements[i] = i; \
            name##_double(vector, true); \
            for (int i = 0; i < (count); i++) \
                CHECK(elements[i] == i); \
            name result = name##_double(vector, false); \
            for (int i = 0; i < (count); i++) \
                CHECK(elements[i] == 2 * i && result[i] == 2 * i); \
            CHECK(elements[count] == (count)); \
        } \
    }

CHECK_VECTOR(floats2, float, 2)
CHECK_VECTOR(ints4, int, 4)
CHECK_VECTOR(floats4, float, 4)
CHECK_VECTOR(floats8, float, 8)
CHECK_VECTOR(longs4, long, 4)

void check_vectors(void)
{
    check_floats2();
    check_ints4();
    check_floats4();
    check_floats8();
    check_longs4();
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that compilers call for initializers and copies, for programs without a C library. They work byte by
 * byte: nothing here is large.
 */
#include <stddef.h>

void *memset(void *to, int value, size_t size_bytes);
void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes);
void *memmove(void *to, const void *from, size_t size_bytes);

void *memset(void *to, int value, size_t size_bytes)
{
    for (unsigned char *byte = to; size_bytes--; byte++)
        *byte = (unsigned char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size_bytes)
{
    const unsigned char *source = from;

    for (unsigned char *byte = to; size_bytes--; byte++)
        *byte = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t size_bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    if (target <= source)
        return memcpy(to, from, size_bytes);
    while (size_bytes--)
        target[size_bytes] = source[size_bytes];
    return to;
}

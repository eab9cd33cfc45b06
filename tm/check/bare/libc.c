/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The functions of the C library that check programs use, for bare harts. */
#include "../host.h"

void *malloc(size_t size_bytes);
void *calloc(size_t count, size_t size_bytes);
void free(void *memory);
void abort(void) __attribute__((noreturn));

void *malloc(size_t size_bytes)
{
    return tm_port_allocate(size_bytes, 0);
}

void *calloc(size_t count, size_t size_bytes)
{
    size_t total_bytes;
    if (__builtin_mul_overflow(count, size_bytes, &total_bytes))
        return NULL;
    unsigned char *memory = malloc(total_bytes);
    for (size_t byte = 0; memory && byte < total_bytes; byte++)
        memory[byte] = 0;
    return memory;
}

void free(void *memory)
{
    tm_port_free(memory);
}

void abort(void)
{
    host_exit(1);
}

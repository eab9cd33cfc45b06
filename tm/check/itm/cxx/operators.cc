/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program's own operators. They are compiled as those of the C++ library are, without transactions: what takes their
 * place in transactions is the library's.
 */
#include "check.h"

#include <cstdlib>
#include <new>

struct allocations allocations;

static void *allocate(std::size_t size, unsigned *count)
{
    void *memory = allocations.fails ? nullptr : malloc(size);
    if (memory)
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    return memory;
}

static void release(void *memory, unsigned *count)
{
    if (!memory)
        return;
    __atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
    free(memory);
}

void *operator new(std::size_t size)
{
    if (void *memory = allocate(size, &allocations.objects))
        return memory;
    throw std::bad_alloc();
}

void *operator new[](std::size_t size)
{
    if (void *memory = allocate(size, &allocations.arrays))
        return memory;
    throw std::bad_alloc();
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size, &allocations.objects);
}

void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
    return allocate(size, &allocations.arrays);
}

void operator delete(void *memory) noexcept
{
    release(memory, &allocations.objects);
}

void operator delete[](void *memory) noexcept
{
    release(memory, &allocations.arrays);
}

void operator delete(void *memory, std::size_t) noexcept
{
    release(memory, &allocations.objects);
}

void operator delete[](void *memory, std::size_t) noexcept
{
    release(memory, &allocations.arrays);
}

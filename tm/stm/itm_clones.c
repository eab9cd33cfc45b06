/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The compiler's interface: from functions to their clones.
 *
 * Tables are copied, and the memory of the copies is never given back, so a lookup takes no lock: the memory that it
 * searches stays what it is. A lookup never needs a table that comes or goes meanwhile, since the function that it asks
 * for is loaded.
 *
 * The C run-time refers to the registration weakly. A weak reference alone does not link this file from an archive, but
 * a program that needs clones also looks them up.
 */
#include "itm.h"

#include <tm/lock/byte.h>

/*
 * The largest number of loaded programs and libraries with clones. Functions of further ones are treated as having
 * none.
 */
#define TABLES_MAX 256

/* An entry in the compiler's format. */
struct clone {
    void *function;
    void *clone;
};

struct clone_table {
    /* 0: this slot is free. */
    size_t count;
    /* Sorted by function; null: never used. */
    struct clone *clones;
    size_t capacity;
    const void *registered;
};

static struct clone_table tables[TABLES_MAX];
/* Slots from here on have never been used. */
static size_t tables_end;
static struct tm_byte_lock tables_lock;

/* Shell's sort, with the gaps of Knuth. */
static void sort(struct clone *clones, size_t count)
{
    size_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (size_t next = gap; next < count; next++) {
            struct clone moved = clones[next];
            size_t place = next;
            for (; place >= gap && clones[place - gap].function > moved.function; place -= gap)
                clones[place] = clones[place - gap];
            clones[place] = moved;
        }
    }
}

/* Returns a free slot with room for `count` clones, or null. */
static struct clone_table *find_place(size_t count)
{
    struct clone_table *unused = NULL;
    for (struct clone_table *table = tables; table < &tables[TABLES_MAX]; table++) {
        if (table->count == 0 && table->clones && table->capacity >= count)
            return table;
        if (!table->clones && !unused)
            unused = table;
    }
    if (unused) {
        unused->clones = tm_port_allocate(count * sizeof *unused->clones, 0);
        unused->capacity = count;
    }
    return unused && unused->clones ? unused : NULL;
}

void _ITM_registerTMCloneTable(void *table, size_t count)
{
    if (count == 0)
        return;
    const struct clone *entries = table;
    tm_byte_lock_acquire(&tables_lock);
    struct clone_table *place = find_place(count);
    if (place) {
        for (size_t entry = 0; entry < count; entry++)
            place->clones[entry] = entries[entry];
        sort(place->clones, count);
        place->registered = table;
        __atomic_store_n(&place->count, count, __ATOMIC_RELEASE);
        if (place >= &tables[tables_end])
            __atomic_store_n(&tables_end, (size_t)(place - tables) + 1, __ATOMIC_RELEASE);
    }
    tm_byte_lock_release(&tables_lock);
}

void _ITM_deregisterTMCloneTable(void *table)
{
    tm_byte_lock_acquire(&tables_lock);
    for (struct clone_table *place = tables; place < &tables[tables_end]; place++)
        if (place->count && place->registered == table)
            __atomic_store_n(&place->count, 0, __ATOMIC_RELAXED);
    tm_byte_lock_release(&tables_lock);
}

static void *find_clone(const void *function)
{
    size_t end = __atomic_load_n(&tables_end, __ATOMIC_ACQUIRE);
    for (const struct clone_table *table = tables; table < &tables[end]; table++) {
        size_t low = 0, high = __atomic_load_n(&table->count, __ATOMIC_ACQUIRE);
        while (low < high) {
            const struct clone *middle = &table->clones[low + (high - low) / 2];
            if (middle->function == function)
                return middle->clone;
            if (middle->function < function)
                low += (high - low) / 2 + 1;
            else
                high = low + (high - low) / 2;
        }
    }
    return NULL;
}

void *_ITM_getTMCloneSafe(void *function)
{
    void *clone = find_clone(function);
    if (TM_UNLIKELY(!clone))
        tm_port_fatal("_ITM_getTMCloneSafe: the function has no clone");
    return clone;
}

void *_ITM_getTMCloneOrIrrevocable(void *function)
{
    void *clone = find_clone(function);
    if (clone)
        return clone;
    tm_become_irrevocable();
    return function;
}

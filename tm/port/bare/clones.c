/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Registers the program's own table of clones, as the C run-time does where there is one. */
#include <tm/lock/byte.h>

#include "clones.h"

/* clones.ld. A program that is linked without it has none. */
extern char __tm_clone_table_begin[] __attribute__((weak));
extern char __tm_clone_table_end[] __attribute__((weak));

void _ITM_registerTMCloneTable(void *table, size_t count);

void tm_bare_clones_register(void)
{
    static struct tm_byte_lock lock;
    static bool registered;

    tm_byte_lock_acquire(&lock);
    if (!registered)
        _ITM_registerTMCloneTable(__tm_clone_table_begin,
                                  (size_t)(__tm_clone_table_end - __tm_clone_table_begin) / (2 * sizeof(void *)));
    registered = true;
    tm_byte_lock_release(&lock);
}

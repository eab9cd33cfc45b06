/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Registers the program's own table of clones, as a C run-time would. */
#include <tm/lock/byte.h>

#include "clones.h"

/* From clones.ld. A program linked without it has no table. */
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

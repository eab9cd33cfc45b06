/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Memory of kmalloc. It can be freed anywhere, also in handlers, and by kfree as well as by tm_free. */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <tm/tm.h>

void *tm_port_allocate(size_t size_bytes, unsigned flags)
{
    gfp_t how = flags ? (__force gfp_t)flags : GFP_ATOMIC | __GFP_NOWARN;

    /* Other threads may wait for this transaction's records, and preemption is off. */
    if (tm_in_transaction())
        how &= ~__GFP_DIRECT_RECLAIM;
    /* Blocks of a power of two are aligned to their size. */
    return kmalloc(size_bytes < TM_CACHE_LINE_SIZE ? size_bytes : roundup_pow_of_two(size_bytes), how);
}

void tm_port_free(void *memory)
{
    kfree(memory);
}

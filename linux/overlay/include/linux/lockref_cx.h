/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The count of a lockref shares a word with its lock, so a compare-and-swap of both conflicts with
 * every section of the lock. Outside a transaction a plain compare-and-swap always wins such a
 * conflict, which starved the sections of dput in the paper (section 7.2). Here the contention manager
 * decides: if it refuses, the caller tries again and finally takes the lock.
 */
#ifndef __LINUX_LOCKREF_CX_H
#define __LINUX_LOCKREF_CX_H

#include <linux/jump_label.h>
#include <asm/xmetatm.h>

/* cx.lockref=arbitrated */
DECLARE_STATIC_KEY_FALSE(cx_key_lockref);

static __always_inline bool lockref_try_cmpxchg(__u64 *word, __u64 *old, __u64 new)
{
	if (!static_branch_unlikely(&cx_key_lockref))
		return try_cmpxchg64_relaxed(word, old, new);
	switch (xcas_d(word, *old, new)) {
	case XCAS_SWAPPED:
		return true;
	case XCAS_DIFFERED:
		*old = READ_ONCE(*word);
	}
	/* Refused. Reading the word now would make the transaction that has written it lose. */
	return false;
}

#endif

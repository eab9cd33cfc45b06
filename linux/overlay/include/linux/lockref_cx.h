/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lockref's count lies in the word of its lock, so a compare-and-swap of both conflicts with every section of the lock, and outside a
 * transaction it always wins. Here the contention manager decides: where it refuses, the caller tries again, and in the end takes the lock.
 * That is what starved sections of dput in the paper (section 7.2).
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
	/* Refused: to read the word would make the transaction lose that has written it. */
	return false;
}

#endif

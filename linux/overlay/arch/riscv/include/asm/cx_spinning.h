/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every loop does that waits for another processor (cpu_relax).
 *
 * In a transaction such a loop must end: what it waits for may need a word that the transaction holds, or an interrupt that it holds
 * back. It restarts instead, and after a few restarts its section takes the lock.
 */
#ifndef _ASM_RISCV_CX_SPINNING_H
#define _ASM_RISCV_CX_SPINNING_H

#include <linux/jump_label.h>
#include <asm/concord.h>
#include <asm/xmetatm.h>

/* Set once at boot, and never cleared: a section somewhere may be a transaction. */
DECLARE_STATIC_KEY_FALSE(cx_key);

/* User codes of xrestart: why a section asked for its restart. */
#define CX_CODE_NONE 0
#define CX_CODE_SPINNING 1 /* it was about to wait for another processor */
#define CX_CODE_WAITED 2 /* a nested lock stayed taken for too long */
#define CX_CODE_RAW 3 /* it met a raw lock that is not safe in a transaction */
#define CX_CODE_EXCLUSIVE 4 /* it met a section that is always exclusive */
#define CX_CODES 5

/*
 * A writer's steps of a sequence count. In a transaction the count need not be odd meanwhile, for nobody sees what is half done; and it
 * had better not be written until the end, because every reader that looks at a word that a transaction wrote makes it lose.
 * A writer that began as a lock leaves the count odd, and its end says so.
 */
DECLARE_STATIC_KEY_FALSE(cx_key_seqcount);
#define seqcount_is_late() (static_branch_unlikely(&cx_key_seqcount) && xgettxid())
#define seqcount_end_step(sequence) (static_branch_unlikely(&cx_key_seqcount) && !((sequence) & 1) ? 2 : 1)

static __always_inline void cx_spinning(void)
{
	concord_hint(CONCORD_HINT_LOCK_TEST, 0);
	if (static_branch_unlikely(&cx_key) && xgettxid() != 0)
		xrestart(xmetatm_status(XMETATM_CAUSE_EXPLICIT, CX_CODE_SPINNING));
}

#endif

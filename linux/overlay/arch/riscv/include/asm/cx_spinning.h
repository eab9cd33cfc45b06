/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu_relax() in a transaction: every loop that waits for another processor comes here.
 *
 * Inside a transaction such a loop must end, because the other processor may need a word in the
 * transaction's sets or an interrupt that the transaction holds back. The transaction restarts
 * instead, and after a few restarts its section takes the lock.
 */
#ifndef _ASM_RISCV_CX_SPINNING_H
#define _ASM_RISCV_CX_SPINNING_H

#include <linux/jump_label.h>
#include <asm/concord.h>
#include <asm/xmetatm.h>

/* Set once at boot and never cleared: sections may run as transactions. */
DECLARE_STATIC_KEY_FALSE(cx_key);

/* User codes of xrestart: the reason for which a section asked for its restart. */
#define CX_CODE_NONE 0
#define CX_CODE_SPINNING 1 /* the section was about to wait for another processor */
#define CX_CODE_WAITED 2 /* a nested lock stayed taken for too long */
#define CX_CODE_RAW 3 /* the section took a raw lock that is not safe in a transaction */
#define CX_CODE_EXCLUSIVE 4 /* the section contains one that is always exclusive */
#define CX_CODES 5

/*
 * How a writer advances a sequence count. In a transaction the count need not be odd during the
 * update, because no other processor sees a half-finished update. The transaction writes the count
 * only at the end: every reader of a word that a transaction has written makes the transaction lose.
 * A writer that began with the lock has made the count odd, and its end recognizes that.
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

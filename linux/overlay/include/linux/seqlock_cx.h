/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Readers of seqlocks as transactions. They compare no count at the end and never repeat a reading for
 * that reason.
 *
 * A reader must reach its read_seqretry() whatever it reads, or the transaction would stay open.
 * d_lookup() and others leave the loop as soon as they have found their entry, so only the files in
 * the list below, which were checked for this, are converted. Writers need no conversion: their lock
 * is a cxspinlock, and they still change the count for readers that compare it.
 */
#ifndef __LINUX_SEQLOCK_CX_H
#define __LINUX_SEQLOCK_CX_H

#include <linux/cx_class.h>

#define CX_SEQLOCK_FILES (CX_FILE("kernel/time/timekeeping") || CX_FILE("net/core/neighbour"))

/* Stands for the count in a transaction. A count that was read without a transaction is even. */
#define CX_SEQLOCK_TRANSACTION 1U

DECLARE_STATIC_KEY_FALSE(cx_key_seqlock);
bool cx_seqlock_enter(const seqcount_t *count);
void cx_seqlock_leave(const seqcount_t *count);

static __always_inline unsigned int cx_seqlock_end(const seqcount_t *count)
{
	cx_seqlock_leave(count);
	return 0;
}

#define cx_seqlock_begins(count) \
	(CX_SEQLOCK_FILES && static_branch_unlikely(&cx_key_seqlock) && cx_seqlock_enter(count))
#define cx_seqlock_began(start) (CX_SEQLOCK_FILES && (start) == CX_SEQLOCK_TRANSACTION)

#undef read_seqcount_begin
#define read_seqcount_begin(s) \
	(cx_seqlock_begins(seqprop_const_ptr(s)) ? CX_SEQLOCK_TRANSACTION : raw_read_seqcount_begin(s))

#undef read_seqcount_retry
#define read_seqcount_retry(s, start)							\
	(cx_seqlock_began(start) ? cx_seqlock_end(seqprop_const_ptr(s)) :		\
	 (unsigned int)do_read_seqcount_retry(seqprop_const_ptr(s), start))

#define read_seqbegin(sl) \
	(cx_seqlock_begins(&(sl)->seqcount.seqcount) ? CX_SEQLOCK_TRANSACTION : (read_seqbegin)(sl))
#define read_seqretry(sl, start)							\
	(cx_seqlock_began(start) ? cx_seqlock_end(&(sl)->seqcount.seqcount) : (read_seqretry)(sl, start))

#endif

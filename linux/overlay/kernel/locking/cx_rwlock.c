// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reader/writer locks, and the readers of seqlocks, as transactions.
 *
 * A transaction, reading or writing, subscribes to a lock that no processor holds as a lock: its
 * counter reads 0. So the end of a section can tell from the counter which way the section began, as
 * for a spinlock. A reader that finds other readers holding the lock takes it as a reader as well.
 */
#include <linux/bottom_half.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/sched/task.h>
#include <linux/seqlock.h>

#include "cx.h"

DEFINE_STATIC_KEY_FALSE(cx_key_rwlock);
DEFINE_STATIC_KEY_FALSE(cx_key_tasklist);
DEFINE_STATIC_KEY_FALSE(cx_key_seqcount);
EXPORT_SYMBOL(cx_key_seqcount);
DEFINE_STATIC_KEY_FALSE(cx_key_seqlock);
EXPORT_SYMBOL(cx_key_seqlock);

static __always_inline bool cx_rwlock_is_optimistic(const rwlock_t *lock)
{
	if (static_branch_unlikely(&cx_key_rwlock))
		return true;
	return (static_branch_unlikely(&cx_key_tasklist) && lock == &tasklist_lock) ||
	       (static_branch_unlikely(&cx_key) && unlikely(xgettxid()));
}

static noinline void cx_rwlock_slow(rwlock_t *lock, unsigned long caller, int kind)
{
	cx_not_in_transaction();
	concord_hint(CONCORD_HINT_LOCK_SPIN_BEGIN, lock);
	concord_hint(CONCORD_HINT_LOCK_TEST_AND_SET, lock);
	if (kind == CONCORD_SECTION_READ) {
		queued_read_lock(&lock->raw_lock);
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_READ, lock, caller);
	} else {
		queued_write_lock(&lock->raw_lock);
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_WRITE, lock, caller);
	}
}

/* Takes the lock as a lock, and waits if it is taken. */
static __always_inline void cx_rwlock_take(rwlock_t *lock, int kind)
{
	if (likely(kind == CONCORD_SECTION_READ ? queued_read_trylock(&lock->raw_lock) : queued_write_trylock(&lock->raw_lock)))
		cx_hint(CONCORD_HINT_SECTION_LOCKED + kind, lock);
	else
		cx_rwlock_slow(lock, _RET_IP_, kind);
}

static __always_inline void cx_rwlock_is_transactional(const rwlock_t *lock, unsigned long caller, int kind)
{
	if (kind == CONCORD_SECTION_READ)
		cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_READ, lock, caller);
	else
		cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_WRITE, lock, caller);
}

static __always_inline bool cx_rwlock_try(rwlock_t *lock, unsigned long caller, int kind)
{
	if (unlikely(!(kind == CONCORD_SECTION_READ ? queued_read_trylock(&lock->raw_lock) :
		       queued_write_trylock(&lock->raw_lock))))
		return false;
	if (kind == CONCORD_SECTION_READ)
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_READ, lock, caller);
	else
		cx_hint_for(CONCORD_HINT_SECTION_LOCKED + CONCORD_SECTION_WRITE, lock, caller);
	return true;
}

static __always_inline void cx_rwlock_after_eliding(rwlock_t *lock, unsigned char *site, unsigned long caller, int kind)
{
	unsigned long start = csr_read(CSR_CYCLE);

	cx_rwlock_slow(lock, caller, kind);
	cx_acquired_after_eliding(lock, site, caller, start);
}

static noinline void cx_rwlock_enter_slow(rwlock_t *lock, unsigned char *site, unsigned long status, int kind)
{
	if (cx_elide(lock, site, status, _RET_IP_, kind))
		cx_rwlock_is_transactional(lock, _RET_IP_, kind);
	else
		cx_rwlock_after_eliding(lock, site, _RET_IP_, kind);
}

static noinline void cx_rwlock_queue(rwlock_t *lock, unsigned char *site, int kind, unsigned long start)
{
	cx_note_fight(lock, site, _RET_IP_);
	cx_rwlock_slow(lock, _RET_IP_, kind);
	cx_acquired(lock, site, _RET_IP_, false, start);
}

static noinline void cx_rwlock_took_long(rwlock_t *lock, unsigned char *site, unsigned long start)
{
	cx_acquired(lock, site, _RET_IP_, false, start);
}

static noinline void cx_rwlock_by_asking(rwlock_t *lock, unsigned char *site, int kind)
{
	unsigned long start;
	bool is_counted;

	if (!xgettxid() && cx_ask(lock, site, _RET_IP_, &is_counted) == CX_LOCK) {
		start = csr_read(CSR_CYCLE);
		if (!cx_rwlock_try(lock, _RET_IP_, kind)) {
			cx_note_fight(lock, site, _RET_IP_);
			cx_rwlock_slow(lock, _RET_IP_, kind);
		}
		cx_acquired(lock, site, _RET_IP_, is_counted, start);
	} else if (cx_elide_fresh(lock, site, _RET_IP_, kind)) {
		cx_rwlock_is_transactional(lock, _RET_IP_, kind);
	} else {
		cx_rwlock_after_eliding(lock, site, _RET_IP_, kind);
	}
}

/* The site does not elide, or not without asking. The rare cases are last calls, as in cx.c. */
static __always_inline void cx_rwlock_by_account(rwlock_t *lock, unsigned char *site, int kind)
{
	unsigned long start;

	if (unlikely(READ_ONCE(*site) != CX_LOCK) || unlikely(xgettxid())) {
		cx_rwlock_by_asking(lock, site, kind);
		return;
	}
	start = csr_read(CSR_CYCLE);
	if (unlikely(!(kind == CONCORD_SECTION_READ ? queued_read_trylock(&lock->raw_lock) :
		       queued_write_trylock(&lock->raw_lock)))) {
		cx_rwlock_queue(lock, site, kind, start);
		return;
	}
	cx_hint(CONCORD_HINT_SECTION_LOCKED + kind, lock);
	if (unlikely(csr_read(CSR_CYCLE) - start > CX_LONG_ACQUIRE_CYCLES))
		cx_rwlock_took_long(lock, site, start);
}

static noinline void cx_read_by_account(rwlock_t *lock, unsigned char *site)
{
	cx_rwlock_by_account(lock, site, CONCORD_SECTION_READ);
}

static noinline void cx_write_by_account(rwlock_t *lock, unsigned char *site)
{
	cx_rwlock_by_account(lock, site, CONCORD_SECTION_WRITE);
}

static __always_inline void cx_rwlock_lock(rwlock_t *lock, unsigned char *site, int kind)
{
	unsigned long status;

	if (!cx_rwlock_is_optimistic(lock)) {
		cx_rwlock_take(lock, kind);
		return;
	}
	if (unlikely(READ_ONCE(*site) != CX_ELIDE)) {
		if (kind == CONCORD_SECTION_READ)
			cx_read_by_account(lock, site);
		else
			cx_write_by_account(lock, site);
		return;
	}
	status = xbegin();
	if (likely(!status) && likely(xtest_w(lock, 0)))
		cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + kind, lock);
	else
		cx_rwlock_enter_slow(lock, site, status, kind);
}

static __always_inline int cx_rwlock_trylock(rwlock_t *lock, unsigned char *site, int kind)
{
	unsigned long status;

	if (cx_rwlock_is_optimistic(lock) && (READ_ONCE(*site) == CX_ELIDE || xgettxid())) {
		status = xbegin();
		if (likely(!status) || cx_retry(status, lock, site, _RET_IP_)) {
			if (likely(xtest_w(lock, 0))) {
				cx_rwlock_is_transactional(lock, _RET_IP_, kind);
				return 1;
			}
			xend();
		}
	}
	return cx_rwlock_try(lock, _RET_IP_, kind);
}

static __always_inline void cx_rwlock_unlock(rwlock_t *lock, int kind)
{
	if (cx_is_elided(&lock->raw_lock.cnts)) {
		cx_commit(lock);
		return;
	}
	cx_hint(CONCORD_HINT_SECTION_END, lock);
	if (kind == CONCORD_SECTION_READ)
		queued_read_unlock(&lock->raw_lock);
	else
		queued_write_unlock(&lock->raw_lock);
}

#define CX_FORMS(side, kind)							\
void CX_LOCKFUNC cx_##side##_lock(rwlock_t *lock, unsigned char *site)		\
{										\
	cx_rwlock_lock(lock, site, kind);					\
}										\
EXPORT_SYMBOL(cx_##side##_lock);						\
										\
void CX_LOCKFUNC cx_##side##_lock_bh(rwlock_t *lock, unsigned char *site)	\
{										\
	__local_bh_disable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);			\
	cx_rwlock_lock(lock, site, kind);					\
}										\
EXPORT_SYMBOL(cx_##side##_lock_bh);						\
										\
void CX_LOCKFUNC cx_##side##_lock_irq(rwlock_t *lock, unsigned char *site)	\
{										\
	local_irq_disable();							\
	cx_rwlock_lock(lock, site, kind);					\
}										\
EXPORT_SYMBOL(cx_##side##_lock_irq);						\
										\
unsigned long CX_LOCKFUNC cx_##side##_lock_irqsave(rwlock_t *lock, unsigned char *site)	\
{										\
	unsigned long flags;							\
										\
	local_irq_save(flags);							\
	cx_rwlock_lock(lock, site, kind);					\
	return flags;								\
}										\
EXPORT_SYMBOL(cx_##side##_lock_irqsave);					\
										\
int CX_LOCKFUNC cx_##side##_trylock(rwlock_t *lock, unsigned char *site)		\
{										\
	return cx_rwlock_trylock(lock, site, kind);				\
}										\
EXPORT_SYMBOL(cx_##side##_trylock);						\
										\
void CX_LOCKFUNC cx_##side##_unlock(rwlock_t *lock)				\
{										\
	cx_rwlock_unlock(lock, kind);						\
}										\
EXPORT_SYMBOL(cx_##side##_unlock);						\
										\
void CX_LOCKFUNC cx_##side##_unlock_bh(rwlock_t *lock)				\
{										\
	cx_rwlock_unlock(lock, kind);						\
	__local_bh_enable_ip(_RET_IP_, SOFTIRQ_LOCK_OFFSET);			\
}										\
EXPORT_SYMBOL(cx_##side##_unlock_bh);						\
										\
void CX_LOCKFUNC cx_##side##_unlock_irq(rwlock_t *lock)				\
{										\
	cx_rwlock_unlock(lock, kind);						\
	local_irq_enable();							\
}										\
EXPORT_SYMBOL(cx_##side##_unlock_irq);						\
										\
void CX_LOCKFUNC cx_##side##_unlock_irqrestore(rwlock_t *lock, unsigned long flags)	\
{										\
	cx_rwlock_unlock(lock, kind);						\
	local_irq_restore(flags);						\
}										\
EXPORT_SYMBOL(cx_##side##_unlock_irqrestore);
CX_FORMS(read, CONCORD_SECTION_READ)
CX_FORMS(write, CONCORD_SECTION_WRITE)

static noinline bool cx_seqlock_retry(const seqcount_t *count, unsigned long status, unsigned long caller)
{
	if (!cx_retry(status, count, CX_SITE(), caller))
		return false;
	if (READ_ONCE(count->sequence) & 1) {
		xend();
		return false;
	}
	cx_hint_for(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SEQLOCK, count, caller);
	return true;
}

/*
 * Begins a reader of a seqlock as a transaction. Returns false if the reader has to compare counts
 * instead, because a writer holds the lock or the retry budget is used up.
 */
bool cx_seqlock_enter(const seqcount_t *count)
{
	unsigned long status = xbegin();

	if (unlikely(status))
		return cx_seqlock_retry(count, status, _RET_IP_);
	if (unlikely(READ_ONCE(count->sequence) & 1)) {
		xend();
		return false;
	}
	cx_hint(CONCORD_HINT_SECTION_TRANSACTIONAL + CONCORD_SECTION_SEQLOCK, count);
	return true;
}
EXPORT_SYMBOL(cx_seqlock_enter);

void cx_seqlock_leave(const seqcount_t *count)
{
	cx_commit(count);
}
EXPORT_SYMBOL(cx_seqlock_leave);

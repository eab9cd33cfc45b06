/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * spinlock_t and rwlock_t as cooperative transactional spinlocks, and the raw locks that are safe
 * inside a transaction.
 *
 * This header replaces the wrappers in <linux/spinlock.h>, as <linux/spinlock_rt.h> does for PREEMPT_RT.
 */
#ifndef __LINUX_SPINLOCK_CX_H
#define __LINUX_SPINLOCK_CX_H

#ifndef __LINUX_INSIDE_SPINLOCK_H
#error Do not include directly. Use spinlock.h
#endif

#include <linux/cx_class.h>

/*
 * The object of one expansion of a lock macro: the mode in which its sections run (enum cx_site_mode).
 * It is a byte that is hardly ever written, so that the objects of the sites in use fill few cache lines.
 */
#define CX_SITE() ({ static unsigned char cx_site __section(".data..read_mostly"); &cx_site; })

static __always_inline raw_spinlock_t *spinlock_check(spinlock_t *lock)
{
	return &lock->rlock;
}

#define spin_lock_init(_lock)				\
do {							\
	spinlock_check(_lock);				\
	*(_lock) = __SPIN_LOCK_UNLOCKED(_lock);		\
} while (0)

/* Each class has its own functions, so that a class that is not converted costs no more than a lock. */
#define CX_DECLARE(class)							\
	void cx_spin_lock_##class(spinlock_t *lock, unsigned char *site);	\
	void cx_spin_lock_bh_##class(spinlock_t *lock, unsigned char *site);	\
	void cx_spin_lock_irq_##class(spinlock_t *lock, unsigned char *site);	\
	unsigned long cx_spin_lock_irqsave_##class(spinlock_t *lock, unsigned char *site);\
	int cx_spin_trylock_##class(spinlock_t *lock, unsigned char *site);	\
	int cx_spin_trylock_bh_##class(spinlock_t *lock, unsigned char *site);
CX_CLASSES(CX_DECLARE)
#undef CX_DECLARE

void cx_spin_unlock(spinlock_t *lock);
void cx_spin_unlock_bh(spinlock_t *lock);
void cx_spin_unlock_irq(spinlock_t *lock);
void cx_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool cx_spin_is_locked(spinlock_t *lock);
bool cx_spin_is_held(spinlock_t *lock);

/* The compiler reduces this chain to one call. */
#define CX_CALL(class, form, lock, site) CX_CLASS == CX_CLASS_##class ? form##_##class(lock, site) :
#define CX_CHOOSE(form, lock, site) CX_CALL(slab, form, lock, site) CX_CALL(dcache, form, lock, site)		\
	CX_CALL(address_space, form, lock, site) CX_CALL(page_allocator, form, lock, site)			\
	CX_CALL(zones, form, lock, site) CX_CALL(vmalloc, form, lock, site) CX_CALL(task_lists, form, lock, site)\
	CX_CALL(timekeeping, form, lock, site) CX_CALL(wait_queue, form, lock, site) CX_CALL(mm, form, lock, site)\
	CX_CALL(fs, form, lock, site) CX_CALL(net, form, lock, site) CX_CALL(block, form, lock, site)		\
	form##_other(lock, site)

#define CX_INLINE(type, name)									\
static __always_inline type __cx_##name(spinlock_t *lock, unsigned char *site)			\
{												\
	return CX_CHOOSE(cx_##name, lock, site);						\
}
CX_INLINE(void, spin_lock)
CX_INLINE(void, spin_lock_bh)
CX_INLINE(void, spin_lock_irq)
CX_INLINE(unsigned long, spin_lock_irqsave)
CX_INLINE(int, spin_trylock)
CX_INLINE(int, spin_trylock_bh)
#undef CX_INLINE

#define spin_lock(lock) __cx_spin_lock(lock, CX_SITE())
#define spin_lock_bh(lock) __cx_spin_lock_bh(lock, CX_SITE())
#define spin_lock_irq(lock) __cx_spin_lock_irq(lock, CX_SITE())
#define spin_trylock(lock) __cx_spin_trylock(lock, CX_SITE())
#define spin_trylock_bh(lock) __cx_spin_trylock_bh(lock, CX_SITE())

#define spin_lock_irqsave(lock, flags)			\
do {							\
	typecheck(unsigned long, flags);		\
	flags = __cx_spin_lock_irqsave(lock, CX_SITE());		\
} while (0)

/* Only lockdep uses the subclass. */
#define spin_lock_nested(lock, subclass) spin_lock(((void)(subclass), (lock)))
#define spin_lock_nest_lock(lock, nest_lock) spin_lock(((void)(nest_lock), (lock)))
#define spin_lock_irqsave_nested(lock, flags, subclass) spin_lock_irqsave(((void)(subclass), (lock)), flags)

#define spin_trylock_irq(lock)				\
({							\
	local_irq_disable();				\
	spin_trylock(lock) ?				\
	1 : ({ local_irq_enable(); 0; });		\
})

#define spin_trylock_irqsave(lock, flags)		\
({							\
	local_irq_save(flags);				\
	spin_trylock(lock) ?				\
	1 : ({ local_irq_restore(flags); 0; });		\
})

static __always_inline void spin_unlock(spinlock_t *lock)
{
	cx_spin_unlock(lock);
}

static __always_inline void spin_unlock_bh(spinlock_t *lock)
{
	cx_spin_unlock_bh(lock);
}

static __always_inline void spin_unlock_irq(spinlock_t *lock)
{
	cx_spin_unlock_irq(lock);
}

static __always_inline void spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	cx_spin_unlock_irqrestore(lock, flags);
}

/* For locks of page-table entries that lie outside a page's descriptor. */
void cx_spin_lock_page_table(spinlock_t *lock, unsigned char *site);
#define spin_lock_page_table(lock) cx_spin_lock_page_table(lock, CX_SITE())

static __always_inline int spin_is_locked(spinlock_t *lock)
{
	return cx_spin_is_locked(lock);
}

static __always_inline int spin_is_contended(spinlock_t *lock)
{
	return raw_spin_is_contended(&lock->rlock);
}

#define assert_spin_locked(lock) BUG_ON(!cx_spin_is_held(lock))

/* Reader/writer locks. */
#define CX_DECLARE(side)							\
	void cx_##side##_lock(rwlock_t *lock, unsigned char *site);		\
	void cx_##side##_lock_bh(rwlock_t *lock, unsigned char *site);		\
	void cx_##side##_lock_irq(rwlock_t *lock, unsigned char *site);		\
	unsigned long cx_##side##_lock_irqsave(rwlock_t *lock, unsigned char *site);\
	int cx_##side##_trylock(rwlock_t *lock, unsigned char *site);		\
	void cx_##side##_unlock(rwlock_t *lock);				\
	void cx_##side##_unlock_bh(rwlock_t *lock);				\
	void cx_##side##_unlock_irq(rwlock_t *lock);				\
	void cx_##side##_unlock_irqrestore(rwlock_t *lock, unsigned long flags);
CX_DECLARE(read)
CX_DECLARE(write)
#undef CX_DECLARE

/*
 * Raw locks of the classes that may be safe in a transaction. Every other raw lock restarts the
 * transaction as an exclusive section (<asm/spinlock.h>).
 */
#define CX_DECLARE(class)							\
	void cx_raw_spin_lock_##class(raw_spinlock_t *lock, unsigned char *site);	\
	void cx_raw_spin_lock_irq_##class(raw_spinlock_t *lock, unsigned char *site);	\
	unsigned long cx_raw_spin_lock_irqsave_##class(raw_spinlock_t *lock, unsigned char *site);\
	int cx_raw_spin_trylock_##class(raw_spinlock_t *lock, unsigned char *site);	\
	void cx_raw_spin_unlock_##class(raw_spinlock_t *lock);				\
	void cx_raw_spin_unlock_irq_##class(raw_spinlock_t *lock);			\
	void cx_raw_spin_unlock_irqrestore_##class(raw_spinlock_t *lock, unsigned long flags);
CX_RAW_CLASSES(CX_DECLARE)
#undef CX_DECLARE

#define CX_RAW_IS_SAFE (CX_RAW_IS_COUNTER || CX_RAW_IS_SHMEM || CX_RAW_IS_WAKE)
#define CX_RAW_CHOOSE(form, ...) (CX_RAW_IS_COUNTER ? cx_raw_##form##_counter(__VA_ARGS__) :	\
	CX_RAW_IS_SHMEM ? cx_raw_##form##_shmem(__VA_ARGS__) : cx_raw_##form##_wake(__VA_ARGS__))
#define CX_RAW(form, lock) (CX_RAW_IS_SAFE ? CX_RAW_CHOOSE(form, lock, CX_SITE()) : (_raw_##form)(lock))

/* kernel/locking/spinlock.c defines functions of these names. */
#ifndef CX_IMPLEMENTATION
#undef _raw_read_lock
#undef _raw_read_lock_bh
#undef _raw_read_lock_irq
#undef _raw_read_lock_irqsave
#undef _raw_read_trylock
#undef _raw_read_unlock
#undef _raw_read_unlock_bh
#undef _raw_read_unlock_irq
#undef _raw_read_unlock_irqrestore
#undef _raw_write_lock
#undef _raw_write_lock_nested
#undef _raw_write_lock_bh
#undef _raw_write_lock_irq
#undef _raw_write_lock_irqsave
#undef _raw_write_trylock
#undef _raw_write_unlock
#undef _raw_write_unlock_bh
#undef _raw_write_unlock_irq
#undef _raw_write_unlock_irqrestore
#undef _raw_spin_unlock
#undef _raw_spin_unlock_irq
#undef _raw_spin_unlock_irqrestore

#define _raw_read_lock(lock) cx_read_lock(lock, CX_SITE())
#define _raw_read_lock_bh(lock) cx_read_lock_bh(lock, CX_SITE())
#define _raw_read_lock_irq(lock) cx_read_lock_irq(lock, CX_SITE())
#define _raw_read_lock_irqsave(lock) cx_read_lock_irqsave(lock, CX_SITE())
#define _raw_read_trylock(lock) cx_read_trylock(lock, CX_SITE())
#define _raw_read_unlock(lock) cx_read_unlock(lock)
#define _raw_read_unlock_bh(lock) cx_read_unlock_bh(lock)
#define _raw_read_unlock_irq(lock) cx_read_unlock_irq(lock)
#define _raw_read_unlock_irqrestore(lock, flags) cx_read_unlock_irqrestore(lock, flags)
#define _raw_write_lock(lock) cx_write_lock(lock, CX_SITE())
#define _raw_write_lock_nested(lock, subclass) cx_write_lock(lock, CX_SITE())
#define _raw_write_lock_bh(lock) cx_write_lock_bh(lock, CX_SITE())
#define _raw_write_lock_irq(lock) cx_write_lock_irq(lock, CX_SITE())
#define _raw_write_lock_irqsave(lock) cx_write_lock_irqsave(lock, CX_SITE())
#define _raw_write_trylock(lock) cx_write_trylock(lock, CX_SITE())
#define _raw_write_unlock(lock) cx_write_unlock(lock)
#define _raw_write_unlock_bh(lock) cx_write_unlock_bh(lock)
#define _raw_write_unlock_irq(lock) cx_write_unlock_irq(lock)
#define _raw_write_unlock_irqrestore(lock, flags) cx_write_unlock_irqrestore(lock, flags)


#define _raw_spin_lock(lock) CX_RAW(spin_lock, lock)
#define _raw_spin_lock_irq(lock) CX_RAW(spin_lock_irq, lock)
#define _raw_spin_lock_irqsave(lock) CX_RAW(spin_lock_irqsave, lock)
#define _raw_spin_trylock(lock) CX_RAW(spin_trylock, lock)
#define _raw_spin_unlock(lock)						\
	(CX_RAW_IS_SAFE ? CX_RAW_CHOOSE(spin_unlock, lock) : __raw_spin_unlock(lock))
#define _raw_spin_unlock_irq(lock)					\
	(CX_RAW_IS_SAFE ? CX_RAW_CHOOSE(spin_unlock_irq, lock) : __raw_spin_unlock_irq(lock))
#define _raw_spin_unlock_irqrestore(lock, flags)			\
	(CX_RAW_IS_SAFE ? CX_RAW_CHOOSE(spin_unlock_irqrestore, lock, flags) : (_raw_spin_unlock_irqrestore)(lock, flags))
#endif

#endif

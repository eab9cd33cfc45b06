/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every lock calls these functions when it is taken and when it is released. They count (tm/statistics.h), and in the
 * checking build (-DTM_CHECKING=1 for the library and all its callers) they record the holder. In that build a release
 * by another processor than the holder, or of a free lock, ends the program through tm_port_fatal. The report names the
 * kind and address of the lock, both processors, and the address of the releasing code.
 */
#ifndef TM_LOCK_HOLDER_H
#define TM_LOCK_HOLDER_H

#include <tm/port.h>
#include <tm/statistics.h>

TM_DECLARATIONS_BEGIN

#ifndef TM_CHECKING
#define TM_CHECKING 0
#endif

#if TM_CHECKING
/*
 * The holder's processor number plus one, or 0. Only the holder writes it, before it releases; other processors may
 * read an outdated value.
 */
#define TM_LOCK_HOLDER uint32_t holder;

/* tm_port_misuse, which need not return. `kind` is what the report calls the lock, and `holder` is as above. */
void tm_lock_report(const char *kind, const void *lock, uint32_t holder) __attribute__((cold));

TM_INLINE void tm_lock_holder_set(uint32_t *holder)
{
    __atomic_store_n(holder, tm_port_processor() + 1, __ATOMIC_RELAXED);
}

TM_INLINE void tm_lock_holder_clear(uint32_t *holder, const char *kind, const void *lock)
{
    uint32_t found = __atomic_load_n(holder, __ATOMIC_RELAXED);

    if (found != tm_port_processor() + 1)
        tm_lock_report(kind, lock, found);
    __atomic_store_n(holder, 0, __ATOMIC_RELAXED);
}

#define tm_lock_taken(lock) (tm_lock_holder_set(&(lock)->holder), tm_statistics_add(TM_STATISTIC_ACQUISITIONS))
#define tm_lock_releases(lock, kind) tm_lock_holder_clear(&(lock)->holder, kind, lock)
#define tm_lock_releases_shared(lock, kind, held) ((held) ? (void)0 : tm_lock_report(kind, lock, 0))
#else
#define TM_LOCK_HOLDER
#define tm_lock_taken(lock) tm_statistics_add(TM_STATISTIC_ACQUISITIONS)
#define tm_lock_releases(lock, kind) ((void)0)
#define tm_lock_releases_shared(lock, kind, held) ((void)0)
#endif

TM_DECLARATIONS_END

#endif

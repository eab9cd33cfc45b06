/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An adapter describes a lock to validate.c and benchmark.c. They are compiled once for each lock, with its adapter
 * included first (-include adapters/NAME.h), so that its fast path is inlined. An adapter defines
 *
 *     LOCK_NAME            a word
 *     LOCK_TYPE            the lock's type
 *     LOCK_INITIALIZER     the value of a free lock
 *     LOCK_ACQUIRE(lock, context), LOCK_RELEASE(lock, context)
 *
 * and may define
 *
 *     LOCK_WORD            its name on command lines and in results, where that is no word of C
 *     LOCK_CONTEXT         a type of which each acquisition has one object until its release, like MCS's node
 *     LOCK_TRY_ACQUIRE(lock, context)
 *     LOCK_READ_ACQUIRE, LOCK_READ_TRY_ACQUIRE, LOCK_READ_RELEASE     the same; then the others are for writing
 *     LOCK_WAITERS(lock)   a number that changes whenever a thread begins to wait, and only then while the lock is
 *                          held: for a queue, the tail
 *     LOCK_IS_IDLE(lock)   whether no thread holds it and none waits
 *     LOCK_FAIR            1: first come, first served
 *     LOCK_TRANSACTIONAL   1: a section may be a transaction, which does not see what other threads do meanwhile
 *     LOCK_NODES           the number of simultaneous waits for which a processor has nodes; a further wait has none
 *     LOCK_KIND            a word: the group of locks that it is compared with
 *     LOCK_COMPARATOR      1: it belongs to another library, and is only measured
 *     LOCK_SETUP()         called once, before all others
 */
#ifndef TM_CHECK_LOCKS_ADAPTER_H
#define TM_CHECK_LOCKS_ADAPTER_H

#include <tm/port.h>

#ifndef LOCK_WORD
#define LOCK_WORD LOCK_NAME
#endif
#ifndef LOCK_CONTEXT
#define LOCK_CONTEXT char
#endif
#ifndef LOCK_IS_IDLE
#define LOCK_IS_IDLE(lock) true
#endif
#ifndef LOCK_FAIR
#define LOCK_FAIR 0
#endif
#ifndef LOCK_TRANSACTIONAL
#define LOCK_TRANSACTIONAL 0
#endif
#ifndef LOCK_NODES
#define LOCK_NODES 0
#endif
#ifndef LOCK_KIND
#define LOCK_KIND spin
#endif
#ifndef LOCK_COMPARATOR
#define LOCK_COMPARATOR 0
#endif
#ifndef LOCK_SETUP
#define LOCK_SETUP() ((void)0)
#endif

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOINED_OF(a, b) a##b
#define JOINED(a, b) JOINED_OF(a, b)

#endif

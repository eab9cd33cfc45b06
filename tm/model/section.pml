/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The promises of every lock. A model of a lock defines WORDS, the words of memory after DATA; FIFO if the lock
 * promises it; and `is_free`, which holds when no thread holds the lock or waits for it. It includes this file, defines
 * acquire(self) and release(self) (and SHARED, read_acquire(self) and read_release(self) for a lock that readers
 * share), and includes threads.pml, where threads use them.
 *
 * The model checks:
 *   - mutual exclusion: a thread that enters finds no other (readers: no writer), and each section sees the stores of
 *     the one before: no addition is lost, and readers read the same twice;
 *   - no thread is left in the queue: there is no state in which no thread can go on (an invalid end state), and every
 *     thread ends (the claim `all_end`);
 *   - with FIFO, first come, first served: sections begin in the order of `arrive`.
 */

#ifndef THREADS
#define THREADS 2
#endif
/* Sections of each thread. */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef STORES
#define STORES 0
#endif

#include "memory.pml"

#define DATA 0

byte inside, reading, additions, ended;
#ifdef FIFO
chan line = [THREADS] of { byte };
#define arrive(self) line!self
#define be_served(self) assert(line?[eval(self)]); line?eval(self)
#else
#define arrive(self) skip
#define be_served(self) skip
#endif

inline enter(self) {
	assert(inside == 0 && reading == 0);
	inside++;
	be_served(self)
}

inline leave(self) {
	assert(inside == 1);
	inside--
}

/* The work of a section: adds one, in two steps. */
inline add(self, value) {
	value = load(self, DATA);
	atomic { can_store(self) -> store(self, DATA, value + 1); value = 0; additions++ }
}

inline read_enter() {
	assert(inside == 0);
	reading++
}

inline read_leave() {
	assert(inside == 0);
	reading--
}

inline read(self, value) {
	value = load(self, DATA);
	atomic { assert(load(self, DATA) == value); value = 0 }
}

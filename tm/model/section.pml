/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What every lock promises. A model of a lock defines WORDS, the words of memory after DATA; FIFO where the lock promises it; and `is_free`,
 * which holds of a lock that nobody holds or waits for. It includes this, says what acquire(self) and release(self) do (and where the lock
 * can be shared, SHARED, read_acquire(self) and read_release(self)), and includes threads.pml, where threads use them.
 *
 * What is checked:
 *   - mutual exclusion: who enters finds nobody there (readers: no writer), and what the section before stored is seen by the next: no
 *     addition is lost, and readers read the same twice;
 *   - nobody is left in the queue: no state in which nobody can go on (an invalid end state), and everybody ends (the claim `all_end`);
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

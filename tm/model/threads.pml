/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Threads that take and leave the lock of a model (section.pml), each a few times. */

proctype thread(byte self) {
	byte value, rounds;

	do
	:: rounds < ROUNDS ->
		acquire(self);
		enter(self);
		add(self, value);
		leave(self);
		release(self);
		rounds++
#ifdef SHARED
	:: rounds < ROUNDS ->
		read_acquire(self);
		read_enter();
		read(self, value);
		read_leave();
		read_release(self);
		rounds++
#endif
	:: else -> break
	od;
	ended++
}

init {
	byte one;

	atomic {
		do
		:: one < THREADS ->
			run thread(one);
#if STORES
			run stores_leave(one);
#endif
			one++
		:: else -> break
		od
	}
	ended == THREADS;
	one = 0;
	do
	:: one < THREADS -> fenced(one); one++
	:: else -> break
	od;
	assert(memory[DATA] == additions);
	assert(is_free)
}

ltl all_end { <> (ended == THREADS) }

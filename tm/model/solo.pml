/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Solo transactions (tm/stm/serial.c: tm_solo_begin, tm_solo_end, tm_context_use): the only context there is accesses memory directly, and
 * pays for no fence. Who registers another pays for both (tm_port_heavy_fence), and waits for the transaction that is under way.
 *
 * Thread 0 is registered and runs transactions; the others register and run one. Any other transaction than a solo one is one step here.
 *
 * Right: safety STORES=3 THREADS=2
 * Right: safety STORES=3 THREADS=3
 * Right: progress STORES=3 THREADS=3
 * Wrong: safety STORES=3 THREADS=2 LIGHT_FENCE: assertion violated
 * Wrong: safety STORES=3 THREADS=2 COUNT_LOOKED_AT_ONCE: assertion violated
 * Wrong: safety STORES=3 THREADS=2 NO_WAIT_FOR_SOLO: assertion violated
 * Wrong: safety STORES=3 THREADS=3 SECOND_WAITS_ALONE: assertion violated
 * Wrong: safety STORES=3 THREADS=2 END_WITHOUT_RELEASE: assertion violated
 */

#define ROUNDS 2
#define DATA 0
#define COUNT 1
#define SOLO_ACTIVE 2
#define WORDS 3

#include "memory.pml"

/* Of thread 0. */
bool is_solo;
byte ended;

#ifdef END_WITHOUT_RELEASE
#define END_ORDER 0
#else
#define END_ORDER ORDERED
#endif

inline solo_end(self) {
	atomic { can_store(self) -> store_bits(self, SOLO_ACTIVE, 255, 0, END_ORDER) }
}

/* With records: as one step, while nobody is solo. */
inline add_atomically(self) {
	atomic { fenced(self) -> assert(!is_solo); memory[DATA]++ }
}

proctype runs_solo(byte self) {
	byte value, rounds;

	do
	:: rounds < ROUNDS ->
		/* tm_solo_begin */
		if
		:: load(self, COUNT) != 1 -> goto ordinary
		:: load(self, COUNT) == 1
		fi;
		atomic { can_store(self) -> store(self, SOLO_ACTIVE, 1) }
#ifndef COUNT_LOOKED_AT_ONCE
		if
		:: load(self, COUNT) != 1 -> solo_end(self); goto ordinary
		:: load(self, COUNT) == 1
		fi;
#endif
		is_solo = true;
		value = load(self, DATA);
		atomic { can_store(self) -> store(self, DATA, value + 1); value = 0 }
		is_solo = false;
		solo_end(self);
		goto ran;
ordinary:
		add_atomically(self);
ran:
		rounds++
	:: else -> break
	od;
	ended++
}

proctype registers(byte self) {
	byte count;

	/* tm_context_use */
	atomic { fenced(self) -> memory[COUNT]++; count = memory[COUNT] }
#ifdef SECOND_WAITS_ALONE
	if
	:: count != 2 -> goto registered
	:: else
	fi;
#endif
	/* tm_port_heavy_fence: of all processors, one after the other */
#ifndef LIGHT_FENCE
	fenced(0);
#endif
#ifndef NO_WAIT_FOR_SOLO
	load(self, SOLO_ACTIVE) == 0;
#endif
#ifdef SECOND_WAITS_ALONE
registered:
#endif
	add_atomically(self);
	ended++
}

init {
	byte one;

	atomic {
		memory[COUNT] = 1;
		run runs_solo(0);
		run stores_leave(0);
		one = 1;
		do
		:: one < THREADS -> run registers(one); run stores_leave(one); one++
		:: else -> break
		od
	}
	ended == THREADS;
	fenced(0);
	assert(memory[DATA] == ROUNDS + THREADS - 1)
}

ltl all_end { <> (ended == THREADS) }

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fair queued lock: tm/include/tm/lock/queued.h and tm/lock/queued.c.
 *
 * Right: safety THREADS=3
 * Right: progress THREADS=3
 * Right: progress STORES=3
 * Right: safety THREADS=3 STORES=3
 * Wrong: safety THREADS=3 NO_SECOND_LOOK: assertion violated (q_len(line)
 * Wrong: safety THREADS=3 PENDING_LEFT: invalid end state
 * Wrong: safety THREADS=3 PENDING_IGNORED: invalid end state
 * Wrong: safety THREADS=3 LAST_WITHOUT_COMPARING: invalid end state
 * Wrong: progress THREADS=3 LAST_WITHOUT_COMPARING: acceptance cycle
 * Wrong: safety STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated (memory[0]==
 * Wrong: safety THREADS=3 STORES=3 EXCHANGE_WITHOUT_RELEASE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 HANDOVER_WITHOUT_RELEASE: invalid end state
 */

/* After DATA: the lock's word, and the nodes. */
#define WORD 1
#define NEXT(self) (2 + 2 * (self))
#define WAITING(self) (3 + 2 * (self))
#define WORDS (2 + 2 * THREADS)
#define FIFO

/* In the word. */
#define LOCKED 1
#define PENDING 2
#define TAIL(self) (4 * ((self) + 1))
#define TAIL_MASK 252

#include "section.pml"

inline acquire(self) {
	byte seen, tail;

	/* tm_queued_lock_acquire */
	atomic {
		if
		:: memory[WORD] == 0 && settled(self, WORD) -> memory[WORD] = LOCKED; arrive(self); goto acquired
		:: load(self, WORD) != 0 -> seen = load(self, WORD)
		fi
	}
	/* A hand-over from the pending processor: a bounded wait. */
	if
	:: seen == PENDING -> seen = load(self, WORD)
	:: else
	fi;
	if
	:: (seen & ~LOCKED) != 0 -> goto queue
	:: else
	fi;
	atomic {
		settled(self, WORD) ->
		seen = memory[WORD];
		memory[WORD] = seen | PENDING;
		if
		:: (seen & ~LOCKED) == 0 -> arrive(self)
		:: else
		fi
	}
	if
#ifndef NO_SECOND_LOOK
	:: (seen & ~LOCKED) != 0 ->
#ifndef PENDING_LEFT
		if
		:: (seen & PENDING) == 0 -> atomic { can_store(self) -> store_part(self, WORD, PENDING, 0) }
		:: else
		fi;
#endif
		goto queue
#endif
	:: else
	fi;
	(load(self, WORD) & LOCKED) == 0;
	atomic { can_store(self) -> store_part(self, WORD, LOCKED | PENDING, LOCKED); goto acquired }
queue:
	atomic { can_store(self) -> store(self, NEXT(self), 0); seen = 0 }
	atomic { can_store(self) -> store(self, WAITING(self), 1) }
	atomic {
		if
		:: memory[WORD] == 0 && settled(self, WORD) -> memory[WORD] = LOCKED; arrive(self); goto acquired
		:: load(self, WORD) != 0
		fi
	}
	atomic {
#ifdef EXCHANGE_WITHOUT_RELEASE
		settled(self, WORD) ->
#else
		fenced(self) ->
#endif
		tail = memory[WORD] & TAIL_MASK;
		memory[WORD] = (memory[WORD] & ~TAIL_MASK) | TAIL(self);
		arrive(self)
	}
	if
	:: tail != 0 ->
		atomic { can_store(self) -> store(self, NEXT(tail / 4 - 1), self + 1); tail = 0 }
		load(self, WAITING(self)) == 0
	:: else
	fi;
#ifdef PENDING_IGNORED
	atomic { (load(self, WORD) & LOCKED) == 0 -> seen = load(self, WORD) & TAIL_MASK }
#else
	atomic { (load(self, WORD) & (LOCKED | PENDING)) == 0 -> seen = load(self, WORD) }
#endif
	if
	:: seen == TAIL(self) ->
		atomic {
			if
#ifdef LAST_WITHOUT_COMPARING
			:: settled(self, WORD) -> memory[WORD] = LOCKED; seen = 0; goto acquired
#endif
			:: memory[WORD] == seen && settled(self, WORD) -> memory[WORD] = LOCKED; seen = 0; goto acquired
			:: load(self, WORD) != seen
			fi
		}
	:: else
	fi;
	atomic { can_store(self) -> store_part(self, WORD, LOCKED, LOCKED); seen = 0 }
	atomic { load(self, NEXT(self)) != 0 -> tail = load(self, NEXT(self)) }
	atomic {
		can_store(self) ->
#ifdef HANDOVER_WITHOUT_RELEASE
		store(self, WAITING(tail - 1), 0);
#else
		store_release(self, WAITING(tail - 1), 0);
#endif
		tail = 0
	}
acquired:
}

inline release(self) {
	/* tm_queued_lock_release */
#ifdef RELEASE_WITHOUT_RELEASE
	atomic { can_store(self) -> store_part(self, WORD, LOCKED, 0) }
#else
	atomic { can_store(self) -> store_part_release(self, WORD, LOCKED, 0) }
#endif
}

#include "threads.pml"

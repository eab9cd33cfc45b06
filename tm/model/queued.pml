/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fair queued lock (tm/include/tm/lock/queued.h, tm/lock/queued.c, tm/lock/node.h). Labels and comments are the functions' names
 * there. A thread has one node; with NODELESS the last thread has none, as after four levels of interrupts.
 *
 * The pending bit promises an order once it is set where nobody waited, and the queue once the tail is exchanged.
 *
 * Right: safety THREADS=3 STORES=3
 * Right: safety THREADS=3 STORES=3 NODELESS ROUNDS=1
 * Right: safety THREADS=3 NODELESS
 * Right: progress THREADS=3
 * Right: progress STORES=3
 * Wrong: safety THREADS=3 NO_SECOND_LOOK: assertion violated (q_len(line)
 * Wrong: safety THREADS=3 PENDING_LEFT: invalid end state
 * Wrong: safety THREADS=3 PENDING_IGNORED: assertion violated ((inside==0)
 * Wrong: safety THREADS=3 PENDING_IN_TWO_STORES: assertion violated
 * Wrong: safety THREADS=3 LAST_WITHOUT_COMPARING: invalid end state
 * Wrong: progress THREADS=3 LAST_WITHOUT_COMPARING: acceptance cycle
 * Wrong: safety THREADS=3 NODELESS NEXT_WHEN_CAS_FAILS: invalid end state
 * Wrong: safety STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated (memory[0]==
 * Wrong: safety THREADS=3 STORES=3 EXCHANGE_WITHOUT_RELEASE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 HEAD_WITHOUT_RELEASE: assertion violated ((inside==0)
 */

/* After DATA: the lock's word, and the nodes. */
#define WORD 1
#define NEXT(self) (2 + 2 * (self))
#define HEAD(self) (3 + 2 * (self))
#define WORDS (2 + 2 * THREADS)
#define FIFO
#define is_free (memory[WORD] == 0)

/* In the word. */
#define LOCKED 1
#define PENDING 2
#define TAIL(self) (4 * ((self) + 1))
#define TAIL_MASK 252

#ifdef NODELESS
#define has_node(self) ((self) != THREADS - 1)
#else
#define has_node(self) true
#endif

#include "section.pml"

#ifdef EXCHANGE_WITHOUT_RELEASE
#define before_exchange(self) settled(self, WORD)
#else
#define before_exchange(self) fenced(self)
#endif
#ifdef HEAD_WITHOUT_RELEASE
#define HEAD_ORDER 0
#else
#define HEAD_ORDER ORDERED
#endif
#ifdef RELEASE_WITHOUT_RELEASE
#define RELEASE_ORDER 0
#else
#define RELEASE_ORDER ORDERED
#endif
#ifdef PENDING_IGNORED
#define WAITED_FOR LOCKED
#else
#define WAITED_FOR (LOCKED | PENDING)
#endif

inline acquire(self) {
	byte word, other;

	/* tm_queued_lock_acquire: tm_queue_word_take */
	atomic {
		if
		:: memory[WORD] == 0 && settled(self, WORD) -> memory[WORD] = LOCKED; arrive(self); goto acquired
		:: load(self, WORD) != 0
		fi
	}
	/* tm_queued_lock_wait: wait_for_hand_over, which may look again or not */
	word = load(self, WORD);
	if
	:: word == PENDING -> word = load(self, WORD)
	:: true
	fi;
	if
	:: (word & ~LOCKED) != 0 -> goto wait_in_queue
	:: else
	fi;
	/* wait_pending */
	atomic {
		settled(self, WORD) ->
		word = memory[WORD];
		memory[WORD] = word | PENDING;
		if
		:: (word & ~LOCKED) == 0 -> arrive(self)
		:: else
		fi
	}
	if
#ifndef NO_SECOND_LOOK
	:: (word & ~LOCKED) != 0 ->
#ifndef PENDING_LEFT
		if
		:: (word & PENDING) == 0 -> atomic { can_store(self) -> store_part(self, WORD, PENDING, 0) }
		:: else
		fi;
#endif
		goto wait_in_queue
#endif
	:: else
	fi;
	word = 0;
	(load(self, WORD) & LOCKED) == 0;
#ifdef PENDING_IN_TWO_STORES
	atomic { can_store(self) -> store_part(self, WORD, PENDING, 0) }
	atomic { can_store(self) -> store_part(self, WORD, LOCKED, LOCKED); goto acquired }
#else
	atomic { can_store(self) -> store_part(self, WORD, LOCKED | PENDING, LOCKED); goto acquired }
#endif
wait_in_queue:
	word = 0;
	if
	:: !has_node(self) ->
		atomic { memory[WORD] == 0 && settled(self, WORD) -> memory[WORD] = LOCKED; arrive(self); goto acquired }
	:: else
	fi;
	/* tm_lock_node_enter */
	atomic { can_store(self) -> store(self, NEXT(self), 0) }
	atomic { can_store(self) -> store(self, HEAD(self), 0) }
	/* tm_lock_tail_exchange */
	atomic {
		before_exchange(self) ->
		other = memory[WORD] & TAIL_MASK;
		memory[WORD] = (memory[WORD] & ~TAIL_MASK) | TAIL(self);
		arrive(self)
	}
	if
	:: other != 0 ->
		/* wait_for_head */
		atomic { can_store(self) -> store_release(self, NEXT(other / 4 - 1), self + 1); other = 0 }
		load(self, HEAD(self)) != 0
	:: else
	fi;
	/* wait_for_release */
	atomic { (load(self, WORD) & WAITED_FOR) == 0 -> word = load(self, WORD) & TAIL_MASK }
last:
	if
	:: word == TAIL(self) ->
		atomic {
			if
#ifdef LAST_WITHOUT_COMPARING
			:: settled(self, WORD) -> memory[WORD] = LOCKED; word = 0; goto acquired
#else
			:: memory[WORD] == word && settled(self, WORD) -> memory[WORD] = LOCKED; word = 0; goto acquired
#endif
			:: load(self, WORD) != word ->
#ifndef NEXT_WHEN_CAS_FAILS
				word = load(self, WORD) & TAIL_MASK;
				goto last
#endif
			fi
		}
	:: else
	fi;
	atomic { can_store(self) -> store_part(self, WORD, LOCKED, LOCKED); word = 0 }
	/* tm_lock_node_next */
	atomic { load(self, NEXT(self)) != 0 -> other = load(self, NEXT(self)) }
	atomic { can_store(self) -> store_bits(self, HEAD(other - 1), 255, 1, HEAD_ORDER); other = 0 }
acquired:
}

inline release(self) {
	/* tm_queued_lock_release */
	atomic { can_store(self) -> store_bits(self, WORD, LOCKED, 0, RELEASE_ORDER) }
}

#include "threads.pml"

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The unfair queued lock (tm/include/tm/lock/unfair.h, tm/lock/unfair.c, tm/lock/node.h): a waiter takes the lock at
 * any position, and leaves the queue from there. Labels and comments are the functions' names there. A thread has one
 * node.
 *
 * The frequency of tries does not matter here: every waiter may try at any time. Tries are rare, except the head's,
 * only if there is exactly one head. This is checked whenever a node has left and none is about to join (memory is
 * sequentially consistent then).
 *
 * Right: safety THREADS=3
 * Right: safety THREADS=3 STORES=3
 * Right: progress THREADS=3
 * Right: progress STORES=3
 * Wrong: safety THREADS=3 LEAVE_AFTER_RELEASE: invalid end state
 * Wrong: safety THREADS=3 TAIL_BEFORE_NEXT: invalid end state
 * Wrong: safety THREADS=3 TAIL_WITHOUT_COMPARING: invalid end state
 * Wrong: safety THREADS=3 PREVIOUS_AFTER_LINK: assertion violated (memory[1]==0)
 * Wrong: safety THREADS=3 PREVIOUS_LEFT: assertion violated (memory[1]==0)
 * Wrong: safety THREADS=3 HEAD_LEFT: assertion violated (memory[1]==0)
 * Wrong: safety THREADS=3 STORES=3 EXCHANGE_WITHOUT_RELEASE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 LINK_WITHOUT_RELEASE: assertion violated (memory[1]==0)
 * Wrong: safety THREADS=3 STORES=3 LEAVE_WITHOUT_RELEASE: invalid end state
 * Wrong: safety STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated (memory[0]==
 */

/* After DATA: the lock's word, and the nodes. */
#define WORD 1
#define NEXT(self) (2 + 3 * (self))
#define PREVIOUS(self) (3 + 3 * (self))
#define HEAD(self) (4 + 3 * (self))
#define WORDS (2 + 3 * THREADS)
#define is_free (memory[WORD] == 0)

/* In the word. */
#define LOCKED 1
#define TAIL(self) (4 * ((self) + 1))
#define TAIL_MASK 252

#include "section.pml"

#ifdef EXCHANGE_WITHOUT_RELEASE
#define before_exchange(self) settled(self, WORD)
#else
#define before_exchange(self) fenced(self)
#endif
#ifdef LEAVE_WITHOUT_RELEASE
#define before_leave(self) settled(self, WORD)
#else
#define before_leave(self) fenced(self)
#endif
#ifdef LINK_WITHOUT_RELEASE
#define LINK_ORDER 0
#else
#define LINK_ORDER ORDERED
#endif
#ifdef RELEASE_WITHOUT_RELEASE
#define RELEASE_ORDER 0
#else
#define RELEASE_ORDER ORDERED
#endif

/* Threads that have exchanged the tail and not left, as bits; and those of them that have not joined completely yet. */
byte queued, joining;
hidden byte heads;

inline look_for_the_head() {
#if !STORES
	d_step {
		heads = 0;
		if
		:: queued & 1 -> heads = heads + memory[HEAD(0)]
		:: else
		fi;
		if
		:: queued & 2 -> heads = heads + memory[HEAD(1)]
		:: else
		fi;
#if THREADS > 2
		if
		:: queued & 4 -> heads = heads + memory[HEAD(2)]
		:: else
		fi;
#endif
		if
		:: queued != 0 && joining == 0 -> assert(heads == 1)
		:: else -> assert(heads <= 1)
		fi
	}
#else
	skip
#endif
}

inline link_after(self, previous) {
	atomic { can_store(self) -> store_bits(self, NEXT(previous / 4 - 1), 255, self + 1, LINK_ORDER) }
}

inline point_to(self, previous) {
	atomic { can_store(self) -> store(self, PREVIOUS(self), previous) }
}

inline wait(self) {
	byte previous;

	/* tm_lock_node_enter */
	atomic { can_store(self) -> store(self, NEXT(self), 0) }
	atomic { can_store(self) -> store(self, HEAD(self), 0) }
	/* join: tm_lock_tail_exchange */
	atomic {
		before_exchange(self) ->
		previous = memory[WORD] & TAIL_MASK;
		memory[WORD] = (memory[WORD] & ~TAIL_MASK) | TAIL(self);
		queued = queued | (1 << self);
		joining = joining | (1 << self)
	}
	if
	:: previous != 0 ->
#ifdef PREVIOUS_AFTER_LINK
		link_after(self, previous);
		point_to(self, previous)
#else
		point_to(self, previous);
		link_after(self, previous)
#endif
	:: else -> atomic { can_store(self) -> store(self, HEAD(self), 1) }
	fi;
	atomic { joining = joining & ~(1 << self); previous = 0 }
	/* wait_and_take */
	atomic { (memory[WORD] & LOCKED) == 0 && settled(self, WORD) -> memory[WORD] = memory[WORD] | LOCKED }
}

/* leave */
inline leave_queue(self) {
	byte previous, next;

	if
	:: load(self, HEAD(self)) == 0 -> previous = load(self, PREVIOUS(self))
	:: else
	fi;
	if
	:: (load(self, WORD) & TAIL_MASK) == TAIL(self) ->
#ifndef TAIL_BEFORE_NEXT
		if
		:: previous != 0 -> atomic { can_store(self) -> store(self, NEXT(previous / 4 - 1), 0) }
		:: else
		fi;
#endif
		atomic {
			if
#ifdef TAIL_WITHOUT_COMPARING
			:: before_leave(self) ->
#else
			:: memory[WORD] == (LOCKED | TAIL(self)) && before_leave(self) ->
#endif
				memory[WORD] = LOCKED | previous;
#ifndef TAIL_BEFORE_NEXT
				previous = 0;
#endif
				queued = queued & ~(1 << self);
				look_for_the_head();
				goto left
			:: load(self, WORD) != (LOCKED | TAIL(self))
			fi
		}
	:: else
	fi;
	/* tm_lock_node_next */
	atomic { load(self, NEXT(self)) != 0 -> next = load(self, NEXT(self)) }
	if
	:: previous != 0 ->
#ifndef PREVIOUS_LEFT
		atomic { can_store(self) -> store(self, PREVIOUS(next - 1), previous) }
#endif
		atomic { can_store(self) -> store(self, NEXT(previous / 4 - 1), next) }
	:: else ->
#ifndef HEAD_LEFT
		atomic { can_store(self) -> store(self, HEAD(next - 1), 1) }
#endif
	fi;
	atomic {
		queued = queued & ~(1 << self);
		look_for_the_head();
		previous = 0;
		next = 0
	}
left:
#ifdef TAIL_BEFORE_NEXT
	if
	:: previous != 0 -> atomic { can_store(self) -> store(self, NEXT(previous / 4 - 1), 0); previous = 0 }
	:: else
	fi;
#endif
}

inline acquire(self) {
	/* tm_queue_word_take, or tm_unfair_lock_steal: past the queue if there is one */
	if
	:: atomic { (memory[WORD] & LOCKED) == 0 && settled(self, WORD) -> memory[WORD] = memory[WORD] | LOCKED }
	:: (load(self, WORD) & LOCKED) != 0 ->
		wait(self);
#ifndef LEAVE_AFTER_RELEASE
		leave_queue(self)
#endif
	fi
}

inline release(self) {
	/* tm_unfair_lock_release */
	atomic { can_store(self) -> store_bits(self, WORD, LOCKED, 0, RELEASE_ORDER) }
#ifdef LEAVE_AFTER_RELEASE
	if
	:: queued & (1 << self) -> leave_queue(self)
	:: else
	fi
#endif
}

#include "threads.pml"

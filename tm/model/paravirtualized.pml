/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The para-virtualized queued lock (tm/include/tm/lock/paravirtualized.h, tm/lock/paravirtualized.c, tm/lock/node.h): waiters sleep, and
 * the release wakes the head of the queue, which it finds in a table. Labels and comments are the functions' names there. A thread has one
 * node. There is one lock and so one entry, and another that is being removed: the table has two slots. Every bounded
 * wait may end at any time.
 *
 * A sleeping thread sleeps until another thread wakes it (tm_port_unpark), even when the word that it sleeps on
 * changes: a lost wake-up is lost for good. With SPURIOUS it may also wake up for no reason.
 *
 * Right: safety THREADS=3 ROUNDS=1
 * Right: safety THREADS=3 STORES=3 ROUNDS=1
 * Right: safety THREADS=3 ROUNDS=1 SPURIOUS
 * Right: safety STORES=3
 * Right: progress THREADS=3 ROUNDS=1
 * Right: progress STORES=3
 * Long: safety THREADS=3
 * Long: progress THREADS=3
 * Long: safety THREADS=3 STORES=3
 * Long: safety THREADS=3 SPURIOUS
 * Wrong: safety PARK_WITHOUT_COMPARING: invalid end state
 * Wrong: safety SLEEP_WITHOUT_LOOKING: invalid end state
 * Wrong: safety UNPARK_BEFORE_STATE: invalid end state
 * Wrong: safety SLEEPING_CLEARED: invalid end state
 * Wrong: safety THREADS=3 FREE_BEFORE_STATE: assertion violated
 * Wrong: safety THREADS=3 HEAD_WITHOUT_TABLE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 ASLEEP_WITHOUT_FENCE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 HEAD_WITHOUT_FENCE: invalid end state
 * Wrong: safety THREADS=3 STORES=3 ENTRY_WITHOUT_RELEASE: assertion violated
 * Wrong: safety STORES=3 RELEASE_WITHOUT_RELEASE: assertion violated (memory[0]==
 */

/* After DATA: the lock's word, the slots of the table (whether filled; which node), and the nodes. */
#define WORD 1
#define SLOT_LOCK(slot) (2 + 2 * (slot))
#define SLOT_NODE(slot) (3 + 2 * (slot))
#define NEXT(self) (6 + 3 * (self))
#define HEAD(self) (7 + 3 * (self))
#define STATE(self) (8 + 3 * (self))
#define WORDS (6 + 3 * THREADS)
#define is_free (memory[WORD] == 0 && memory[SLOT_LOCK(0)] == 0 && memory[SLOT_LOCK(1)] == 0)

/* In the word. */
#define LOCKED 1
#define SLEEPING 2
#define LOCKED_MASK 3
#define PENDING 4
#define TAIL(self) (8 * ((self) + 1))
#define TAIL_MASK 248

/* States of a waiter. */
#define AWAKE 0
#define ASLEEP 1
#define IN_TABLE 2

#include "section.pml"

#ifdef RELEASE_WITHOUT_RELEASE
#define before_release(self) settled(self, WORD)
#else
#define before_release(self) fenced(self)
#endif
#ifdef ENTRY_WITHOUT_RELEASE
#define before_sleeping(self) settled(self, WORD)
#else
#define before_sleeping(self) fenced(self)
#endif
#ifdef ASLEEP_WITHOUT_FENCE
#define before_head(self) true
#else
#define before_head(self) fenced(self)
#endif
#ifdef HEAD_WITHOUT_FENCE
#define before_state(self, node) settled(self, STATE(node))
#else
#define before_state(self, node) fenced(self)
#endif

bool parked[THREADS];

/* tm_port_park */
inline park(self, value) {
	atomic {
		if
#ifdef PARK_WITHOUT_COMPARING
		:: true -> parked[self] = true
#else
		:: load(self, STATE(self)) == value -> parked[self] = true
		:: else
#endif
		fi
	}
	atomic {
		if
		:: !parked[self]
#ifdef SPURIOUS
		:: parked[self] -> parked[self] = false
#endif
		fi
	}
}

inline unpark(self, node) {
	atomic { fenced(self) -> parked[node] = false }
}

inline table_insert(by, node) {
	if
	:: atomic { memory[SLOT_LOCK(0)] == 0 && settled(by, SLOT_LOCK(0)) -> memory[SLOT_LOCK(0)] = 1 }
		atomic { can_store(by) -> store(by, SLOT_NODE(0), node + 1) }
	:: load(by, SLOT_LOCK(0)) != 0 ->
		atomic { settled(by, SLOT_LOCK(1)) -> assert(memory[SLOT_LOCK(1)] == 0); memory[SLOT_LOCK(1)] = 1 }
		atomic { can_store(by) -> store(by, SLOT_NODE(1), node + 1) }
	fi
}

inline table_remove(by, node) {
	if
	:: load(by, SLOT_LOCK(0)) != 0 ->
		node = load(by, SLOT_NODE(0));
		atomic { can_store(by) -> store_release(by, SLOT_LOCK(0), 0) }
	:: load(by, SLOT_LOCK(0)) == 0 ->
		atomic { assert(load(by, SLOT_LOCK(1)) != 0); node = load(by, SLOT_NODE(1)) }
		atomic { can_store(by) -> store_release(by, SLOT_LOCK(1), 0) }
	fi;
	atomic { assert(node != 0); node-- }
}

inline acquire(self) {
	byte word, other;

	/* tm_queue_word_take, or steal: past the queue, and not past a head that is awake */
	if
	:: atomic { (memory[WORD] & ~TAIL_MASK) == 0 && settled(self, WORD) -> memory[WORD] = memory[WORD] | LOCKED }
		goto acquired
	:: load(self, WORD) != 0
	fi;
	/* tm_lock_node_enter */
	atomic { can_store(self) -> store(self, NEXT(self), 0) }
	atomic { can_store(self) -> store(self, HEAD(self), 0) }
	/* tm_paravirtualized_lock_wait */
	atomic { can_store(self) -> store(self, STATE(self), AWAKE) }
	atomic {
		fenced(self) ->
		other = memory[WORD] & TAIL_MASK;
		memory[WORD] = (memory[WORD] & ~TAIL_MASK) | TAIL(self)
	}
	if
	:: other == 0 -> goto wait_as_head
	:: else
	fi;
	atomic { can_store(self) -> store_release(self, NEXT(other / 8 - 1), self + 1); other = 0 }
wait_for_head:
	if
	:: load(self, HEAD(self)) != 0 -> goto wait_as_head
	:: load(self, HEAD(self)) == 0
	fi;
	atomic { can_store(self) -> store_release(self, STATE(self), ASLEEP) }
	if
	:: before_head(self) && load(self, HEAD(self)) == 0 -> park(self, ASLEEP)
	:: before_head(self) && load(self, HEAD(self)) != 0
	fi;
	atomic {
		settled(self, STATE(self)) ->
		if
		:: memory[STATE(self)] == ASLEEP -> memory[STATE(self)] = AWAKE
		:: else
		fi;
		goto wait_for_head
	}
wait_as_head:
	atomic { can_store(self) -> store_part(self, WORD, PENDING, PENDING) }
	if
	:: atomic {
		/* take_pending */
		(memory[WORD] & LOCKED_MASK) == 0 && settled(self, WORD) ->
		memory[WORD] = (memory[WORD] & TAIL_MASK) | LOCKED;
		goto taken
	}
	:: (load(self, WORD) & LOCKED_MASK) != 0
	fi;
	atomic { can_store(self) -> store_part(self, WORD, PENDING, 0) }
	if
	:: load(self, STATE(self)) == AWAKE ->
#ifndef SLEEPING_CLEARED
		if
		:: load(self, WORD) & SLEEPING -> goto wait_as_head
		:: else
		fi;
#endif
		/* enter_table */
		atomic { can_store(self) -> store(self, STATE(self), IN_TABLE) }
		table_insert(self, self);
		atomic { before_sleeping(self) -> word = memory[WORD] & LOCKED_MASK; memory[WORD] = memory[WORD] | SLEEPING }
#ifndef SLEEP_WITHOUT_LOOKING
		if
		:: word == 0 ->
			table_remove(self, other);
			assert(other == self);
			atomic { can_store(self) -> store(self, STATE(self), AWAKE); other = 0 }
			atomic { can_store(self) -> store_part(self, WORD, LOCKED_MASK, LOCKED) }
			goto taken
		:: else -> word = 0
		fi
#endif
	:: else
	fi;
	park(self, IN_TABLE);
	goto wait_as_head;
taken:
	/* tm_paravirtualized_lock_wait: (n,0,1) -> (0,0,1) */
	atomic {
		if
		:: memory[WORD] == (TAIL(self) | LOCKED) && settled(self, WORD) -> memory[WORD] = LOCKED; goto acquired
		:: load(self, WORD) != (TAIL(self) | LOCKED)
		fi
	}
	/* tm_lock_node_next */
	atomic { load(self, NEXT(self)) != 0 -> other = load(self, NEXT(self)) - 1 }
	/* make_head */
	atomic { can_store(self) -> store_release(self, HEAD(other), 1) }
	atomic {
		before_state(self, other) ->
		if
#ifdef HEAD_WITHOUT_TABLE
		:: true -> other = 0; goto acquired
#else
		:: memory[STATE(other)] == ASLEEP -> memory[STATE(other)] = IN_TABLE
		:: else -> other = 0; goto acquired
#endif
		fi
	}
	table_insert(self, other);
	atomic { before_sleeping(self) -> memory[WORD] = memory[WORD] | SLEEPING; other = 0 }
acquired:
}

inline release(self) {
	byte old, node;

	/* tm_paravirtualized_lock_release */
	atomic { before_release(self) -> old = memory[WORD] & SLEEPING; memory[WORD] = memory[WORD] - LOCKED }
	if
	:: old != 0 ->
		/* tm_paravirtualized_lock_wake */
		old = 0;
		table_remove(self, node);
#ifdef UNPARK_BEFORE_STATE
		unpark(self, node);
#endif
#ifdef FREE_BEFORE_STATE
		atomic { can_store(self) -> store_part_release(self, WORD, LOCKED_MASK, 0) }
		atomic { can_store(self) -> store_release(self, STATE(node), AWAKE) }
#else
		atomic { can_store(self) -> store_release(self, STATE(node), AWAKE) }
		atomic { can_store(self) -> store_part_release(self, WORD, LOCKED_MASK, 0) }
#endif
#ifndef UNPARK_BEFORE_STATE
		unpark(self, node);
#endif
		node = 0
	:: else
	fi
}

#include "threads.pml"

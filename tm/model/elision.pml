/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Locks whose sections may be hardware transactions: cx (cx.pml) and tx (tx.pml). Labels and comments are the
 * functions' names in tm/lock and tm/include/tm/lock. The queued lock behind cx (queued.pml) and the reader/writer lock
 * behind tx (queued_rw.pml) are queues of threads here. The hardware is hardware.pml, with any contention manager.
 *
 * Each context runs one program of the table below, and every choice of programs is walked. The model checks:
 *   - mutual exclusion: a context that is alone in a section finds no live transaction in it, and no transaction begins
 *     a section while another context is alone in it;
 *   - each addition arrives exactly once, and input and output take place in no transaction;
 *   - no context waits for ever (an invalid end state), and every context ends (the claim `all_end`).
 *
 * Parameters (spin -D): THREADS; FIRST and OTHERS, sets of programs as bits; RTM: transactions cannot test a word
 * without reading it, and no contention manager decides before a word is taken from them.
 */

/* Sets of programs, for runs to name. */
#define PAIR 3
#define SINGLE 7
#define NESTED 56
#define OTHER_LOCK 192
#define TRYING 256
#define OVERLAPPING 512
#define EVERY (SINGLE | NESTED | OTHER_LOCK)

#ifndef THREADS
#define THREADS 2
#endif
#define CONTEXTS THREADS
#define HANDLERS 0

/* Words: those of locks A and B (cx: the lock; tx: `alone`), and the data that they guard. */
#define LOCKS 2
#define X 2
#define Y 3
#define WORDS 4

#ifdef NO_SUBSCRIPTION
#define DOES_SUBSCRIBE false
#else
#define DOES_SUBSCRIBE true
#endif

/* Restarts before a section is exclusive, polls of a taken lock, refusals before a lock is taken from transactions. */
#define RESTARTS_MAX 1
#define POLLS_MAX 1
#define REFUSALS_MAX 1

#define count_restart(context, cause) skip

#include "hardware.pml"

/* The section of a lock that a context is in. A section that ends inside a transaction lasts until the commit. */
#define OUTSIDE 0
#define IN_TRANSACTION 1
#define ALONE 2
/* Ended in a transaction that has not committed yet: for all other contexts, still alone. */
#define RELEASED 3
byte section[CONTEXTS * LOCKS];
#define section_of(context, lock) section[(context) * LOCKS + (lock)]

inline leave_sections(context, transactional, released) {
	losing_lock = 0;
	do
	:: losing_lock < LOCKS ->
		if
		:: section_of(context, losing_lock) == IN_TRANSACTION -> section_of(context, losing_lock) = transactional
		:: section_of(context, losing_lock) == RELEASED -> section_of(context, losing_lock) = released
		:: else
		fi;
		losing_lock++
	:: else -> break
	od
}

inline leave_lost_sections(context) {
	leave_sections(context, OUTSIDE, ALONE)
}

inline leave_committed_sections(context) {
	leave_sections(context, OUTSIDE, OUTSIDE)
}

hidden byte onlooker;

inline enter(context, lock, how) {
	onlooker = 0;
	do
	:: onlooker < CONTEXTS ->
		assert(onlooker == (context) || section_of(onlooker, lock) == OUTSIDE ||
		       how == IN_TRANSACTION && section_of(onlooker, lock) == IN_TRANSACTION);
		onlooker++
	:: else -> break
	od;
	section_of(context, lock) = how
}

/* The queue behind a lock; and the holders of the reader/writer lock. */
chan line[LOCKS] = [CONTEXTS] of { byte };
byte rw_readers[LOCKS], rw_writer[LOCKS];
#define HELD 1
#define QUEUED 2

/* Programs: an operation, and eight times its number the lock or word that it uses. */
#define STOP 0
#define OPT_A 8
#define OPT_B 9
#define EXC_A 16
#define EXC_B 17
#define END_A 24
#define END_B 25
#define ADD_X 34
#define ADD_Y 35
#define IO 40
/* If the lock is not available at once, skips the next two operations. */
#define TRY_A 48
#define is_of(code, name) ((code) / 8 == (name) / 8)

#define PROGRAMS 10
#define LENGTH 7
hidden byte programs[PROGRAMS * LENGTH] = {
	/* 0 */ OPT_A, ADD_X, END_A, STOP, STOP, STOP, STOP,
	/* 1 */ EXC_A, ADD_X, IO, END_A, STOP, STOP, STOP,
	/* 2 */ OPT_A, ADD_X, IO, END_A, STOP, STOP, STOP,
	/* 3 */ OPT_A, ADD_X, OPT_B, ADD_Y, END_B, END_A, STOP,
	/* 4 */ EXC_A, ADD_X, OPT_B, ADD_Y, END_B, END_A, STOP,
	/* 5 */ OPT_A, ADD_X, EXC_B, ADD_Y, END_B, END_A, STOP,
	/* 6 */ OPT_B, ADD_Y, END_B, STOP, STOP, STOP, STOP,
	/* 7 */ EXC_B, ADD_Y, END_B, STOP, STOP, STOP, STOP,
	/* 8 */ TRY_A, ADD_X, END_A, STOP, STOP, STOP, STOP,
	/* 9 */ OPT_A, ADD_X, OPT_B, END_A, ADD_Y, END_B, STOP
};

byte program[CONTEXTS];
byte additions[2];
byte ended;

/* The context goes on, unless its transaction has lost since its last step. */
#define RESTART_IF_LOST(context) if :: lost[context] != 0 -> goto restarted :: else fi

proctype context_runs(byte self) {
	byte at, begun_at, code, lock, value, restarts, polls, refusals;

fetch:
	atomic {
		RESTART_IF_LOST(self);
		code = programs[program[self] * LENGTH + at];
		lock = code % 8;
		if
		:: is_of(code, OPT_A) || is_of(code, TRY_A) -> goto optimistic
		:: is_of(code, EXC_A) -> goto exclusive
		:: is_of(code, END_A) -> goto end
		:: is_of(code, ADD_X) -> goto addition
		:: code == IO -> goto input_output
		:: code == STOP -> goto stop
		fi
	}

	/* cx_optimistic, cx_try; tx_spin_lock_retry */
optimistic:
	atomic {
		RESTART_IF_LOST(self);
		polls = 0;
		if
		:: depth[self] > 0 -> xbegin(self); goto test
		:: else -> restarts = 0; begun_at = at
		fi
	}
#ifdef TX
	/* tm_queued_rw_lock_read_acquire */
	atomic {
		if
		:: rw_writer[lock] == 0 && empty(line[lock]) -> rw_readers[lock]++; goto opens
		:: rw_writer[lock] != 0 || nempty(line[lock]) -> line[lock]!self
		fi
	}
	atomic { line[lock]?[eval(self)] && rw_writer[lock] == 0 -> line[lock]?eval(self); rw_readers[lock]++ }
opens:
#endif
	atomic {
		xbegin(self);
#ifdef TX
		enter(self, lock, IN_TRANSACTION);
		goto advance
#endif
	}

	/* tm_htm_test, tm_htm_wait */
test:
	atomic {
		RESTART_IF_LOST(self);
#ifdef RTM
		load(self, lock);
#else
		xtest_zero(self, lock);
#endif
		RESTART_IF_LOST(self);
#ifdef ALONE_UNHEEDED
		read_value = 0;
#endif
		if
		:: read_value == 0 -> enter(self, lock, IN_TRANSACTION); goto advance
		:: read_value != 0 && is_of(code, TRY_A) -> xend(self); additions[0]--; at = at + 2; goto advance
#ifdef RTM
		:: read_value != 0 && !is_of(code, TRY_A) -> lose(self, EXPLICIT); goto restarted
#else
		:: read_value != 0 && !is_of(code, TRY_A) && polls < POLLS_MAX -> polls++; goto test
		:: read_value != 0 && !is_of(code, TRY_A) && polls == POLLS_MAX && depth[self] > 1 -> lose(self, EXPLICIT); goto restarted
		:: read_value != 0 && !is_of(code, TRY_A) && polls == POLLS_MAX && depth[self] == 1 -> xend(self)
#endif
		fi
	}
	goto acquire;

	/* tm_cx_lock_slow, tm_tx_lock_slow; tm_htm_may_retry, tm_htm_again, tm_htm_abandon */
restarted:
	atomic {
		value = 0;
		polls = 0;
		refusals = 0;
		at = begun_at;
		code = programs[program[self] * LENGTH + at];
		lock = code % 8;
		depth[self] = 1;
		restarts++;
		if
		:: lost[self] == NEED_EXCLUSIVE || restarts > RESTARTS_MAX -> lost[self] = 0; xend(self)
		:: else ->
			lost[self] = 0;
#ifdef TX
			enter(self, lock, IN_TRANSACTION);
			goto advance
#else
			goto test
#endif
		fi
	}
#ifdef TX
	atomic { rw_readers[lock]-- }
#endif
	goto acquire;

	/* cx_exclusive, tx_spin_lock_non */
exclusive:
	atomic {
		RESTART_IF_LOST(self);
		if
		:: depth[self] > 0 -> lose(self, NEED_EXCLUSIVE); goto restarted
		:: else
		fi
	}

acquire:
	restarts = 0;
#ifdef TX
	/* tm_queued_rw_lock_write_acquire */
	atomic {
		if
		:: rw_writer[lock] == 0 && rw_readers[lock] == 0 && empty(line[lock]) -> rw_writer[lock] = 1; goto writes
		:: rw_writer[lock] != 0 || rw_readers[lock] != 0 || nempty(line[lock]) -> line[lock]!self
		fi
	}
	atomic {
		line[lock]?[eval(self)] && rw_writer[lock] == 0 && rw_readers[lock] == 0 ->
		line[lock]?eval(self);
		rw_writer[lock] = 1
	}
writes:
#ifndef ALONE_UNSAID
	atomic { store(self, lock, 1) }
#endif
#else
	/* tm_cx_lock_acquire: tm_htm_acquire */
	atomic {
#ifdef EXCLUSIVE_WITHOUT_WORD
		goto entered;
#endif
#ifdef RTM
		load(self, lock);
		refused = 0;
		if
		:: read_value == 0 -> store(self, lock, HELD)
		:: else
		fi;
#else
		xcas_zero(self, lock, HELD);
#endif
		if
		:: !refused && read_value == 0 -> goto entered
		:: refused && refusals < REFUSALS_MAX -> refusals++; goto acquire
		:: else
		fi;
		/* tm_cx_lock_try_slow */
		if
		:: is_of(code, TRY_A) -> additions[0]--; refusals = 0; at = at + 2; goto advance
		:: else
		fi
	}
	/* tm_queued_lock_acquire */
	atomic { store(self, lock, memory[lock] | QUEUED); line[lock]!self }
wait_for_turn:
	atomic {
		line[lock]?[eval(self)] && (writer[lock] != 0 || !(memory[lock] & HELD)) ->
		load(self, lock);
		if
		:: read_value & HELD -> goto wait_for_turn
		:: else
		fi;
		line[lock]?eval(self);
		store(self, lock, (len(line[lock]) > 0 -> HELD | QUEUED : HELD))
	}
#endif
entered:
	atomic { refusals = 0; enter(self, lock, ALONE); goto advance }

	/* cx_end, tx_spin_unlock */
end:
#ifdef TX
	atomic {
		RESTART_IF_LOST(self);
		if
		:: depth[self] > 1 -> xend(self); goto advance
		:: depth[self] == 1 ->
#ifdef READ_RELEASED_EARLY
			rw_readers[lock]--
#else
			xend(self)
#endif
		:: depth[self] == 0 ->
			assert(section_of(self, lock) == ALONE);
			store(self, lock, 0);
			section_of(self, lock) = OUTSIDE;
			goto write_release
		fi
	}
#ifdef READ_RELEASED_EARLY
	atomic { RESTART_IF_LOST(self); xend(self); goto advance }
#else
	atomic { rw_readers[lock]--; goto advance }
#endif
write_release:
	atomic { rw_writer[lock] = 0; goto advance }
#else
	atomic {
		RESTART_IF_LOST(self);
		load(self, lock);
		RESTART_IF_LOST(self);
		if
		:: read_value == 0 -> assert(section_of(self, lock) == IN_TRANSACTION); xend(self); goto advance
		:: else -> assert(section_of(self, lock) == ALONE)
		fi
	}
	/* tm_queued_lock_release */
	atomic {
		RESTART_IF_LOST(self);
		store(self, lock, memory[lock] & ~HELD);
		RESTART_IF_LOST(self);
		section_of(self, lock) = (depth[self] > 0 -> RELEASED : OUTSIDE);
		goto advance
	}
#endif

addition:
	atomic { RESTART_IF_LOST(self); load(self, lock); RESTART_IF_LOST(self); value = read_value }
	atomic { RESTART_IF_LOST(self); store(self, lock, value + 1); RESTART_IF_LOST(self); value = 0; goto advance }

input_output:
	atomic {
		RESTART_IF_LOST(self);
		if
		:: depth[self] > 0 -> lose(self, NEED_EXCLUSIVE); goto restarted
		:: else -> goto advance
		fi
	}

advance:
	atomic {
		RESTART_IF_LOST(self);
		if
		:: depth[self] == 0 -> begun_at = 0; restarts = 0
		:: else
		fi;
		polls = 0;
		at++;
		goto fetch
	}

stop:
	atomic { assert(depth[self] == 0); ended++ }
}

hidden byte chosen, position;

/* One program of the set, and none below `least`. */
inline choose(context, set, least) {
	chosen = least;
	do
	:: (set) & (1 << chosen) -> break
	:: ((set) >> (chosen + 1)) != 0 -> chosen++
	od;
	program[context] = chosen;
	position = 0;
	do
	:: position < LENGTH ->
		if
		:: programs[chosen * LENGTH + position] == ADD_X -> additions[0]++
		:: programs[chosen * LENGTH + position] == ADD_Y -> additions[1]++
		:: else
		fi;
		position++
	:: else -> break
	od
}

init {
	byte one;

	atomic {
		choose(0, FIRST, 0);
		one = 1;
		do
		:: one < THREADS ->
			/* The other contexts are all alike: one order of their programs is enough. */
			if
			:: one == 1 -> choose(one, OTHERS, 0)
			:: else -> choose(one, OTHERS, program[one - 1])
			fi;
			one++
		:: else -> break
		od;
		one = 0;
		do
		:: one < CONTEXTS -> run context_runs(one); one++
		:: else -> break
		od
	}
	ended == CONTEXTS;
	assert(memory[0] == 0 && memory[1] == 0 && rw_readers[0] == 0 && rw_readers[1] == 0 && rw_writer[0] == 0 && rw_writer[1] == 0);
	assert(memory[X] == additions[0] && memory[Y] == additions[1])
}

ltl all_end { <> (ended == CONTEXTS) }

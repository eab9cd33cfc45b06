/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Software transactions (tm/stm): what TL2 (tl2.pml) and two-phase locking (two_phase.pml) share, and where they part. Labels and comments
 * are the functions' names there. There are two words, X and Y, each with a record of its own.
 *
 * Each context runs one program out of the table below, and every choice of programs is walked. What is checked:
 *   - opacity: the states that committed transactions, serial ones and plain stores make are written down in order; what an attempt has
 *     read, whether it commits or not, is at every moment part of one of them, and of none that was over when the attempt began;
 *   - what a committing transaction has read is the latest state but for its own changes;
 *   - a transaction that runs alone does (it sees the latest state, and nobody sees what is between its stores);
 *   - privatization and publication: plain accesses after and before a transaction that hides or shows Y by changing X;
 *   - at the end memory is the latest state, nothing is owned, and nobody waits for ever (an invalid end state); everybody ends (`all_end`).
 *
 * A bounded wait may end at any time. A transaction that has restarted RESTARTS_MAX times runs alone.
 *
 * Parameters (spin -D): THREADS; FIRST and OTHERS, sets of programs as bits; HANDLER, such a set, for an interrupt handler that comes to
 * thread 0 at any time; RESTARTS_MAX; PESSIMISTIC_MIN, restarts from which on an attempt owns what it reads; STORES (memory.pml).
 */

/* Sets of programs, for runs to name. */
#define BOTH 1
#define READER 2
#define ADDER 32
#define CANCELLER 128
#define ORDINARY 255
#define ALL_ALONE 256
#define IRREVOCABLES 512
#define EVERY (ORDINARY | ALL_ALONE | IRREVOCABLES)
#define OBSTINATE_BOTH 1024
#define OBSTINATES 132096
#define HIDER 2048
#define SHARERS 12288
#define SHOWER 16384
#define WATCHER 32768
#define AGAIN 65536

#ifndef THREADS
#define THREADS 2
#endif
#ifndef HANDLER
#define HANDLER 0
#endif
#if HANDLER
#define CONTEXTS (THREADS + 1)
#else
#define CONTEXTS THREADS
#endif
#ifndef RESTARTS_MAX
#define RESTARTS_MAX 1
#endif
#ifndef PESSIMISTIC_MIN
#define PESSIMISTIC_MIN RESTARTS_MAX
#endif
#ifndef STORES
#define STORES 0
#endif

/* Words of memory. */
#define X 0
#define Y 1
#define RECORD(word) (2 + (word))
#define SERIAL 4
#define CLOCK 5
#define ACTIVITY(context) (6 + (context))
#define WORDS (6 + CONTEXTS)

#include "memory.pml"

#define OWNED 128
#define owned_by(context) (OWNED | (context))
#define owner_of(record) ((record) & ~OWNED)

/* Modes. */
#define NONE 0
#define OPTIMISTIC 1
#define PESSIMISTIC 2
#define OBSTINATE 3
#define ALONE 4
byte mode[CONTEXTS];

/* A transaction's sets, as bits of words; X is 1, and Y 2. */
byte reads[CONTEXTS], owned[CONTEXTS], changed[CONTEXTS];
/* Before it was owned; before it was changed (2PL), or after (TL2); by context and word. */
byte version[CONTEXTS * 2], changed_value[CONTEXTS * 2];
byte horizon[CONTEXTS], first_version[CONTEXTS], serial_begin[CONTEXTS], commit_version[CONTEXTS];
bool decided[CONTEXTS];
/* By which context, plus 1. */
byte doomed[CONTEXTS];
#define NOT_OVERTAKEN 0
#define ROLLED_BACK 1
#define FINISHED 2
byte overtaken[CONTEXTS];
/* The context's own copy of the word that others see. */
byte activity[CONTEXTS];
/* Of two obstinate transactions the older one, with the lower number, wins. */
byte obstinacy[CONTEXTS], obstinate_count;

#define bit(word) (1 << (word))
#define of(context, word) ((context) * 2 + (word))
#define is_visible(self) (activity[self] & 1)

/* The states that were, and of an attempt: in which it began, what it has read (UNREAD: nothing), where its commit stands among them. */
#define STATES_MAX 9
#define UNREAD 255
byte states, x_of[STATES_MAX], y_of[STATES_MAX];
byte begun_at[CONTEXTS], x_read[CONTEXTS], y_read[CONTEXTS], commits_at[CONTEXTS];

hidden byte state, reader, found;

inline assert_opaque(context) {
	state = begun_at[context];
	found = 0;
	do
	:: state < states ->
		if
		:: (x_read[context] == UNREAD || x_read[context] == x_of[state]) &&
		   (y_read[context] == UNREAD || y_read[context] == y_of[state]) -> found = 1
		:: else
		fi;
		state++
	:: else -> break
	od;
	assert(found == 1)
}

/* The attempt has read a word that it has not changed. */
inline saw(context, word, value) {
	d_step {
		if
		:: word == X -> assert(x_read[context] == UNREAD || x_read[context] == value); x_read[context] = value
		:: else -> assert(y_read[context] == UNREAD || y_read[context] == value); y_read[context] = value
		fi;
		assert_opaque(context)
	}
}

/* Of a transaction that is about to commit after the first `at` states: nothing that it has read was changed up to there. */
inline assert_latest(context, at) {
	assert(x_read[context] == UNREAD || x_read[context] == x_of[at - 1]);
	assert(y_read[context] == UNREAD || y_read[context] == y_of[at - 1])
}

/*
 * A commit is decided, and stands where it began to look at what it had read: states that were made since then, by others and of other
 * words, come after it.
 */
inline write_down(context, which, x, y) {
	d_step {
		assert(states < STATES_MAX);
		assert_latest(context, commits_at[context]);
		state = states;
		do
		:: state > commits_at[context] ->
			x_of[state] = ((which) & 1 -> x : x_of[state - 1]);
			y_of[state] = ((which) & 2 -> y : y_of[state - 1]);
			state--
		:: else -> break
		od;
		x_of[state] = ((which) & 1 -> x : x_of[state - 1]);
		y_of[state] = ((which) & 2 -> y : y_of[state - 1]);
		states++;
		reader = 0;
		do
		:: reader < CONTEXTS ->
			if
			:: reader != context && begun_at[reader] > state -> begun_at[reader]++
			:: else
			fi;
			if
			:: reader != context && commits_at[reader] > state -> commits_at[reader]++
			:: else
			fi;
			if
			:: reader != context && mode[reader] != NONE -> assert_opaque(reader)
			:: else
			fi;
			reader++
		:: else -> break
		od
	}
}

/* Programs: an operation, eight times its number, and the word that it is about. */
#define STOP 0
#define LOAD_X 8
#define LOAD_Y 9
/* Loads, adds 1, stores. */
#define ADD_X 16
#define ADD_Y 17
/* Stores 1 more than what was loaded last. */
#define STORE_X 24
#define STORE_Y 25
/* Goes on behind the next operation where what was loaded last is 0; where it is not. */
#define IF_NOT_0 32
#define IF_0 40
#define COMMIT 48
#define CANCEL 56
#define IRREVOCABLE 64
/* Outside of transactions: stores 7; loads, and finds the latest state. */
#define PLAIN_STORE_Y 73
#define PLAIN_LOAD_Y 81
/* Begins as a transaction that runs alone; as an obstinate one. */
#define BEGIN 88
#define BEGIN_ALONE 96
#define BEGIN_OBSTINATE 104
#define is_of(code, name) ((code) / 8 == (name) / 8)

#define PROGRAMS 18
#define LENGTH 8
hidden byte programs[PROGRAMS * LENGTH] = {
	/*  0 */ BEGIN, ADD_X, ADD_Y, COMMIT, STOP, STOP, STOP, STOP,
	/*  1 */ BEGIN, LOAD_X, LOAD_Y, COMMIT, STOP, STOP, STOP, STOP,
	/*  2 */ BEGIN, LOAD_X, STORE_Y, COMMIT, STOP, STOP, STOP, STOP,
	/*  3 */ BEGIN, LOAD_Y, STORE_X, COMMIT, STOP, STOP, STOP, STOP,
	/*  4 */ BEGIN, LOAD_X, COMMIT, STOP, STOP, STOP, STOP, STOP,
	/*  5 */ BEGIN, ADD_X, COMMIT, STOP, STOP, STOP, STOP, STOP,
	/*  6 */ BEGIN, STORE_Y, LOAD_X, COMMIT, STOP, STOP, STOP, STOP,
	/*  7 */ BEGIN, ADD_Y, ADD_X, CANCEL, STOP, STOP, STOP, STOP,
	/*  8 */ BEGIN_ALONE, ADD_X, ADD_Y, COMMIT, STOP, STOP, STOP, STOP,
	/*  9 */ BEGIN, ADD_X, IRREVOCABLE, ADD_Y, COMMIT, STOP, STOP, STOP,
	/* 10 */ BEGIN_OBSTINATE, ADD_Y, ADD_X, COMMIT, STOP, STOP, STOP, STOP,
	/* 11, 12: Y is anybody's while X is 0, and becomes private */
	/* 11 */ BEGIN, STORE_X, COMMIT, PLAIN_STORE_Y, PLAIN_LOAD_Y, PLAIN_LOAD_Y, STOP, STOP,
	/* 12 */ BEGIN, LOAD_X, IF_0, ADD_Y, COMMIT, STOP, STOP, STOP,
	/* 13 */ BEGIN, LOAD_X, IF_0, LOAD_Y, COMMIT, STOP, STOP, STOP,
	/* 14, 15: Y is private while X is 0, and becomes anybody's */
	/* 14 */ PLAIN_STORE_Y, BEGIN, STORE_X, COMMIT, STOP, STOP, STOP, STOP,
	/* 15 */ BEGIN, LOAD_X, IF_NOT_0, LOAD_Y, COMMIT, STOP, STOP, STOP,
	/* 16: a record that was changed long ago, then a new transaction */
	/* 16 */ BEGIN, ADD_X, COMMIT, BEGIN, LOAD_Y, LOAD_X, COMMIT, STOP,
	/* 17 */ BEGIN_OBSTINATE, LOAD_X, LOAD_Y, COMMIT, STOP, STOP, STOP, STOP
};

byte program[CONTEXTS];
byte ended;

/* The handler runs; interrupts of processor 0 are off. */
#if HANDLER
bool handling, masked;
#define executes(context) ((context) == 0 -> !handling : ((context) == THREADS -> handling : true))
#define mask(context, value) if :: (context) == 0 -> masked = value :: else fi
#define is_handler(context) ((context) == THREADS)
#else
#define executes(context) true
#define mask(context, value) skip
#define is_handler(context) false
#endif
#define has_interrupted(self, other) (is_handler(self) && (other) == 0)

/* tm_next_version: the clock is looked at after all records are owned. */
#define next_version(self, context, clock) \
	((owned[context] & 1) && version[of(context, X)] > (clock) && \
	 (!(owned[context] & 2) || version[of(context, X)] >= version[of(context, Y)]) -> version[of(context, X)] : \
	 ((owned[context] & 2) && version[of(context, Y)] > (clock) -> version[of(context, Y)] : (clock))) + 1

#define horizon_of(self) (horizon[self] == 0 -> first_version[self] + 1 : horizon[self])

/* One record of those that were read: was every change of it before the horizon? */
inline validate_word(which) {
	atomic {
		executes(self) ->
		if
		:: (reads[self] & bit(which)) && load(self, RECORD(which)) >= before && load(self, RECORD(which)) != owned_by(self) ->
			goto restart
		:: else
		fi
	}
}

/* tm_validate */
inline validate() {
	atomic { executes(self) -> before = horizon_of(self) }
	validate_word(X);
	validate_word(Y);
	before = 0
}

#define is_first(self) (mode[self] == OPTIMISTIC && !is_visible(self) && reads[self] == 0)
#define may_not_go_on(self) (doomed[self] != 0 || overtaken[self] != NOT_OVERTAKEN)
#define RESTART_IF_DOOMED(self) if :: may_not_go_on(self) -> goto restart :: else fi

/* Waits until another context is out of the way of one that runs alone (wait_until_alone). */
inline wait_until_out_of_the_way(self, other) {
	atomic {
		executes(self) &&
		((other) == self || (load(self, ACTIVITY(other)) & 1) == 0 || overtaken[other] != NOT_OVERTAKEN)
	}
}

inline wait_until_alone(self) {
#ifndef NOT_ALONE
	wait_until_out_of_the_way(self, 0);
	wait_until_out_of_the_way(self, 1)
#if CONTEXTS > 2
	;
	wait_until_out_of_the_way(self, 2)
#endif
#else
	skip
#endif
}

/* tm_wait_for_readers, for one of them */
inline wait_for_reader(self, other) {
	atomic { executes(self) -> seen = ((other) == self -> 0 : load(self, ACTIVITY(other))) }
	if
	:: seen & 1 -> atomic { executes(self) && load(self, ACTIVITY(other)) != seen -> seen = 0 }
	:: else -> seen = 0
	fi
}

#ifdef UNGUARDED
#define may_store(self, context) true
#else
#define may_store(self, context) (self != context || overtaken[context] == NOT_OVERTAKEN)
#endif

/*
 * Stores of what a transaction owns, by itself (guarded: not once it was overtaken) or by the handler that overtakes it; and the end of an
 * ownership that may be over already.
 */
/* A handler that finishes a commit leaves alone what the commit has let go of. */
#ifdef FINISH_ALL
#define owns(by, whose, which) true
#else
#define owns(by, whose, which) (by == whose || memory[RECORD(which)] == owned_by(whose))
#endif

inline guarded_store(by, whose, which, what) {
	atomic {
		executes(by) && can_store(by) ->
		if
		:: (changed[whose] & bit(which)) && may_store(by, whose) && owns(by, whose, which) -> store(by, which, what)
		:: else
		fi
	}
}

inline disown(by, whose, which, to) {
	atomic {
		executes(by) && fenced(by) ->
		if
		:: (owned[whose] & bit(which)) && memory[RECORD(which)] == owned_by(whose) ->
			memory[RECORD(which)] = (to != 0 -> to : version[of(whose, which)])
		:: else
		fi
	}
}

#ifdef RELEASE_WITHOUT_RELEASE
#define RELEASE_ORDER 0
#else
#define RELEASE_ORDER ORDERED
#endif

inline guarded_release(by, which) {
	atomic {
		executes(by) && can_store(by) ->
		if
		:: (owned[by] & bit(which)) && may_store(by, by) ->
			store_bits(by, RECORD(which), 255, commit_version[by], RELEASE_ORDER)
		:: else
		fi
	}
}

/* tm_algorithm_rollback, of the context itself or of the one that was interrupted. */
inline roll_back(me, victim) {
#ifdef TWO_PHASE
	atomic {
		executes(me) ->
#ifdef ROLLBACK_WITHOUT_VERSION
		value = 0
#else
#ifdef ROLLBACK_VERSION_IF_CHANGED
		value = (changed[victim] != 0 -> next_version(me, victim, load(me, CLOCK)) : 0)
#else
		value = next_version(me, victim, load(me, CLOCK))
#endif
#endif
	}
	guarded_store(me, victim, X, changed_value[of(victim, X)]);
	guarded_store(me, victim, Y, changed_value[of(victim, Y)]);
	/* The log is empty before anything is let go of: a handler that comes now must not undo what may be another's by then. */
	atomic { executes(me) -> changed[victim] = 0 }
#else
	value = 0;
#endif
	disown(me, victim, X, value);
	disown(me, victim, Y, value);
	value = 0
}

#ifdef TWO_PHASE
#define finish_stores(self, context) skip
#else
#define finish_stores(self, context) \
	guarded_store(self, context, X, changed_value[of(context, X)]); \
	guarded_store(self, context, Y, changed_value[of(context, Y)])
#endif

/* tm_overtake: by the handler, of thread 0. */
inline overtake(handler) {
	if
	:: overtaken[0] == FINISHED
	:: overtaken[0] != FINISHED && decided[0] ->
		finish_stores(handler, 0);
		disown(handler, 0, X, commit_version[0]);
		disown(handler, 0, Y, commit_version[0]);
		overtaken[0] = FINISHED
	:: else ->
		roll_back(handler, 0);
		atomic { horizon[0] = 0; overtaken[0] = ROLLED_BACK }
	fi
}

inline forget(self) {
	d_step {
		reads[self] = 0;
		owned[self] = 0;
		changed[self] = 0;
		version[of(self, X)] = 0;
		version[of(self, Y)] = 0;
		changed_value[of(self, X)] = 0;
		changed_value[of(self, Y)] = 0;
		commit_version[self] = 0;
		decided[self] = false;
		x_read[self] = UNREAD;
		y_read[self] = UNREAD;
		commits_at[self] = 0;
		begun_at[self] = 0;
		horizon[self] = 0;
#ifndef FRESH_RECORDS_PASS
		first_version[self] = 0;
#endif
		serial_begin[self] = 0;
		mode[self] = NONE
	}
}

inline become_invisible(self) {
	atomic {
		executes(self) && can_store(self) ->
		if
		:: is_visible(self) -> activity[self]++; store_release(self, ACTIVITY(self), activity[self])
		:: else
		fi
	}
}

/* Of a record that was never changed as of any other: none passes where there is no horizon. */
#ifdef FRESH_RECORDS_PASS
#define is_before(record, horizon) ((record) <= (horizon))
#else
#define is_before(record, horizon) ((record) < (horizon))
#endif

proctype context_runs(byte self) {
	byte at, begun, code, word, record, value, before, loaded, restarts, seen, yields_to;
	/* Where to go on after a record is owned, and after the snapshot was moved forward. */
	byte owning, extending;
#define FOR_LOAD 1
#define FOR_STORE 2
#define FOR_COMMIT 3
#define FOR_OWNING 4

#if HANDLER
	if
	:: is_handler(self) -> atomic { !handling && !masked -> handling = true }
	:: else
	fi;
#endif
fetch:
	atomic {
		executes(self) ->
		code = programs[program[self] * LENGTH + at];
		word = code % 8;
		if
		:: is_of(code, BEGIN) || is_of(code, BEGIN_ALONE) -> begun = at; goto begin
		:: is_of(code, BEGIN_OBSTINATE) -> begun = at; obstinate_count++; obstinacy[self] = obstinate_count; goto begin
		:: is_of(code, LOAD_X) || is_of(code, ADD_X) -> goto load_word
		:: is_of(code, STORE_X) -> goto store_word
		:: is_of(code, IF_0) -> at = at + (loaded == 0 -> 1 : 2); goto fetch
		:: is_of(code, IF_NOT_0) -> at = at + (loaded == 0 -> 2 : 1); goto fetch
		:: is_of(code, COMMIT) -> goto commit
		:: is_of(code, CANCEL) && mode[self] != ALONE -> goto restart
		:: is_of(code, CANCEL) && mode[self] == ALONE -> goto end_alone
		:: is_of(code, IRREVOCABLE) -> goto become_irrevocable
		:: is_of(code, PLAIN_STORE_Y) -> goto plain_store
		:: is_of(code, PLAIN_LOAD_Y) -> goto plain_load
		:: code == STOP -> goto stop
		fi
	}

	/* begin_attempt, choose_mode */
begin:
	atomic {
		executes(self) ->
		begun_at[self] = states - 1;
		loaded = 0;
		doomed[self] = 0;
		overtaken[self] = NOT_OVERTAKEN;
		if
		:: is_of(code, BEGIN_ALONE) || restarts >= RESTARTS_MAX && !is_handler(self) -> goto begin_alone
		:: is_of(code, BEGIN_OBSTINATE) && (restarts < RESTARTS_MAX || is_handler(self)) -> mode[self] = OBSTINATE
		:: is_of(code, BEGIN) && restarts < RESTARTS_MAX && restarts >= PESSIMISTIC_MIN -> mode[self] = PESSIMISTIC
		:: else -> mode[self] = OPTIMISTIC
		fi;
	}
	/* tm_wait_while_serial; and a handler that gave way backs off, until its better has ended */
waits_while_serial:
	atomic {
		executes(self) ->
		if
		:: (load(self, SERIAL) & 1) == 0 && (yields_to == 0 || mode[yields_to - 1] != OBSTINATE) ->
			yields_to = 0;
			serial_begin[self] = load(self, SERIAL);
			at++;
			goto fetch
#if HANDLER
		/* tm_overtake_visible */
		:: is_handler(self) && (load(self, SERIAL) & 1) && is_visible(0) && overtaken[0] == NOT_OVERTAKEN
#ifndef ASKED_UNHEEDED
		/* tm_overtake_asked */
		:: is_handler(self) && yields_to != 0 && doomed[0] != 0 && is_visible(0) && overtaken[0] == NOT_OVERTAKEN
#endif
#endif
		fi
	}
#if HANDLER
	overtake(self);
	goto waits_while_serial;
#endif

	/* tm_serial_begin */
begin_alone:
	atomic {
		executes(self) && (memory[SERIAL] & 1) == 0 && fenced(self) ->
		memory[SERIAL]++;
		mask(self, true)
	}
	wait_until_alone(self);
	atomic { executes(self) -> mode[self] = ALONE; begun_at[self] = states - 1; at++; goto fetch }

	/* tm_load */
load_word:
	if
	:: atomic {
		executes(self) && mode[self] == ALONE ->
		loaded = load(self, word);
		if
		:: !(changed[self] & bit(word)) -> saw(self, word, loaded)
		:: else
		fi;
		goto loaded_word
	}
#ifdef TL2
	:: atomic {
		executes(self) && mode[self] != ALONE && (changed[self] & bit(word)) ->
		loaded = changed_value[of(self, word)];
		goto loaded_word
	}
	:: atomic { executes(self) && mode[self] != ALONE && !(changed[self] & bit(word)) -> record = load(self, RECORD(word)) }
#else
	:: atomic { executes(self) && mode[self] != ALONE -> record = load(self, RECORD(word)) }
#endif
	fi;
	/* TM_LOAD_SHARED */
	atomic { executes(self) -> value = load(self, word) }
	atomic {
		executes(self) ->
		if
#ifndef NO_SECOND_LOOK
		:: load(self, RECORD(word)) != record -> goto load_slow
#endif
		:: else
		fi;
		if
		:: is_before(record, horizon[self]) -> goto read_word
		:: else
		fi;
		if
		:: record == owned_by(self) -> goto read_own
		:: is_first(self) && !(record & OWNED) -> goto read_first
		:: else
		fi
	}
load_slow:
	atomic {
		executes(self) ->
		RESTART_IF_DOOMED(self);
		record = load(self, RECORD(word));
		value = 0;
		if
		:: record != owned_by(self) && (record & OWNED) -> owning = FOR_LOAD; goto meet_owner
		:: !(record & OWNED) && mode[self] != OPTIMISTIC -> owning = FOR_LOAD; goto own
		:: else
		fi
	}
	atomic { executes(self) -> value = load(self, word) }
	atomic {
		executes(self) ->
		if
#ifndef NO_SECOND_LOOK
		:: load(self, RECORD(word)) != record -> goto load_slow
#endif
		:: else
		fi;
		if
		:: record == owned_by(self) -> goto read_own
		:: record != owned_by(self) && is_first(self) -> goto read_first
		:: else
		fi;
		if
		:: record >= horizon[self] -> extending = FOR_LOAD; goto extend
		:: else -> goto read_word
		fi
	}
	/* tm_read_first: while another ran alone it changed words and not their records. */
read_first:
	atomic {
		executes(self) ->
#ifndef FIRST_WITHOUT_SERIAL
		if
		:: load(self, SERIAL) != serial_begin[self] -> goto restart_for_serial
		:: else
		fi;
#endif
		first_version[self] = record
	}
read_word:
	atomic {
		executes(self) ->
		reads[self] = reads[self] | bit(word);
		loaded = value;
		saw(self, word, loaded);
		goto loaded_word
	}
read_own:
	atomic {
		executes(self) ->
		loaded = value;
		if
		:: !(changed[self] & bit(word)) -> saw(self, word, loaded)
		:: else
		fi
	}
loaded_word:
	atomic {
		executes(self) ->
		value = 0;
		record = 0;
		if
		:: is_of(code, ADD_X) -> goto store_word
		:: else -> at++; goto fetch
		fi
	}

	/* tm_meet_owner: `record` is another's */
meet_owner:
	atomic {
		executes(self) ->
		RESTART_IF_DOOMED(self);
		if
		:: mode[self] != OBSTINATE -> goto restart
		:: mode[self] != OBSTINATE && load(self, RECORD(word)) != record
#if HANDLER
		:: has_interrupted(self, owner_of(record)) -> goto overtake_owner
#endif
		:: mode[self] == OBSTINATE && !has_interrupted(self, owner_of(record)) ->
			if
			:: mode[owner_of(record)] == OBSTINATE && obstinacy[owner_of(record)] < obstinacy[self] ->
				yields_to = (is_handler(self) -> owner_of(record) + 1 : 0);
				goto restart
			:: else -> doomed[owner_of(record)] = self + 1; horizon[owner_of(record)] = 0
			fi
		fi
	}
	atomic {
		executes(self) ->
		if
#ifndef SERIAL_UNHEEDED
		:: load(self, RECORD(word)) == record && load(self, SERIAL) != serial_begin[self] -> goto restart_for_serial
#endif
#if HANDLER
		:: load(self, RECORD(word)) == record && is_handler(self) && doomed[0] != 0 && overtaken[0] == NOT_OVERTAKEN ->
			goto overtake_owner
#endif
		:: load(self, RECORD(word)) == record && may_not_go_on(self) -> goto restart
		:: load(self, RECORD(word)) == record && mode[self] == OBSTINATE && doomed[owner_of(record)] == 0 -> goto meet_owner
		:: load(self, RECORD(word)) != record
		fi
	}
met_owner:
	atomic {
		executes(self) ->
		record = 0;
		if
		:: owning == FOR_LOAD -> owning = 0; goto load_slow
		:: else -> goto own
		fi
	}
#if HANDLER
overtake_owner:
	overtake(self);
	goto met_owner;
#endif

	/* tm_extend, to `record` */
extend:
	atomic { executes(self) -> RESTART_IF_DOOMED(self); value = 0 }
	if
	:: is_visible(self)
	:: else ->
		/* tm_become_visible */
		atomic { executes(self) && can_store(self) -> activity[self]++; store(self, ACTIVITY(self), activity[self]) }
		atomic {
#ifdef VISIBLE_WITHOUT_FENCE
			executes(self) ->
#else
			executes(self) && fenced(self) ->
#endif
			if
			:: load(self, SERIAL) != serial_begin[self] -> goto restart_for_serial
			:: else
			fi
		}
	fi;
	atomic {
		executes(self) && settled(self, CLOCK) ->
#ifndef FIRST_IS_LATER
		if
		:: horizon[self] == 0 && reads[self] != 0 && record < first_version[self] -> record = first_version[self]
		:: else
		fi;
#endif
#ifdef CLOCK_STAYS
		value = record;
#else
		if
		:: memory[CLOCK] < record -> memory[CLOCK] = record
		:: else
		fi;
		value = memory[CLOCK];
#endif
		record = 0
	}
#ifndef EXTEND_WITHOUT_LOOKING
	validate();
#endif
	atomic { executes(self) -> horizon[self] = value + 1; value = 0 }
	atomic {
		executes(self) ->
		RESTART_IF_DOOMED(self);
		if
		:: extending == FOR_LOAD -> extending = 0; goto load_slow
		:: else -> extending = 0; goto own_extended
		fi
	}

	/* tm_own: the record of `word` */
own:
	atomic {
		executes(self) ->
		RESTART_IF_DOOMED(self);
		record = load(self, RECORD(word));
		if
		:: record & OWNED -> goto meet_owner
		:: else
		fi;
#ifndef OWN_WITHOUT_LOOKING
		if
		:: reads[self] != 0 && horizon[self] == 0 && reads[self] == bit(word) ->
			if
			:: record != first_version[self] -> goto restart
			:: else
			fi
		:: reads[self] != 0 && (horizon[self] == 0 && reads[self] != bit(word) ||
		   horizon[self] != 0 && record >= horizon[self]) -> extending = FOR_OWNING; goto extend
		:: else
		fi
#endif
	}
	goto take;
own_extended:
	atomic {
		executes(self) ->
		record = load(self, RECORD(word));
		if
		:: record >= horizon[self] -> goto own
		:: else
		fi
	}
take:
	/* Becomes visible, then takes the record, then looks whether it may. */
	if
	:: is_visible(self)
	:: else -> atomic { executes(self) && can_store(self) -> activity[self]++; store(self, ACTIVITY(self), activity[self]); seen = 1 }
	fi;
	atomic {
		executes(self) && fenced(self) ->
		if
		:: memory[RECORD(word)] == record ->
			memory[RECORD(word)] = owned_by(self);
			owned[self] = owned[self] | bit(word);
			version[of(self, word)] = record
		:: else -> value = 1
		fi;
		record = 0
	}
	atomic {
		executes(self) ->
#ifndef OWN_WITHOUT_SERIAL
		if
		:: seen && load(self, SERIAL) != serial_begin[self] -> seen = 0; value = 0; goto restart_for_serial
		:: else
		fi;
#endif
		seen = 0;
		if
		:: value -> value = 0; goto own
		:: else
		fi;
		if
		:: owning == FOR_LOAD -> owning = 0; goto load_slow
		:: owning == FOR_STORE -> owning = 0; goto store_owned
		:: else -> owning = 0; goto commit
		fi
	}

	/* tm_store: 1 more than what was loaded */
store_word:
	atomic {
		executes(self) && can_store(self) ->
		if
		:: mode[self] == ALONE ->
			store(self, word, loaded + 1);
			changed[self] = changed[self] | bit(word);
			at++;
			goto fetch
		:: else
		fi;
#ifdef TL2
		changed[self] = changed[self] | bit(word);
		changed_value[of(self, word)] = loaded + 1;
		at++;
		goto fetch
#else
		if
		:: load(self, RECORD(word)) != owned_by(self) -> owning = FOR_STORE; goto own
		:: else
		fi
#endif
	}
store_owned:
#ifdef TWO_PHASE
	/* tm_remember */
	atomic {
		executes(self) ->
		if
		:: !(changed[self] & bit(word)) ->
			changed_value[of(self, word)] = load(self, word);
			changed[self] = changed[self] | bit(word)
		:: else
		fi
	}
	atomic {
		executes(self) && can_store(self) ->
		if
		:: may_store(self, self) -> store(self, word, loaded + 1)
		:: else -> goto restart
		fi;
		at++;
		goto fetch
	}
#else
	goto fetch;
#endif

	/* tm_algorithm_commit */
commit:
	atomic {
		executes(self) ->
		if
		:: mode[self] == ALONE -> goto end_alone
		:: else
		fi;
#ifdef TL2
		/* own_all */
		if
		:: (changed[self] & ~owned[self]) & 1 -> word = X; owning = FOR_COMMIT; goto own
		:: !((changed[self] & ~owned[self]) & 1) && ((changed[self] & ~owned[self]) & 2) ->
			word = Y;
			owning = FOR_COMMIT;
			goto own
		:: else
		fi;
#endif
		word = 0;
		if
		:: owned[self] == 0 ->
#ifndef COMMIT_WITHOUT_SERIAL
			if
			:: horizon[self] == 0 && load(self, SERIAL) != serial_begin[self] -> goto restart_for_serial
			:: else
			fi;
#endif
			assert_opaque(self);
			goto committed
		:: else
		fi;
		/* Its reads stand or fall with this moment. */
		commits_at[self] = states;
		commit_version[self] = next_version(self, self, load(self, CLOCK))
	}
#ifndef NO_VALIDATION
	validate();
#endif
	atomic { executes(self) -> RESTART_IF_DOOMED(self) }
	atomic {
		executes(self) ->
		if
		:: overtaken[self] != NOT_OVERTAKEN -> goto restart
		:: else
		fi;
		decided[self] = true;
		if
		:: changed[self] != 0 ->
#ifdef TL2
			write_down(self, changed[self], changed_value[of(self, X)], changed_value[of(self, Y)])
#else
			value = load(self, X);
			loaded = load(self, Y);
			write_down(self, changed[self], value, loaded);
			value = 0
#endif
		:: else -> d_step { assert_latest(self, commits_at[self]) }
		fi
	}
#ifdef RELEASE_BEFORE_STORES
	guarded_release(self, X);
	guarded_release(self, Y);
#endif
#ifdef TL2
	guarded_store(self, self, X, changed_value[of(self, X)]);
	guarded_store(self, self, Y, changed_value[of(self, Y)]);
#endif
	guarded_release(self, X);
	guarded_release(self, Y);

committed:
	become_invisible(self);
	if
	:: changed[self] != 0 && !is_handler(self) ->
#ifndef NO_WAIT_FOR_READERS
		atomic { forget(self) }
		wait_for_reader(self, 0);
		wait_for_reader(self, 1);
#if CONTEXTS > 2
		wait_for_reader(self, 2);
#endif
#endif
	:: else
	fi;
	atomic {
		executes(self) ->
		forget(self);
		restarts = 0;
		loaded = 0;
		at++;
		goto fetch
	}

	/* tm_serial_end */
end_alone:
	atomic {
		executes(self) && can_store(self) ->
		commits_at[self] = states;
		if
		:: changed[self] != 0 ->
			value = load(self, X);
			loaded = load(self, Y);
			write_down(self, changed[self], value, loaded);
			value = 0
		:: else
		fi;
		value = load(self, SERIAL) + 1; store_release(self, SERIAL, value); value = 0;
		mask(self, false);
		forget(self);
		restarts = 0;
		loaded = 0;
		at++;
		goto fetch
	}

	/* tm_become_irrevocable, tm_serial_try_upgrade */
become_irrevocable:
	atomic {
		executes(self) ->
		if
		:: mode[self] == ALONE -> at++; goto fetch
		:: else
		fi;
		restarts = RESTARTS_MAX
	}
	atomic {
		executes(self) && fenced(self) ->
		if
		:: memory[SERIAL] != serial_begin[self] -> goto restart
		:: else -> memory[SERIAL]++; mask(self, true)
		fi
	}
	wait_until_alone(self);
	/* tm_algorithm_become_direct */
	atomic {
		executes(self) ->
		commits_at[self] = states;
		commit_version[self] = next_version(self, self, load(self, CLOCK));
		if
		:: overtaken[self] != NOT_OVERTAKEN || (reads[self] & 1) && memory[RECORD(X)] >= horizon_of(self) && memory[RECORD(X)] != owned_by(self) ||
		   (reads[self] & 2) && memory[RECORD(Y)] >= horizon_of(self) && memory[RECORD(Y)] != owned_by(self) ->
			goto invalid
		:: else
		fi
	}
#ifdef TL2
	guarded_store(self, self, X, changed_value[of(self, X)]);
	guarded_store(self, self, Y, changed_value[of(self, Y)]);
#endif
	disown(self, self, X, commit_version[self]);
	disown(self, self, Y, commit_version[self]);
	become_invisible(self);
	atomic { executes(self) -> mode[self] = ALONE; at++; goto fetch }
invalid:
	atomic { executes(self) && can_store(self) -> value = load(self, SERIAL) + 1; store_release(self, SERIAL, value); value = 0; mask(self, false); goto restart }

	/* tm_restart, rollback */
restart_for_serial:
	restarts--;
restart:
	atomic {
		executes(self) ->
		if
		:: is_handler(self) && doomed[self] != 0 -> yields_to = doomed[self]
		:: else
		fi;
		restarts++;
		word = 0; record = 0; value = 0; before = 0; loaded = 0; seen = 0; owning = 0;
		extending = 0;
		assert(memory[CLOCK] < OWNED / 2)
	}
	roll_back(self, self);
	become_invisible(self);
	atomic {
		executes(self) ->
		forget(self);
		if
		:: is_of(code, CANCEL) -> restarts = 0; at++; goto fetch
		:: else -> at = begun; code = programs[program[self] * LENGTH + at]; goto begin
		fi
	}

plain_store:
	atomic {
		executes(self) && can_store(self) ->
		store(self, Y, 7);
		commits_at[self] = states;
		write_down(self, 2, 0, 7);
		commits_at[self] = 0;
		at++;
		goto fetch
	}
plain_load:
	atomic { executes(self) -> assert(load(self, Y) == y_of[states - 1]); at++; goto fetch }

stop:
	atomic {
#if HANDLER
		if
		:: is_handler(self) -> handling = false
		:: else
		fi;
#endif
		ended++
	}
}

hidden byte chosen;

/* One program out of the set, and not one below `least`. */
inline choose(context, set, least) {
	chosen = least;
	do
	:: (set) & (1 << chosen) -> break
	:: ((set) >> (chosen + 1)) != 0 -> chosen++
	od;
	program[context] = chosen
}

init {
	byte one;

	atomic {
		memory[CLOCK] = 1;
		states = 1;
		choose(0, FIRST, 0);
		one = 1;
		do
		:: one < THREADS ->
			if
			:: one == 1 -> choose(one, OTHERS, 0)
			:: else -> choose(one, OTHERS, program[one - 1])
			fi;
			one++
		:: else -> break
		od;
#if HANDLER
		choose(THREADS, HANDLER, 0);
#endif
		one = 0;
		do
		:: one < CONTEXTS ->
			x_read[one] = UNREAD;
			y_read[one] = UNREAD;
			run context_runs(one);
#if STORES
			run stores_leave(one);
#endif
			one++
		:: else -> break
		od
	}
	ended == CONTEXTS;
	one = 0;
	do
	:: one < THREADS -> fenced(one); one++
	:: else -> break
	od;
	assert(memory[X] == x_of[states - 1] && memory[Y] == y_of[states - 1]);
	assert((memory[SERIAL] & 1) == 0 && !(memory[RECORD(X)] & OWNED) && !(memory[RECORD(Y)] & OWNED))
}

ltl all_end { <> (ended == CONTEXTS) }

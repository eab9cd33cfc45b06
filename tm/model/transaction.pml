/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The common part of TL2 (tl2.pml) and two-phase locking (two_phase.pml), and their differences: software transactions
 * (tm/stm/transaction.c, reading.c, serial.c, interrupt.c). Labels and comments are the functions' names there. There
 * are two words, X and Y, each with its own record. Loads take effect in order; stores as in memory.pml. With a
 * handler, memory is sequentially consistent.
 *
 * Each context runs one program (programs.pml), and every choice of programs is walked. The model checks:
 *   - opacity: it records in order the states that committed transactions, serial ones and plain stores make. The reads
 *     of an attempt, whether it commits or not, are at every moment part of one of these states, and not of one that
 *     was over when the attempt began;
 *   - the reads of a committing transaction are the latest state except for its own changes;
 *   - a transaction that runs alone sees the latest state, and no other sees a state between its stores;
 *   - privatization and publication: plain accesses after and before a transaction that hides or shows Y by changing X;
 *   - at the end memory is the latest state, and no record is owned. No context waits for ever (an invalid end state);
 *     every context ends (`all_end`).
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
/* The version before it was owned; the value before the change (2PL), or after (TL2); by context and word. */
byte version[CONTEXTS * 2], changed_value[CONTEXTS * 2];
byte horizon[CONTEXTS], first_version[CONTEXTS], serial_begin[CONTEXTS], commit_version[CONTEXTS];
bool decided[CONTEXTS];
/* The context that made it, plus 1. */
byte doomed[CONTEXTS];
#define NOT_OVERTAKEN 0
#define ROLLED_BACK 1
#define FINISHED 2
byte overtaken[CONTEXTS];
/* The context's own copy of the word that other contexts see. */
byte activity[CONTEXTS];
/* Of two obstinate transactions the older one, with the lower number, wins. */
byte obstinacy[CONTEXTS], obstinate_count;

#define bit(word) (1 << (word))
#define of(context, word) ((context) * 2 + (word))
#define is_visible(self) (activity[self] & 1)

#include "states.pml"

#include "programs.pml"

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

#include "steps.pml"

/* The version of a record that was never changed, as of any other: none passes without a horizon. */
#ifdef FRESH_RECORDS_PASS
#define is_before(record, horizon) ((record) <= (horizon))
#else
#define is_before(record, horizon) ((record) < (horizon))
#endif

proctype context_runs(byte self) {
	byte at, begun, code, word, record, value, before, loaded, restarts, seen, yields_to;
	/* The point to continue at after a record is owned, and after the snapshot has moved forward. */
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
	/* tm_wait_while_serial; a handler that gave way also backs off, until the winner has ended */
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
	/* tm_read_first: a transaction that ran alone has changed words without their records. */
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

	/* tm_meet_owner: another context owns `record` */
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
	/* Becomes visible, then takes the record, then checks whether it may. */
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

	/* tm_store: 1 more than the loaded value */
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
		/* Its reads are valid or not at this moment. */
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

/* One program of the set, and none below `least`. */
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

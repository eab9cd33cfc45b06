/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cooperative transactional spinlocks of TxLinux as a Promela model, for Spin to walk in every order of every step ("TxLinux: Using and
 * Managing Hardware Transactional Memory in an Operating System", SOSP 2007, section 4, tables 2 and 3; here with queued spinlocks and
 * with a bound to every wait).
 *
 * Each context runs one program out of the table below, and every choice of programs is walked. What is checked:
 *   - mutual exclusion: who holds a lock finds no live section of it, and no section begins while it is held;
 *   - each addition to a shared word arrives exactly once, and each input or output takes place once, in no transaction;
 *   - cx_end ends what was begun, a transaction or an exclusive section;
 *   - nobody waits for ever (an invalid end state), and nobody turns for ever (the claim `all_end`).
 * At the end of a run the walked transitions of table 3 are printed: operation, state of the lock before and after, and how often.
 *
 * Parameters (spin -D): THREADS; HANDLERS (1: an interrupt handler that comes to thread 0 at any time); FIRST, OTHERS and HANDLER, sets of
 * programs as bits. And what is broken on purpose, to see it found: END_EARLY, EXCLUSIVE_WITHOUT_WORD, NO_SUBSCRIPTION,
 * UNBOUNDED_WAIT, INTERRUPTS_STAY_ON.
 */

#ifndef THREADS
#define THREADS 2
#endif
#ifndef HANDLERS
#define HANDLERS 0
#endif
#ifndef HANDLER
#define HANDLER 0
#endif
#define CONTEXTS (THREADS + HANDLERS)

#ifdef NO_SUBSCRIPTION
#define DOES_SUBSCRIBE false
#else
#define DOES_SUBSCRIBE true
#endif

/* Words of memory: three locks and two counters. Lock C is taken before A and B. */
#define A 0
#define B 1
#define C 2
#define LOCKS 3
#define X 3
#define Y 4
#define WORDS 5

/* A lock word, as that of a queued spinlock: held, and that somebody queues. */
#define HELD 1
#define QUEUED 2
chan queue[LOCKS] = [CONTEXTS] of { byte };

/* What is tried before a lock is taken: restarts of a transaction, polls of a taken lock, attempts at an exclusive lock. */
#define RESTARTS_MAX 1
#define POLLS_MAX 1
#define ATTEMPTS_MAX 1

#include "../../tm/model/hardware.pml"

/* In which section of a lock a context is, as an onlooker knows it. */
#define OUTSIDE 0
#define IN_TRANSACTION 1
#define EXCLUSIVE 2
/* Released by a transaction that has not committed yet: still exclusive for all others. */
#define RELEASED 3
byte section[CONTEXTS * LOCKS];
#define section_of(context, lock) section[(context) * LOCKS + (lock)]

inline leave_lost_sections(context) {
	losing_lock = 0;
	do
	:: losing_lock < LOCKS ->
		if
		:: section_of(context, losing_lock) == IN_TRANSACTION -> section_of(context, losing_lock) = OUTSIDE
		:: section_of(context, losing_lock) == RELEASED -> section_of(context, losing_lock) = EXCLUSIVE
		:: else
		fi;
		losing_lock++
	:: else -> break
	od
}

inline leave_committed_sections(context) {
	losing_lock = 0;
	do
	:: losing_lock < LOCKS ->
		if
		:: section_of(context, losing_lock) == RELEASED -> section_of(context, losing_lock) = OUTSIDE
		:: else
		fi;
		losing_lock++
	:: else -> break
	od
}

/* Table 3: which operation brought a lock from which state to which. Counted outside the state, so that it costs none. */
#define OPTIMISTIC 0
#define OPTIMISTIC_NESTED 1
#define EXCLUSIVELY 2
#define EXCLUSIVELY_NESTED 3
#define END_TRANSACTIONAL 4
#define END_EXCLUSIVE 5
/* The causes of restarts follow. */
#define RESTART 5

hidden byte lock_before, lock_after, operation, counted_lock;
#define lock_state(lock) (committed(lock) != 0 -> 2 : (readers[lock] != 0 -> 1 : 0))

c_decl {
	static unsigned long walked[10][3][3];

	__attribute__((destructor)) static void print_walked(void)
	{
		static const char *const operations[] = {
			"optimistic", "optimistic-nested", "exclusive", "exclusive-nested", "end-transactional", "end-exclusive",
			"restart-conflict", "restart-nontransactional", "restart-explicit", "restart-need-exclusive",
		};
		static const char *const states[] = { "free", "transactional", "exclusive" };

		for (int operation = 0; operation < 10; operation++)
			for (int before = 0; before < 3; before++)
				for (int after = 0; after < 3; after++)
					if (walked[operation][before][after])
						printf("walked: %s %s %s %lu\n", operations[operation], states[before], states[after],
						       walked[operation][before][after]);
	}
}

inline count(what, lock) {
	operation = what;
	lock_after = lock_state(lock);
	c_code { walked[operation][lock_before][lock_after]++; }
}

/* A transaction is about to lose: as each lock of its read set will find it. */
inline count_restart(context, cause) {
	counted_lock = 0;
	do
	:: counted_lock < LOCKS ->
		if
		:: readers[counted_lock] & mark_of(context) ->
			operation = RESTART + cause;
			c_code { walked[operation][1][now.readers[counted_lock] & (now.readers[counted_lock] - 1) ? 1 : 0]++; }
		:: else
		fi;
		counted_lock++
	:: else -> break
	od
}

/* Programs: an operation, eight times its number, and the word that it is about. */
#define STOP 0
#define OPT_A 8
#define OPT_B 9
#define OPT_C 10
#define EXC_A 16
#define EXC_B 17
#define END_A 24
#define END_B 25
#define END_C 26
#define ADD_X 35
#define ADD_Y 36
#define IO 40
/* Where the lock is not to be had at once, goes on behind the two operations that follow. */
#define TRY_A 48
/* With interrupts off. */
#define OPT_IRQ_A 56
#define EXC_IRQ_A 64
#define END_IRQ_A 72
/* A raw lock that is safe in a transaction: a lock without one, and in one subscribed to without a section of its own. */
#define RAW_B 81
#define END_RAW_B 89
#define is_of(code, name) ((code) / 8 == (name) / 8)

#define PROGRAMS 20
#define LENGTH 9
hidden byte programs[PROGRAMS * LENGTH] = {
	/*  0 */ OPT_A, ADD_X, END_A, STOP, STOP, STOP, STOP, STOP, STOP,
	/*  1 */ EXC_A, ADD_X, IO, END_A, STOP, STOP, STOP, STOP, STOP,
	/*  2 */ OPT_A, ADD_X, IO, END_A, STOP, STOP, STOP, STOP, STOP,
	/*  3 */ TRY_A, ADD_X, END_A, STOP, STOP, STOP, STOP, STOP, STOP,
	/*  4 */ OPT_A, ADD_X, OPT_B, ADD_Y, END_B, END_A, STOP, STOP, STOP,
	/*  5 */ EXC_A, ADD_X, OPT_B, ADD_Y, END_B, END_A, STOP, STOP, STOP,
	/*  6 */ OPT_A, ADD_X, EXC_B, ADD_Y, END_B, END_A, STOP, STOP, STOP,
	/*  7 */ OPT_A, ADD_X, OPT_B, END_A, ADD_Y, END_B, STOP, STOP, STOP,
	/*  8 */ EXC_A, ADD_X, OPT_B, END_A, ADD_Y, END_B, STOP, STOP, STOP,
	/*  9 */ OPT_A, OPT_B, ADD_Y, IO, END_B, END_A, STOP, STOP, STOP,
	/* 10 */ OPT_B, ADD_Y, END_B, STOP, STOP, STOP, STOP, STOP, STOP,
	/* 11 */ EXC_B, ADD_Y, END_B, STOP, STOP, STOP, STOP, STOP, STOP,
	/* 12, 13: the deadlock of the paper's section 5.3, where waits have no bound */
	/* 12 */ OPT_C, OPT_A, ADD_X, END_A, OPT_B, ADD_Y, END_B, END_C, STOP,
	/* 13 */ EXC_B, EXC_A, ADD_X, END_A, END_B, STOP, STOP, STOP, STOP,
	/* 14 */ OPT_IRQ_A, ADD_X, END_IRQ_A, STOP, STOP, STOP, STOP, STOP, STOP,
	/* 15 */ EXC_IRQ_A, ADD_X, END_IRQ_A, STOP, STOP, STOP, STOP, STOP, STOP,
	/* 16 */ OPT_B, ADD_Y, OPT_IRQ_A, ADD_X, END_IRQ_A, END_B, STOP, STOP, STOP,
	/* 17 */ OPT_B, TRY_A, ADD_X, END_A, ADD_Y, END_B, STOP, STOP, STOP,
	/* 18 */ OPT_A, ADD_X, RAW_B, ADD_Y, END_RAW_B, END_A, STOP, STOP, STOP,
	/* 19 */ RAW_B, ADD_Y, END_RAW_B, STOP, STOP, STOP, STOP, STOP, STOP
};

byte program[CONTEXTS];
byte additions[2];
byte ended;
/* The handler runs; interrupts of hart 0 are off. */
bool handling, masked;

#if HANDLERS
#define executes(context) ((context) == 0 -> !handling : ((context) == THREADS -> handling : true))
#define mask(context, value) if :: (context) == 0 -> masked = value :: else fi
#else
#define executes(context) true
#define mask(context, value) skip
#endif

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

/* The context goes on, unless its transaction has lost since its last step. */
#define STEP(context) executes(context) -> if :: lost[context] != 0 -> goto restarted :: else fi
#define RESTART_IF_LOST(context) if :: lost[context] != 0 -> goto restarted :: else fi

proctype context_runs(byte self) {
	byte at, code, lock, value, restarts, polls, attempts, begun_at, given_up;
	bool masked_at_begin;

#if HANDLERS
	if
	:: self == THREADS -> atomic { !handling && !masked -> handling = true }
	:: else
	fi;
#endif
fetch:
	atomic {
		STEP(self);
		code = programs[program[self] * LENGTH + at];
		lock = code % 8;
		if
		:: is_of(code, OPT_A) || is_of(code, TRY_A) || is_of(code, OPT_IRQ_A) -> goto optimistic
		:: is_of(code, EXC_A) || is_of(code, EXC_IRQ_A) -> goto exclusive
		:: is_of(code, RAW_B) && depth[self] > 0 -> goto poll
		:: is_of(code, RAW_B) && depth[self] == 0 -> goto attempt
		:: is_of(code, END_A) || is_of(code, END_IRQ_A) || is_of(code, END_RAW_B) -> goto end
		:: is_of(code, ADD_X) -> goto addition
		:: code == IO -> goto input_output
		:: code == STOP -> goto stop
		fi
	}

optimistic:
	atomic {
		STEP(self);
		if
		:: depth[self] == 0 ->
			restarts = 0;
			begun_at = at;
			given_up = 0;
			masked_at_begin = masked
		:: else
		fi;
		xbegin(self);
		polls = 0;
		goto poll
	}

restarted:
	atomic {
		executes(self) ->
		value = 0;
		attempts = 0;
		given_up = 0;
		at = begun_at;
		code = programs[program[self] * LENGTH + at];
		lock = code % 8;
		depth[self] = 1;
		mask(self, masked_at_begin);
		restarts++;
		polls = 0;
		if
		:: lost[self] == NEED_EXCLUSIVE || restarts > RESTARTS_MAX ->
			lost[self] = 0;
			xend(self);
			restarts = 0;
			goto exclusive
		:: else ->
			lost[self] = 0;
			goto poll
		fi
	}

poll:
	atomic {
		STEP(self);
		lock_before = lock_state(lock);
		xtest_zero(self, lock);
		RESTART_IF_LOST(self);
		if
		:: depth[self] == 1 && !is_of(code, RAW_B) -> count(OPTIMISTIC, lock)
		:: else -> count(OPTIMISTIC_NESTED, lock)
		fi;
		if
		:: read_value == 0 ->
			enter(self, lock, IN_TRANSACTION);
#ifdef END_EARLY
			xend(self);
#endif
			if
			:: is_of(code, OPT_IRQ_A) -> goto masking
			:: else -> goto advance
			fi
		:: read_value != 0 && is_of(code, TRY_A) ->
			/* trylock: it is not there. */
			xend(self);
			given_up++;
			at = at + 2;
			goto advance
		:: read_value != 0 && !is_of(code, TRY_A) && polls < POLLS_MAX ->
#ifndef UNBOUNDED_WAIT
			polls++;
#endif
			goto poll
		:: read_value != 0 && !is_of(code, TRY_A) && polls == POLLS_MAX && depth[self] == 1 &&
		   !is_of(code, RAW_B) ->
			xend(self);
			goto exclusive
		:: read_value != 0 && !is_of(code, TRY_A) && polls == POLLS_MAX &&
		   (depth[self] > 1 || is_of(code, RAW_B)) ->
			lose(self, EXPLICIT);
			goto restarted
		fi
	}

masking:
	/* Inside the transaction, so that a restart undoes it. */
	atomic {
		STEP(self);
#ifndef INTERRUPTS_STAY_ON
		mask(self, true);
#endif
		goto advance
	}

exclusive:
	atomic {
		STEP(self);
		lock_before = lock_state(lock);
		if
		:: depth[self] > 0 ->
			lose(self, NEED_EXCLUSIVE);
			count(EXCLUSIVELY_NESTED, lock);
			goto restarted
		:: else
		fi;
#ifndef INTERRUPTS_STAY_ON
		if
		:: is_of(code, OPT_IRQ_A) || is_of(code, EXC_IRQ_A) -> mask(self, true)
		:: else
		fi;
#endif
		attempts = 0
	}
attempt:
	atomic {
		STEP(self);
		lock_before = lock_state(lock);
#ifdef EXCLUSIVE_WITHOUT_WORD
		attempts = 0;
		goto entered;
#endif
		if
		:: is_of(code, RAW_B) ->
			/* A compare-and-swap of nobody's asks nobody. */
			load(self, lock);
			refused = false;
			if
			:: read_value == 0 -> store(self, lock, HELD)
			:: else
			fi
		:: else -> xcas_zero(self, lock, HELD)
		fi;
		count(EXCLUSIVELY, lock);
		if
		:: !refused && read_value == 0 -> goto entered
		:: refused && attempts < ATTEMPTS_MAX ->
#ifndef UNBOUNDED_WAIT
			attempts++;
#endif
			goto attempt
		:: else
		fi;
		/* A trylock whose transaction was hopeless takes the lock or leaves it. */
		if
		:: is_of(code, TRY_A) ->
			given_up++;
			attempts = 0;
			at = at + 2;
			goto advance
		:: else
		fi
	}
	atomic {
		STEP(self);
		attempts = 0;
		lock_before = lock_state(lock);
		store(self, lock, memory[lock] | QUEUED);
		count(EXCLUSIVELY, lock);
		queue[lock]!self
	}
wait_for_turn:
	atomic {
		executes(self) && queue[lock]?[eval(self)] && (writer[lock] != 0 || !(memory[lock] & HELD)) ->
		load(self, lock);
		if
		:: read_value & HELD -> goto wait_for_turn
		:: else
		fi;
		queue[lock]?eval(self);
		store(self, lock, (len(queue[lock]) > 0 -> HELD | QUEUED : HELD));
		goto entered
	}
entered:
	atomic {
		attempts = 0;
		polls = 0;
		enter(self, lock, EXCLUSIVE);
		goto advance
	}

end:
	atomic {
		STEP(self);
		lock_before = lock_state(lock);
		load(self, lock);
		RESTART_IF_LOST(self);
		if
		:: read_value == 0 ->
			assert(section_of(self, lock) == IN_TRANSACTION);
			section_of(self, lock) = OUTSIDE;
#ifndef END_EARLY
			if
			:: !is_of(code, END_RAW_B) -> xend(self)
			:: else
			fi;
#endif
			count(END_TRANSACTIONAL, lock);
			goto advance
		:: else -> assert(section_of(self, lock) == EXCLUSIVE)
		fi
	}
	atomic {
		STEP(self);
		lock_before = lock_state(lock);
		store(self, lock, memory[lock] & ~HELD);
		RESTART_IF_LOST(self);
		section_of(self, lock) = (depth[self] > 0 -> RELEASED : OUTSIDE);
		count(END_EXCLUSIVE, lock);
		goto advance
	}

addition:
	atomic {
		STEP(self);
		load(self, lock);
		RESTART_IF_LOST(self);
		value = read_value
	}
	atomic {
		STEP(self);
		store(self, lock, value + 1);
		RESTART_IF_LOST(self);
		value = 0;
		goto advance
	}

input_output:
	atomic {
		STEP(self);
		if
		:: depth[self] > 0 ->
			lose(self, NEED_EXCLUSIVE);
			goto restarted
		:: else -> goto advance
		fi
	}

advance:
	atomic {
		STEP(self);
		if
		:: is_of(code, END_IRQ_A) -> mask(self, false)
		:: else
		fi;
		if
		:: depth[self] == 0 ->
			additions[0] = additions[0] - given_up;
			given_up = 0;
			begun_at = 0;
			masked_at_begin = false
		:: else
		fi;
		polls = 0;
		code = 0;
		lock = 0;
		at++;
		goto fetch
	}

stop:
	atomic {
		assert(depth[self] == 0);
#if HANDLERS
		if
		:: self == THREADS -> handling = false
		:: else
		fi;
#endif
		ended++
	}
}

hidden byte chosen, position;

/* One program out of the set, and not one below `least`. */
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
			/* The others are all alike: one order of their programs is enough. */
			if
			:: one == 1 -> choose(one, OTHERS, 0)
			:: else -> choose(one, OTHERS, program[one - 1])
			fi;
			one++
		:: else -> break
		od;
#if HANDLERS
		choose(THREADS, HANDLER, 0);
#endif
		one = 0;
		do
		:: one < CONTEXTS ->
			run context_runs(one);
			one++
		:: else -> break
		od
	}
	ended == CONTEXTS ->
	assert(memory[A] == 0 && memory[B] == 0 && memory[C] == 0);
	assert(memory[X] == additions[0] && memory[Y] == additions[1])
}

ltl all_end { <> (ended == CONTEXTS) }

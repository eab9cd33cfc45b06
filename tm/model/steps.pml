/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A part of transaction.pml: the common steps of several points in a transaction's life. A context is `self`, or
 * another that `self` acts for.
 */

/* tm_next_version: looks at the clock after all records are owned. */
#define next_version(self, context, clock) \
	((owned[context] & 1) && version[of(context, X)] > (clock) && \
	 (!(owned[context] & 2) || version[of(context, X)] >= version[of(context, Y)]) -> version[of(context, X)] : \
	 ((owned[context] & 2) && version[of(context, Y)] > (clock) -> version[of(context, Y)] : (clock))) + 1

#define horizon_of(self) (horizon[self] == 0 -> first_version[self] + 1 : horizon[self])

/* For one of the read records: whether every change of it was before the horizon. */
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

/* Waits until another context cannot disturb one that runs alone (wait_until_alone). */
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

/* tm_wait_for_readers, for one reader */
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
/* A handler that finishes a commit skips the words whose records the commit has released. */
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

/* tm_algorithm_rollback, of the context itself or of the interrupted one. */
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
	/*
	 * The log is empty before any record is released: a handler that comes now must not undo a word that may belong to
	 * another transaction by then.
	 */
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

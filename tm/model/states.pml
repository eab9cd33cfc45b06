/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Of transaction.pml: the states that committed transactions made, in order, and whether what an attempt has read is one of them. */

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

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Hardware transactions as software sees them (docs/xmetatm.md): memory of a few words, of which transactions keep read and write sets.
 *
 * A context is a thread of control that can have one transaction: a thread, or an interrupt handler above a thread. Every inline
 * below is one step of the machine, and its caller makes it atomic.
 *
 * The contention manager is arbitrary: both answers are tried for each decision. The results hold for every manager.
 */

/* Why a transaction restarts. 0: it does not. */
#define CONFLICT 1
#define NONTRANSACTIONAL 2
#define EXPLICIT 3
#define NEED_EXCLUSIVE 4

byte memory[WORDS];
/* The contents of memory before the transaction that wrote the word. */
byte undo[WORDS];
/* A bit for each context whose transaction has the word in its read set. */
byte readers[WORDS];
/* The context whose transaction wrote the word, plus 1; 0 for none. */
byte writer[WORDS];
/* The nesting depth of a context's transaction; 0 for none. */
byte depth[CONTEXTS];
/* The cause of a loss after which the transaction has not restarted yet. */
byte lost[CONTEXTS];

#define mark_of(context) (1 << (context))
/* The last context belongs to the handler, if there is one, and runs on the hart of context 0. */
#define on_same_hart(one, other) (HANDLERS == 1 && ((one) == THREADS && (other) == 0 || (one) == 0 && (other) == THREADS))
#define committed(word) (writer[word] != 0 -> undo[word] : memory[word])

/* Scratch space of the steps, of no meaning between them. */
hidden byte losing_word, losing_lock, victim, others, read_value;
hidden byte refused;

inline forget_sets(context) {
	losing_word = 0;
	do
	:: losing_word < WORDS ->
		readers[losing_word] = readers[losing_word] & ~mark_of(context);
		if
		:: writer[losing_word] == (context) + 1 ->
			writer[losing_word] = 0;
			undo[losing_word] = 0
		:: else
		fi;
		losing_word++
	:: else -> break
	od
}

/* [X-15], [X-16]: memory and sets at once; the context itself finds out at its next step. */
inline lose(context, cause) {
	count_restart(context, cause);
	losing_word = 0;
	do
	:: losing_word < WORDS ->
		if
		:: writer[losing_word] == (context) + 1 -> memory[losing_word] = undo[losing_word]
		:: else
		fi;
		losing_word++
	:: else -> break
	od;
	forget_sets(context);
	leave_lost_sections(context);
	lost[context] = cause
}

inline all_others_lose(cause) {
	victim = 0;
	do
	:: victim < CONTEXTS ->
		if
		:: others & mark_of(victim) -> lose(victim, cause)
		:: else
		fi;
		victim++
	:: else -> break
	od
}

#define holders_to_read(context, word) ((writer[word] != 0 -> mark_of(writer[word] - 1) : 0) & ~mark_of(context))
#define holders_to_write(context, word) (((writer[word] != 0 -> mark_of(writer[word] - 1) : 0) | readers[word]) & ~mark_of(context))

/*
 * `others` holds the transactions that conflict with a transactional access of the context. A suspended transaction on
 * the same hart loses, since it cannot go on before; among the rest the contention manager decides.
 */
inline settle(context) {
	if
	:: HANDLERS == 1 && (context) == THREADS && (others & mark_of(0)) ->
		others = others & ~mark_of(0);
		lose(0, NONTRANSACTIONAL)
	:: else
	fi;
	if
	:: others != 0 -> all_others_lose(CONFLICT)
	:: others != 0 -> lose(context, CONFLICT)
	:: others == 0
	fi
}

/* Reads a word into `read_value`, in a transaction or out of one. In a transaction, look at `lost` afterwards. */
inline load(context, word) {
	others = holders_to_read(context, word);
	if
	:: depth[context] > 0 ->
		settle(context);
		if
		:: lost[context] == 0 -> readers[word] = readers[word] | mark_of(context)
		:: else
		fi
	:: else -> all_others_lose(NONTRANSACTIONAL)
	fi;
	read_value = memory[word]
}

inline store(context, word, value) {
	others = holders_to_write(context, word);
	if
	:: depth[context] > 0 ->
		settle(context);
		if
		:: lost[context] == 0 ->
			if
			:: writer[word] == 0 ->
				undo[word] = memory[word];
				writer[word] = (context) + 1
			:: else
			fi;
			memory[word] = value
		:: else
		fi
	:: else ->
		all_others_lose(NONTRANSACTIONAL);
		memory[word] = value
	fi
}

/* Compares a word with 0 inside a transaction; joins the read set only when it is equal [X-51]. Look at `lost` afterwards. */
inline xtest_zero(context, word) {
	others = holders_to_read(context, word);
	settle(context);
	read_value = memory[word];
	if
	:: lost[context] == 0 && read_value == 0 && DOES_SUBSCRIBE -> readers[word] = readers[word] | mark_of(context)
	:: else
	fi
}

/* Outside transactions: 0 becomes `value`, or it is `refused`, or `read_value` says that it is not 0. */
inline xcas_zero(context, word, value) {
	refused = false;
	others = holders_to_read(context, word);
	arbitrate(context);
	read_value = memory[word];
	if
	:: !refused && read_value == 0 ->
		others = holders_to_write(context, word);
		arbitrate(context);
		if
		:: !refused -> memory[word] = value
		:: else
		fi
	:: else
	fi
}

inline arbitrate(context) {
	if
	:: others != 0 && !(HANDLERS == 1 && (context) == THREADS && others == mark_of(0)) -> refused = true
	:: others != 0 -> all_others_lose(NONTRANSACTIONAL)
	:: others == 0
	fi
}

inline xbegin(context) {
	depth[context]++
}

inline xend(context) {
	depth[context]--;
	if
	:: depth[context] == 0 ->
		forget_sets(context);
		leave_committed_sections(context)
	:: else
	fi
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory of a few words, as processors see it. Every inline below is one step of a processor.
 *
 * STORES 0: sequentially consistent, a store reaches memory at once. STORES 3: a processor has up to three stores on the way. They reach
 * memory in any order, but a store with release comes after all that were made before it, and stores to one word keep theirs. The
 * processor sees its own stores, and its loads and read-modify-writes do not wait for them: a fence does, and a read-modify-write with
 * release. x86-64 does less than this (its stores keep their order), RVWMO does this and may take loads out of order as well. Where
 * that matters, the model of the lock has a switch that takes a load too early.
 *
 * Parameters: THREADS, STORES, WORDS.
 */

byte memory[WORDS];

/* A store with release. */
#define ORDERED 128

#if STORES
#define STORES_MAX 3
/* Stores on the way, oldest first: the word plus 1 (0: none), with ORDERED when it is a release; which bits of it; and their value. */
byte stored_word[THREADS * STORES_MAX];
byte stored_mask[THREADS * STORES_MAX];
byte stored_value[THREADS * STORES_MAX];

#define stored(self, nth) ((self) * STORES_MAX + (nth))
#define stores_to(self, nth, word) ((stored_word[stored(self, nth)] & ~ORDERED) == (word) + 1)
#define has_stored(self, word) (stores_to(self, 0, word) || stores_to(self, 1, word) || stores_to(self, 2, word))

/* An expression: the word as the processor sees it, in which its own stores lie over memory. */
#define over(self, nth, word, below) \
	(stores_to(self, nth, word) -> \
	 (((below) & ~stored_mask[stored(self, nth)]) | stored_value[stored(self, nth)]) : (below))
#define load(self, word) over(self, 2, word, over(self, 1, word, over(self, 0, word, memory[word])))

/*
 * Expressions to wait for: all stores of the processor are in memory; all those to the word are; there is room for one
 * more store.
 */
#define fenced(self) (stored_word[stored(self, 0)] == 0)
#define settled(self, word) (!has_stored(self, word))
#define can_store(self) (stored_word[stored(self, STORES_MAX - 1)] == 0)

hidden byte store_index;

/*
 * A step of its own (d_step) at each use: no other process may run in the middle of it, where `store_index` belongs to
 * another.
 */
inline store_bits(self, word, mask, value, order) {
	d_step {
		store_index = stored(self, 0);
		do
		:: stored_word[store_index] != 0 -> store_index++
		:: else -> break
		od;
		stored_word[store_index] = ((word) + 1) | order;
		stored_mask[store_index] = mask;
		stored_value[store_index] = value
	}
}

#define may_leave(self, nth, older) \
	(!(stored_word[stored(self, nth)] & ORDERED) && \
	 (stored_word[stored(self, nth)] & ~ORDERED) != (stored_word[stored(self, older)] & ~ORDERED))

inline leaves(self, nth) {
	store_index = stored(self, nth);
	memory[(stored_word[store_index] & ~ORDERED) - 1] =
		(memory[(stored_word[store_index] & ~ORDERED) - 1] & ~stored_mask[store_index]) | stored_value[store_index];
	do
	:: store_index < stored(self, STORES_MAX - 1) ->
		stored_word[store_index] = stored_word[store_index + 1];
		stored_mask[store_index] = stored_mask[store_index + 1];
		stored_value[store_index] = stored_value[store_index + 1];
		store_index++
	:: else -> break
	od;
	stored_word[store_index] = 0;
	stored_mask[store_index] = 0;
	stored_value[store_index] = 0
}

proctype stores_leave(byte self) {
end:	do
	:: d_step { stored_word[stored(self, 0)] != 0 -> leaves(self, 0) }
	:: d_step { stored_word[stored(self, 1)] != 0 && may_leave(self, 1, 0) -> leaves(self, 1) }
	:: d_step {
		stored_word[stored(self, 2)] != 0 && may_leave(self, 2, 0) && may_leave(self, 2, 1) -> leaves(self, 2)
	}
	od
}
#else
#define load(self, word) memory[word]
#define fenced(self) true
#define settled(self, word) true
#define can_store(self) true
#define store_bits(self, word, mask, value, order) memory[word] = (memory[word] & ~(mask)) | (value)
#endif

/*
 * Steps that store wait for `can_store` first, those that read and modify for `fenced` (release) or for `settled`. A store to some bits
 * of a word (a byte of it) leaves the others as they are.
 */
#define store_part(self, word, mask, value) store_bits(self, word, mask, value, 0)
#define store_part_release(self, word, mask, value) store_bits(self, word, mask, value, ORDERED)
#define store(self, word, value) store_bits(self, word, 255, value, 0)
#define store_release(self, word, value) store_bits(self, word, 255, value, ORDERED)

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A part of transaction.pml: the programs of contexts. */

/* Programs: an operation, and eight times its number the word that it uses. */
#define STOP 0
#define LOAD_X 8
#define LOAD_Y 9
/* Loads, adds 1, stores. */
#define ADD_X 16
#define ADD_Y 17
/* Stores 1 more than the last loaded value. */
#define STORE_X 24
#define STORE_Y 25
/* If the last loaded value is 0, skips the next operation; if it is not 0. */
#define IF_NOT_0 32
#define IF_0 40
#define COMMIT 48
#define CANCEL 56
#define IRREVOCABLE 64
/* Outside of transactions: stores 7; loads, and expects the latest state. */
#define PLAIN_STORE_Y 73
#define PLAIN_LOAD_Y 81
/* Begins a transaction that runs alone; an obstinate one. */
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

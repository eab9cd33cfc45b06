/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef CONCORD_CONTEND_H
#define CONCORD_CONTEND_H

#include "instances.h"
#include "team.h"

/* One thread or process of a case. All of them lie in memory that processes share. */
struct worker {
	unsigned number;
	/* How many workers there are. */
	unsigned workers;
	/* Rounds of this worker, those before the region of interest included. */
	unsigned rounds;
	/* What the functions of a case keep by worker. */
	unsigned long count;
	int file, other;
	char *bytes;
} __attribute__((aligned(128)));

/*
 * A case. Its workers run `operate` with rounds from 0. A function that meets what must not happen ends the program
 * with die(); `operate` may as well return 0, which ends the program too. Functions that a case does not need are NULL.
 */
struct contention {
	const char *name;
	enum team_kind kind;
	/* Rounds of a worker at the size `quick`. */
	unsigned rounds;
	/* Prepares what all workers share, in the directory that the case may use. */
	void (*set_up)(struct worker *workers);
	/* Prepares a worker, in its own thread or process. */
	void (*prepare)(struct worker *worker);
	/* Does one round and returns whether it did what it should. */
	int (*operate)(struct worker *worker, unsigned round);
	/* Returns whether all rounds together did what they should. */
	int (*check)(struct worker *workers);
};

/* Tables of cases, each ended by a case without a name. */
extern const struct contention file_cases[], memory_cases[], task_cases[];

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef CONCORD_TEAM_H
#define CONCORD_TEAM_H

/* The largest accepted number of members. */
#define TEAM_MAX 64

enum team_kind { PROCESSES, THREADS };

/* What a team does. Every function gets a member's number, from 0 to `members` - 1, and `context`. */
struct team {
	enum team_kind kind;
	unsigned members;
	/* Runs before the region of interest; all members end it before the first begins to warm up. */
	void (*prepare)(unsigned number, void *context);
	/* Brings code and data into memory, before the region of interest. */
	void (*warm_up)(unsigned number, void *context);
	/* Is the region of interest. */
	void (*work)(unsigned number, void *context);
	void *context;
};

/* Nanoseconds from the region's begin to the first and to the last member's end. */
struct team_times {
	unsigned long first_ns, last_ns;
};

/*
 * Runs a team, each member pinned to the processor of its number, and waits for its end. The members begin their work
 * together. The region of interest lasts until the last one has done its work. Members meet by spinning in user mode,
 * so that the kernel does nothing in the region but what the work asks of it.
 *
 * Ends the program with status 1 if memory, processors or processes are lacking, or if a member ends early.
 */
struct team_times team_run(const struct team *team);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * contend: workers, one pinned to each processor, do the same system calls at the same time, so that they meet at one of
 * the kernel's locks.
 *
 *	contend CASE WORKERS tiny|quick|paper|ROUNDS
 *	contend cases
 *
 * In most cases the workers share nothing but the lock: their sections could run side by side. In some they share the
 * data as well (the tables of cases say which). Each worker checks what each of its system calls returned, and the
 * program checks what all of them together left behind. A case may use the working directory, which must be empty. A
 * number instead of a size is the number of rounds of each worker. The second form prints the names of all cases.
 */
#define _GNU_SOURCE
#include "contend.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Rounds before the region of interest. Even, for cases that alternate. */
#define WARM_UP_ROUNDS 2

static const struct contention *const tables[] = {task_cases, memory_cases, file_cases};
#define TABLES_COUNT (sizeof tables / sizeof *tables)

struct contest {
	const struct contention *contention;
	struct worker *workers;
};

static void print_names(FILE *to)
{
	for (size_t table = 0; table < TABLES_COUNT; table++) {
		for (const struct contention *found = tables[table]; found->name; found++)
			fprintf(to, " %s", found->name);
	}
	fputc('\n', to);
}

static const struct contention *case_of(const char *name)
{
	for (size_t table = 0; table < TABLES_COUNT; table++) {
		for (const struct contention *found = tables[table]; found->name; found++) {
			if (!strcmp(found->name, name))
				return found;
		}
	}
	fprintf(stderr, "contend: no case is called %s; there are:", name);
	print_names(stderr);
	exit(2);
}

static unsigned rounds_of(const struct contention *contention, const char *size)
{
	if (!strcmp(size, "tiny"))
		return contention->rounds / 50 + 2;
	if (!strcmp(size, "quick"))
		return contention->rounds;
	if (!strcmp(size, "paper"))
		return contention->rounds * 10;
	return (unsigned)number_of("ROUNDS", size, 1, 100000000);
}

static void prepare(unsigned number, void *context)
{
	const struct contest *contest = context;

	if (contest->contention->prepare)
		contest->contention->prepare(&contest->workers[number]);
}

/* Says why the last function failed: what it returned was wrong unless a system call failed. */
static const char *reason(void)
{
	return errno ? strerror(errno) : "a wrong result";
}

static void run_rounds(const struct contest *contest, unsigned number, unsigned from, unsigned to)
{
	struct worker *worker = &contest->workers[number];

	for (unsigned round = from; round < to; round++) {
		errno = 0;
		if (!contest->contention->operate(worker, round)) {
			fprintf(stderr, "contend: %s: worker %u in round %u: %s\n", contest->contention->name, number, round,
				reason());
			exit(1);
		}
	}
}

static void warm_up(unsigned number, void *context)
{
	run_rounds(context, number, 0, WARM_UP_ROUNDS);
}

static void work(unsigned number, void *context)
{
	const struct contest *contest = context;

	run_rounds(contest, number, WARM_UP_ROUNDS, contest->workers[number].rounds);
}

int main(int count, char **words)
{
	struct contest contest;
	struct team team = {.prepare = prepare, .warm_up = warm_up, .work = work, .context = &contest};
	struct team_times times;
	unsigned rounds, workers_max = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	if (count == 2 && !strcmp(words[1], "cases")) {
		print_names(stdout);
		return 0;
	}
	if (count != 4) {
		fputs("usage: contend CASE WORKERS tiny|quick|paper|ROUNDS, or contend cases\n", stderr);
		return 2;
	}
	contest.contention = case_of(words[1]);
	workers_max = workers_max < TEAM_MAX ? workers_max : TEAM_MAX;
	team.members = (unsigned)number_of("WORKERS", words[2], 1, workers_max);
	team.kind = contest.contention->kind;
	rounds = rounds_of(contest.contention, words[3]);
	contest.workers = mmap(NULL, team.members * sizeof *contest.workers, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (contest.workers == MAP_FAILED)
		die("%u workers", team.members);
	for (unsigned number = 0; number < team.members; number++) {
		contest.workers[number].number = number;
		contest.workers[number].workers = team.members;
		contest.workers[number].rounds = rounds + WARM_UP_ROUNDS;
	}

	if (contest.contention->set_up)
		contest.contention->set_up(contest.workers);
	times = team_run(&team);
	errno = 0;
	if (contest.contention->check && !contest.contention->check(contest.workers)) {
		fprintf(stderr, "contend: %s: all workers together: %s\n", contest.contention->name, reason());
		return 1;
	}
	printf("contend: %s: %u %s did %u rounds each; the first ended after %lu ns, the last after %lu ns\n",
	       contest.contention->name, team.members, team.kind == THREADS ? "threads" : "processes", rounds,
	       times.first_ns, times.last_ns);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Runs threads or processes that are pinned to processors and work together: see team.h. */
#define _GNU_SOURCE
#include "team.h"
#include "instances.h"
#include "region.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 64

/* The stages through which member 0 leads the others. */
enum stage { PREPARING, WARMING_UP, WORKING, ENDED };

/* A member's word, which it alone writes: the number of stages that it has ended. */
struct place {
	unsigned ended;
	unsigned long finished_ns;
} __attribute__((aligned(LINE_BYTES)));

/* What all members share, processes too. */
struct meeting {
	const struct team *team;
	/* Written by member 0 only. */
	enum stage stage __attribute__((aligned(LINE_BYTES)));
	unsigned long began_ns __attribute__((aligned(LINE_BYTES)));
	struct place places[TEAM_MAX];
};

static struct meeting *meeting;

static unsigned long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long)now.tv_sec * 1000000000 + (unsigned long)now.tv_nsec;
}

/* The instruction PAUSE of the extension Zihintpause, which is a hint on processors without it. */
static void pause_instruction(void)
{
	__asm__ volatile(".word 0x0100000f");
}

static void pin(unsigned number)
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	CPU_SET(number, &processors);
	if (sched_setaffinity(0, sizeof processors, &processors))
		die("member %u on processor %u", number, number);
}

/*
 * Ends `stage` for this member and waits for the next one. Only member 0 reads the others' words, one after the other,
 * so that a member that ends its work does not fight the waiting ones for a line.
 */
static void end_stage(unsigned number, enum stage stage)
{
	__atomic_store_n(&meeting->places[number].ended, stage + 1, __ATOMIC_RELEASE);
	if (number) {
		while (__atomic_load_n(&meeting->stage, __ATOMIC_ACQUIRE) == stage)
			pause_instruction();
		return;
	}
	for (unsigned other = 1; other < meeting->team->members; other++) {
		while (__atomic_load_n(&meeting->places[other].ended, __ATOMIC_ACQUIRE) <= stage)
			pause_instruction();
	}
	if (stage == WORKING)
		end_region();
	if (stage == WARMING_UP) {
		begin_region();
		meeting->began_ns = now_ns();
	}
	__atomic_store_n(&meeting->stage, stage + 1, __ATOMIC_RELEASE);
}

static void take_part(unsigned number)
{
	const struct team *team = meeting->team;

	pin(number);
	team->prepare(number, team->context);
	end_stage(number, PREPARING);
	team->warm_up(number, team->context);
	end_stage(number, WARMING_UP);
	team->work(number, team->context);
	meeting->places[number].finished_ns = now_ns();
	end_stage(number, WORKING);
}

static void *thread(void *number)
{
	take_part((unsigned)(unsigned long)number);
	return NULL;
}

static void run_threads(unsigned count)
{
	pthread_t threads[TEAM_MAX];

	for (unsigned long number = 0; number < count; number++) {
		errno = pthread_create(&threads[number], NULL, thread, (void *)number);
		if (errno)
			die("thread %lu", number);
	}
	for (unsigned number = 0; number < count; number++)
		pthread_join(threads[number], NULL);
}

static void run_processes(unsigned count)
{
	pid_t processes[TEAM_MAX];

	for (unsigned number = 0; number < count; number++) {
		processes[number] = fork();
		if (processes[number] < 0)
			die("process %u", number);
		if (!processes[number]) {
			take_part(number);
			exit(0);
		}
	}
	for (unsigned ended = 0; ended < count; ended++) {
		int state;

		if (wait(&state) < 0)
			die("wait");
		if (!state)
			continue;
		/* The others would wait for it for ever. */
		for (unsigned number = 0; number < count; number++)
			kill(processes[number], SIGKILL);
		fprintf(stderr, "a member of the team ended with state %#x\n", (unsigned)state);
		exit(1);
	}
}

struct team_times team_run(const struct team *team)
{
	struct team_times times = {.first_ns = ~0ul};

	meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		die("a team of %u", team->members);
	meeting->team = team;
	fflush(NULL);
	if (team->kind == THREADS)
		run_threads(team->members);
	else
		run_processes(team->members);
	for (unsigned number = 0; number < team->members; number++) {
		unsigned long ns = meeting->places[number].finished_ns - meeting->began_ns;

		times.first_ns = ns < times.first_ns ? ns : times.first_ns;
		times.last_ns = ns > times.last_ns ? ns : times.last_ns;
	}
	munmap(meeting, sizeof *meeting);
	return times;
}

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Runs processes that start together, inside the machine's region of interest: see instances.h. */
#define _GNU_SOURCE
#include "instances.h"
#include "region.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The columns of /proc/stat that are printed, in the order of proc(5). */
enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFT_IRQ, COLUMNS };

struct processor_time {
	unsigned long ticks[COLUMNS];
};

void die(const char *format, ...)
{
	int reason = errno;
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ": %s\n", strerror(reason));
	exit(1);
}

unsigned long number_of(const char *what, const char *text, unsigned long minimum, unsigned long maximum)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < minimum || value > maximum) {
		fprintf(stderr, "%s %s: a whole number from %lu to %lu is wanted\n", what, text, minimum, maximum);
		exit(2);
	}
	return value;
}

static struct processor_time processor_time(void)
{
	struct processor_time time = {0};
	FILE *file = fopen("/proc/stat", "r");
	unsigned long *t = time.ticks;

	if (!file)
		die("/proc/stat");
	if (fscanf(file, "cpu %lu %lu %lu %lu %lu %lu %lu", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6) != COLUMNS)
		die("/proc/stat");
	fclose(file);
	return time;
}

static void print_processor_time(const struct processor_time *before, const struct processor_time *after)
{
	unsigned long spent[COLUMNS];

	for (int column = 0; column < COLUMNS; column++)
		spent[column] = after->ticks[column] - before->ticks[column];
	printf("region: processors spent user %lu system %lu idle %lu iowait %lu ticks of %ld a second\n",
	       spent[USER] + spent[NICE], spent[SYSTEM] + spent[IRQ] + spent[SOFT_IRQ], spent[IDLE], spent[IO_WAIT],
	       sysconf(_SC_CLK_TCK));
	fflush(stdout);
}

/* Starts one process. It reports that it is ready, then waits until no process holds the other end of `go`. */
static pid_t start(unsigned number, int ready[2], int go[2], int (*work)(unsigned, void *), void *context)
{
	pid_t process = fork();
	char byte = 0;

	if (process)
		return process;
	close(ready[0]);
	close(go[1]);
	/* Closed at once, so that the reader sees the end of the pipe if a process dies before the barrier. */
	if (write(ready[1], &byte, 1) != 1 || close(ready[1]) || read(go[0], &byte, 1) != 0)
		die("instance %u at the barrier", number);
	close(go[0]);
	exit(work(number, context));
}

/* Waits for `count` processes and keeps their states: the region of interest prints nothing. */
static void wait_for_all(unsigned count, const pid_t *processes, int *states)
{
	for (unsigned ended = 0; ended < count;) {
		int state;
		pid_t process = wait(&state);

		if (process < 0)
			die("wait");
		for (unsigned number = 0; number < count; number++) {
			if (processes[number] == process) {
				states[number] = state;
				ended++;
			}
		}
	}
}

unsigned instances_run(unsigned count, int (*work)(unsigned number, void *context), void *context)
{
	pid_t *processes = calloc(count, sizeof *processes);
	int *states = calloc(count, sizeof *states);
	struct processor_time before, after;
	int ready[2], go[2];
	unsigned failed = 0;

	if (!processes || !states || pipe(ready) || pipe(go))
		die("%u instances", count);
	fflush(NULL);
	for (unsigned number = 0; number < count; number++) {
		processes[number] = start(number, ready, go, work, context);
		if (processes[number] < 0)
			die("instance %u", number);
	}
	close(ready[1]);
	close(go[0]);
	for (unsigned arrived = 0; arrived < count;) {
		char bytes[256];
		ssize_t some = read(ready[0], bytes, sizeof bytes);

		if (some <= 0)
			die("an instance did not reach the barrier");
		arrived += (unsigned)some;
	}
	before = processor_time();

	begin_region();
	close(go[1]);
	wait_for_all(count, processes, states);
	end_region();

	after = processor_time();
	print_processor_time(&before, &after);
	for (unsigned number = 0; number < count; number++) {
		if (!states[number])
			continue;
		failed++;
		if (WIFSIGNALED(states[number]))
			fprintf(stderr, "instance %u was ended by signal %d\n", number, WTERMSIG(states[number]));
		else
			fprintf(stderr, "instance %u failed with status %d\n", number, WEXITSTATUS(states[number]));
	}
	close(ready[0]);
	free(processes);
	free(states);
	return failed;
}

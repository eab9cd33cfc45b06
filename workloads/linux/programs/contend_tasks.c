/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Cases of contend about tasks: signals, timers, processes and futexes. */
#define _GNU_SOURCE
#include "contend.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Changes the thread's own mask. The lock is the process's (sighand->siglock). */
static int change_mask(struct worker *worker, unsigned round)
{
	sigset_t wanted, found;

	(void)worker;
	sigemptyset(&wanted);
	if (round % 2 == 0)
		sigaddset(&wanted, SIGUSR1);
	return pthread_sigmask(SIG_SETMASK, &wanted, &found) == 0 && sigismember(&found, SIGUSR1) == (int)(round % 2);
}

/* Creates and deletes a timer. The lock is that of the hash of all processes' timers (hash_lock). */
static int create_timer(struct worker *worker, unsigned round)
{
	struct sigevent event = {.sigev_notify = SIGEV_NONE};
	timer_t timer;

	(void)worker, (void)round;
	return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_delete(timer) == 0;
}

/* The worker that runs in this thread or process. */
static _Thread_local struct worker *self;

static void count_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&self->count, 1, __ATOMIC_RELEASE);
}

static void handle_signals(struct worker *worker)
{
	struct sigaction action = {.sa_handler = count_signal};

	self = worker;
	worker->other = (int)syscall(SYS_gettid);
	if (sigaction(SIGUSR1, &action, NULL))
		die("worker %u", worker->number);
}

/* Sends a signal to the thread itself. The locks are the process's; its user's count of signals is everybody's. */
static int signal_self(struct worker *worker, unsigned round)
{
	return syscall(SYS_tgkill, getpid(), worker->other, SIGUSR1) == 0 && worker->count == round + 1;
}

/* Sends a signal to the next thread of the process, and waits in user mode until that thread has handled it. */
static int signal_next(struct worker *worker, unsigned round)
{
	struct worker *next = worker->number + 1 < worker->workers ? worker + 1 : worker - worker->number;

	if (syscall(SYS_tgkill, getpid(), next->other, SIGUSR1))
		return 0;
	while (__atomic_load_n(&next->count, __ATOMIC_ACQUIRE) <= round)
		;
	return next->count == round + 1;
}

static int every_signal_was_handled_once(struct worker *workers)
{
	for (unsigned number = 0; number < workers->workers; number++) {
		if (workers[number].count != workers->rounds)
			return 0;
	}
	return 1;
}

/* Gives the worker a child that lives as long as the worker. */
static void have_child(struct worker *worker)
{
	worker->other = fork();
	if (worker->other < 0)
		die("worker %u", worker->number);
	if (!worker->other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

/* Asks whether a child has ended. The lock is that of all tasks, taken to read (tasklist_lock). */
static int look_for_ended_child(struct worker *worker, unsigned round)
{
	int state;

	(void)round;
	return waitpid(worker->other, &state, WNOHANG) == 0;
}

/* Makes a process and waits for its end. The locks are those of all tasks and process numbers, taken to write. */
static int fork_child(struct worker *worker, unsigned round)
{
	int wanted = (int)((worker->number + round) % 128), state;
	pid_t child = fork();

	if (!child)
		_exit(wanted);
	return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == wanted;
}

static unsigned word;

/* Waits for a value that one word of all threads does not have. The lock is the bucket's. */
static int miss_wait(struct worker *worker, unsigned round)
{
	(void)worker, (void)round;
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) == -1 && errno == EAGAIN;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long under_mutex;

/* Takes and releases a mutex of all threads, which sleep while another has it. The lock is the bucket's of its word. */
static int take_mutex(struct worker *worker, unsigned round)
{
	(void)worker, (void)round;
	if (pthread_mutex_lock(&mutex))
		return 0;
	under_mutex++;
	return pthread_mutex_unlock(&mutex) == 0;
}

static int mutex_excluded(struct worker *workers)
{
	return under_mutex == (unsigned long)workers->workers * workers->rounds;
}

const struct contention task_cases[] = {
	/* Disjoint data. */
	{.name = "sigmask", .kind = THREADS, .rounds = 2000, .operate = change_mask},
	{.name = "timers", .kind = PROCESSES, .rounds = 1000, .operate = create_timer},
	{.name = "wait", .kind = PROCESSES, .rounds = 2000, .prepare = have_child, .operate = look_for_ended_child},
	{.name = "self-signal", .kind = PROCESSES, .rounds = 1000, .prepare = handle_signals, .operate = signal_self,
	 .check = every_signal_was_handled_once},
	{.name = "self-signal-threads", .kind = THREADS, .rounds = 1000, .prepare = handle_signals, .operate = signal_self,
	 .check = every_signal_was_handled_once},
	{.name = "signal", .kind = THREADS, .rounds = 300, .prepare = handle_signals, .operate = signal_next,
	 .check = every_signal_was_handled_once},
	/* Shared data. */
	{.name = "fork", .kind = PROCESSES, .rounds = 30, .operate = fork_child},
	{.name = "futex", .kind = THREADS, .rounds = 1000, .operate = miss_wait},
	{.name = "mutex", .kind = THREADS, .rounds = 500, .operate = take_mutex, .check = mutex_excluded},
	{.name = NULL},
};

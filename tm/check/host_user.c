/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The check programs as user programs: threads are POSIX threads, and interrupts are signals of their timers. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* The number of levels for which queue locks have nodes, and one more. */
#define INTERRUPT_LEVELS 4

static int words_count;
static char **words;

const char *host_text(const char *key, const char *otherwise)
{
    size_t length = strlen(key);

    for (int i = 1; i < words_count; i++)
        if (strncmp(words[i], key, length) == 0 && words[i][length] == '=')
            return words[i] + length + 1;
    return otherwise;
}

uint64_t host_number(const char *key, uint64_t otherwise)
{
    const char *text = host_text(key, NULL);
    char *end;
    uint64_t number;

    if (!text)
        return otherwise;
    errno = 0;
    number = strtoull(text, &end, 0);
    if (errno || end == text || *end) {
        fprintf(stderr, "%s=%s is not a number\n", key, text);
        exit(2);
    }
    return number;
}

unsigned host_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    return (unsigned)CPU_COUNT(&set);
}

unsigned host_threads_max(void)
{
    return HOST_THREADS_MAX;
}

static pthread_barrier_t start;
static void (*run_body)(unsigned thread);

static void *run_thread(void *thread)
{
    pthread_barrier_wait(&start);
    run_body((unsigned)(uintptr_t)thread);
    return NULL;
}

static void must(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(2);
    }
}

void host_run(unsigned threads, void (*body)(unsigned thread))
{
    static pthread_t ids[HOST_THREADS_MAX];
    pthread_attr_t attributes;

    run_body = body;
    must(pthread_barrier_init(&start, NULL, threads), "pthread_barrier_init");
    must(pthread_attr_init(&attributes), "pthread_attr_init");
    must(pthread_attr_setstacksize(&attributes, 256 * 1024), "pthread_attr_setstacksize");
    for (unsigned i = 0; i < threads; i++)
        must(pthread_create(&ids[i], &attributes, run_thread, (void *)(uintptr_t)i), "pthread_create");
    for (unsigned i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    pthread_attr_destroy(&attributes);
    pthread_barrier_destroy(&start);
}

void host_yield(void)
{
    sched_yield();
}

uint64_t host_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t host_clock_frequency_hz(void)
{
    return 1000000000;
}

const char *host_clock_unit(void)
{
    return "ns";
}

void host_print(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

void host_exit(int code)
{
    _exit(code);
}

const char *host_fatal(void (*body)(void))
{
    static char text[1000];
    size_t length = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;

    fflush(stdout);
    must(pipe(ends) ? errno : 0, "pipe");
    child = fork();
    must(child < 0 ? errno : 0, "fork");
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    must(waitpid(child, &status, 0) < 0 ? errno : 0, "waitpid");
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? text : "";
}

static void watchdog(int signal)
{
    static const char text[] = "no progress: the watchdog ends the program\n";

    (void)signal;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(2);
    _exit(1);
}

void host_watchdog(unsigned seconds)
{
    signal(SIGALRM, watchdog);
    alarm(seconds);
}

unsigned host_interrupt_levels(void)
{
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer holds signals back until the thread calls the system, which it may do only after the handlers. */
    return 1;
#else
    return INTERRUPT_LEVELS;
#endif
}

static void (*interrupt_handler)(unsigned depth);
static __thread unsigned interrupt_depth;
static __thread timer_t timers[INTERRUPT_LEVELS];

/*
 * A handler begins with all signals off: otherwise the second of two simultaneous signals would begin before the first
 * has counted itself. Then it keeps off its own signal and those of the handlers that it interrupted.
 */
static void interrupted(int signal, siginfo_t *information, void *context)
{
    int saved = errno;
    sigset_t mask = ((ucontext_t *)context)->uc_sigmask;

    (void)information;
    interrupt_depth++;
    sigaddset(&mask, signal);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    __atomic_load_n(&interrupt_handler, __ATOMIC_RELAXED)(interrupt_depth);
    interrupt_depth--;
    errno = saved;
}

/* A signal for each level. */
static sigset_t interrupt_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < INTERRUPT_LEVELS; i++)
        sigaddset(&set, SIGRTMIN + i);
    return set;
}

void host_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us)
{
    struct sigaction action = {
        .sa_sigaction = interrupted,
        .sa_flags = SA_RESTART | SA_SIGINFO,
        .sa_mask = interrupt_signals(),
    };

    __atomic_store_n(&interrupt_handler, handler, __ATOMIC_RELAXED);
    for (int i = 0; i < INTERRUPT_LEVELS; i++) {
        /* Periods that differ a little, so that the signals meet in every order. */
        long period_ns = (long)period_us * (1000 + 70 * i);
        struct itimerspec period = {{0, period_ns}, {0, period_ns}};
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + i};

        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        must(sigaction(SIGRTMIN + i, &action, NULL) ? errno : 0, "sigaction");
        must(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) ? errno : 0, "timer_create");
        must(timer_settime(timers[i], 0, &period, NULL) ? errno : 0, "timer_settime");
    }
}

void host_interrupts_end(void)
{
    static const struct timespec at_once;
    sigset_t set = interrupt_signals(), old;

    pthread_sigmask(SIG_BLOCK, &set, &old);
    for (int i = 0; i < INTERRUPT_LEVELS; i++)
        timer_delete(timers[i]);
    while (sigtimedwait(&set, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int main(int count, char **arguments)
{
    words_count = count;
    words = arguments;
    return check_main();
}

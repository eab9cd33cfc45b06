/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Misuse by programs ends them with a message. In a user program each mistake is made by a child process. */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tm/tm.h>

void _ITM_commitTransaction(void);
void _ITM_changeTransactionMode(uint32_t mode);
void _ITM_error(const void *location, int code);
PURE void *_ITM_getTMCloneSafe(void *function);

static volatile long shared;
static long counter;
static void *volatile any_pointer;

static void commit_without_begin(void)
{
    _ITM_commitTransaction();
}

static void cancel_without_begin(void)
{
    _ITM_abortTransaction(1);
}

static NOINLINE void cancel_irrevocable(void)
{
    __transaction_relaxed
    {
        shared = 1;
        _ITM_abortTransaction(1);
    }
}

static NOINLINE SAFE void descend(unsigned depth)
{
    __transaction_atomic
    {
        counter++;
        if (depth)
            descend(depth - 1);
        if (counter < 0)
            __transaction_cancel;
    }
}

static void nest_too_deep(void)
{
    descend(TM_DEPTH_MAX);
}

static NOINLINE void abort_for_unknown_reason(void)
{
    __transaction_atomic
    {
        counter++;
        _ITM_abortTransaction(64);
    }
}

static NOINLINE void change_to_unknown_mode(void)
{
    _ITM_changeTransactionMode(7);
}

static void resume_elsewhere(void)
{
    _ITM_addUserCommitAction(NULL, 7, NULL);
}

static void ask_for_no_clone(void)
{
    any_pointer = _ITM_getTMCloneSafe(&counter);
}

static void report_error(void)
{
    static const struct {
        uint32_t reserved[4];
        const char *source;
    } location = {{0}, "the place of an error"};
    _ITM_error(&location, 1);
}

static const struct {
    void (*make)(void);
    const char *message;
} mistakes[] = {
    {commit_without_begin, "_ITM_commitTransaction: no transaction is open"},
    {cancel_without_begin, "_ITM_abortTransaction: no transaction is open"},
    {cancel_irrevocable, "an irrevocable transaction was cancelled"},
    {nest_too_deep, "more than TM_DEPTH_MAX transactions are open"},
    {abort_for_unknown_reason, "_ITM_abortTransaction: unknown reason"},
    {change_to_unknown_mode, "_ITM_changeTransactionMode: unknown mode"},
    {resume_elsewhere, "actions run after the outermost transaction only"},
    {ask_for_no_clone, "the function has no clone"},
    {report_error, "the place of an error"},
};

/* The child's standard error, and its exit status. */
static int run_child(void (*make)(void), char *text, size_t size_bytes)
{
    int ends[2], status;
    if (pipe(ends))
        abort();
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        make();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, size_bytes - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

int main(void)
{
    unsigned failures = 0;
    /* The deepest allowed level. */
    descend(TM_DEPTH_MAX - 1);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        char text[400];
        int status = run_child(mistakes[i].make, text, sizeof text);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, mistakes[i].message))
            continue;
        failures++;
        printf("not reported as it should be: %s\n  status %d, %s\n", mistakes[i].message, status, text);
    }
    printf("bad input: %zu mistakes, %u failures\n", sizeof mistakes / sizeof mistakes[0], failures);
    return failures != 0;
}

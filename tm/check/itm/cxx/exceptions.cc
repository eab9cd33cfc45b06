/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Exceptions in transactions and out of them. A transaction commits when an exception leaves it. Each restarts once
 * where its exception is allocated, in flight, or caught.
 */
#include "check.h"

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

/* Where the transaction restarts. */
enum place {
    NOWHERE,
    BEFORE_THROW, /* The exception is allocated. */
    IN_DESTRUCTOR, /* It is in flight. */
    IN_HANDLER, /* It is caught. */
    IN_INNER_HANDLER, /* It was thrown again, and is caught twice. */
    AFTER_RETHROW, /* It was thrown again, and is in flight. */
    PLACES,
};

static long word, inner_word, handled;

/* Restarts the transaction when it is destroyed. */
struct restarter {
    unsigned *restarts;
    bool is_wanted;
    SAFE restarter(unsigned *restarts, bool is_wanted) : restarts(restarts), is_wanted(is_wanted)
    {
    }
    SAFE ~restarter()
    {
        if (is_wanted)
            restart_once(restarts);
    }
};

/* An exception that restarts the transaction while it is constructed. */
struct problem {
    long value;
    SAFE NOINLINE problem(long value, unsigned *restarts, bool is_wanted) : value(value)
    {
        if (is_wanted)
            restart_once(restarts);
    }
};

static NOINLINE SAFE void throw_problem(place where, unsigned *restarts)
{
    restarter destroyed(restarts, where == IN_DESTRUCTOR);
    word++;
    throw problem(word, restarts, where == BEFORE_THROW);
}

static NOINLINE void let_it_leave(place where, unsigned *restarts)
{
    __transaction_atomic
    {
        throw_problem(where, restarts);
    }
}

static void check_leaving(place where)
{
    unsigned restarts = 0;
    long before = word;
    bool is_caught = false;
    try {
        let_it_leave(where, &restarts);
    } catch (const problem &caught) {
        is_caught = true;
        CHECK(caught.value == before + 1);
    }
    CHECK(is_caught && word == before + 1 && std::uncaught_exceptions() == 0);
}

static NOINLINE SAFE void handle(place where, unsigned *restarts)
{
    try {
        throw_problem(where, restarts);
    } catch (const problem &caught) {
        handled += caught.value;
        if (where == IN_HANDLER)
            restart_once(restarts);
        if (where == IN_INNER_HANDLER) {
            try {
                throw;
            } catch (const problem &again) {
                handled += again.value;
                restart_once(restarts);
            }
        }
    }
}

static void check_handling(place where)
{
    unsigned restarts = 0;
    long before = word, handled_before = handled;
    __transaction_atomic
    {
        handle(where, &restarts);
    }
    CHECK(word == before + 1 && std::uncaught_exceptions() == 0 && !std::current_exception());
    CHECK(handled == handled_before + (before + 1) * (where == IN_INNER_HANDLER ? 2 : 1));
}

static NOINLINE SAFE void throw_again(place where, unsigned *restarts)
{
    restarter destroyed(restarts, where == AFTER_RETHROW);
    try {
        throw_problem(where, restarts);
    } catch (...) {
        if (where == IN_HANDLER)
            restart_once(restarts);
        throw;
    }
}

/* Out of the inner transaction and the outer one. */
static NOINLINE void leave_both(place where, unsigned *restarts)
{
    __transaction_atomic
    {
        inner_word++;
        __transaction_atomic
        {
            throw_again(where, restarts);
        }
    }
}

static void check_nested_leaving(place where)
{
    unsigned restarts = 0;
    long before = word, inner_before = inner_word;
    bool is_caught = false;
    try {
        leave_both(where, &restarts);
    } catch (const problem &caught) {
        is_caught = caught.value == before + 1;
    }
    CHECK(is_caught && word == before + 1 && inner_word == inner_before + 1 && std::uncaught_exceptions() == 0);
}

/* Out of the inner transaction, into a handler of the outer one. */
static NOINLINE SAFE void leave_inner(place where, unsigned *restarts)
{
    try {
        __transaction_atomic
        {
            throw_problem(where, restarts);
        }
    } catch (const problem &caught) {
        handled += caught.value;
        if (where == IN_HANDLER)
            restart_once(restarts);
    }
}

static void check_nested_handling(place where)
{
    unsigned restarts = 0;
    long before = word, handled_before = handled;
    __transaction_atomic
    {
        leave_inner(where, &restarts);
    }
    CHECK(word == before + 1 && handled == handled_before + before + 1 && std::uncaught_exceptions() == 0);
}

/* An inner transaction that is cancelled in a handler drops its exception, and the outer one's stays in its handler. */
static NOINLINE SAFE void handle_and_cancel()
{
    unsigned restarts = 0;
    __transaction_atomic
    {
        try {
            throw_problem(NOWHERE, &restarts);
        } catch (const problem &inner) {
            handled += inner.value;
            __transaction_cancel;
        }
    }
}

static NOINLINE SAFE void cancel_in_handler()
{
    unsigned restarts = 0;
    try {
        throw_problem(NOWHERE, &restarts);
    } catch (const problem &outer) {
        handle_and_cancel();
        handled += outer.value;
    }
}

static void check_cancel()
{
    long before = word, handled_before = handled;
    __transaction_atomic
    {
        cancel_in_handler();
    }
    CHECK(word == before + 1 && handled == handled_before + before + 1);
    CHECK(std::uncaught_exceptions() == 0 && !std::current_exception());
}

#define TEXT "what is to be said, and long enough to be allocated"

/* Memory that a caught exception had is not written to when the transaction commits. */
/* With the header of an exception. */
#define WORDS_OF_PROBLEM ((128 + sizeof(problem)) / sizeof(long))

/* With ordinary stores, as no other thread has the memory. */
static NOINLINE PURE void fill(long *words)
{
    for (unsigned index = 0; index < WORDS_OF_PROBLEM; index++)
        words[index] = ~long(index);
}

static NOINLINE void reuse(long **words)
{
    unsigned restarts = 0;
    __transaction_atomic
    {
        handle(NOWHERE, &restarts);
        *words = new long[WORDS_OF_PROBLEM];
        fill(*words);
    }
}

static void check_reuse()
{
    long *words, sum = 0;
    reuse(&words);
    for (unsigned index = 0; index < WORDS_OF_PROBLEM; index++)
        sum += words[index] == ~long(index);
    CHECK(sum == WORDS_OF_PROBLEM);
    delete[] words;
}

/* The C++ library's own exceptions are constructed in the transaction. */
static NOINLINE void throw_text(unsigned *restarts)
{
    __transaction_atomic
    {
        word++;
        restarter destroyed(restarts, true);
        throw std::runtime_error(TEXT);
    }
}

static void check_text()
{
    unsigned restarts = 0;
    long before = word;
    try {
        throw_text(&restarts);
        CHECK(false);
    } catch (const std::exception &caught) {
        CHECK(!strcmp(caught.what(), TEXT));
    }
    CHECK(word == before + 1);
}

/* Exceptions of code that knows nothing of transactions. */
static NOINLINE void fail_to_allocate(long **memory)
{
    __transaction_atomic
    {
        word++;
        *memory = new long(1);
    }
}

static void check_failure()
{
    long before = word, *memory = nullptr;
    bool is_caught = false;
    allocations.fails = true;
    try {
        fail_to_allocate(&memory);
    } catch (const std::bad_alloc &) {
        is_caught = true;
    }
    allocations.fails = false;
    CHECK(is_caught && !memory && word == before + 1 && std::uncaught_exceptions() == 0);
}

/* A relaxed transaction that becomes irrevocable in a handler. */
static NOINLINE void print_nothing()
{
    __asm__ volatile("" : : : "memory");
}

static void check_irrevocable()
{
    unsigned restarts = 0;
    long before = word, handled_before = handled;
    __transaction_relaxed
    {
        try {
            throw_problem(NOWHERE, &restarts);
        } catch (const problem &caught) {
            print_nothing();
            handled += caught.value;
        }
    }
    CHECK(word == before + 1 && handled == handled_before + before + 1 && std::uncaught_exceptions() == 0);
}

void check_exceptions()
{
    for (int where = NOWHERE; where < PLACES; where++) {
        check_leaving(place(where));
        check_handling(place(where));
        check_nested_leaving(place(where));
        check_nested_handling(place(where));
    }
    check_cancel();
    check_reuse();
    check_text();
    check_failure();
    check_irrevocable();
}

/* Contended: each turn adds to both words, and an exception leaves with the sum. */
static long left, right;
static unsigned long thrown, torn;

static NOINLINE void add_and_throw()
{
    __transaction_atomic
    {
        left++;
        __transaction_atomic
        {
            right++;
            throw left - right;
        }
    }
}

void run_contended(unsigned turns)
{
    for (unsigned turn = 0; turn < turns; turn++)
        try {
            add_and_throw();
        } catch (long difference) {
            __atomic_fetch_add(&thrown, 1, __ATOMIC_RELAXED);
            if (difference || std::uncaught_exceptions())
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
        }
}

void check_contended(unsigned threads, unsigned turns)
{
    CHECK(left == long(threads) * turns && right == left && thrown == (unsigned long)left && torn == 0);
}

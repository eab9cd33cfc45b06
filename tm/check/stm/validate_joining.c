/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that come and go: solo transactions meet others, contexts are used again, and some threads end in the middle
 * of a transaction.
 */
#include <pthread.h>

#include "validate.h"

#define OPERATIONS_PER_THREAD 500
#define THREADS_PER_ROUND 3

static uint64_t pair[2][8] TM_ALIGNED_TO_LINE;
static uint64_t added;
static bool has_ended;

static VALIDATE_NOINLINE void add(bool gives_up)
{
    if (tm_start(0) != TM_STARTED)
        return;
    uint64_t first = tm_load(&pair[0][0]);
    tm_store(&pair[0][0], first + 1);
    VALIDATE(tm_load(&pair[1][0]) == first, "a transaction saw half of another");
    tm_store(&pair[1][0], first + 1);
    if (gives_up)
        tm_cancel();
    VALIDATE_COMMIT();
}

/* Alone at first, and then not. */
static void *stay(void *argument)
{
    uint64_t random = random_state(validate_seed, 0), count = 0;

    (void)argument;
    while (!__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE)) {
        bool gives_up = random_below(&random, 4) == 0;

        add(gives_up);
        count += !gives_up;
    }
    __atomic_fetch_add(&added, count, __ATOMIC_RELAXED);
    return NULL;
}

static void *come_and_go(void *argument)
{
    uint64_t turns = 1 + (uintptr_t)argument % 5;

    for (uint64_t turn = 0; turn < turns; turn++)
        add(false);
    __atomic_fetch_add(&added, turns, __ATOMIC_RELAXED);
    return NULL;
}

static void run_come_and_go(void)
{
    pthread_t one, others[THREADS_PER_ROUND];

    pair[0][0] = pair[1][0] = added = 0;
    has_ended = false;
    VALIDATE(pthread_create(&one, NULL, stay, NULL) == 0, "no thread");
    for (uint64_t round = 0; round < validate_operations / OPERATIONS_PER_THREAD; round++) {
        for (unsigned number = 0; number < THREADS_PER_ROUND; number++)
            VALIDATE(pthread_create(&others[number], NULL, come_and_go, (void *)(uintptr_t)(round + number)) == 0, "no thread");
        for (unsigned number = 0; number < THREADS_PER_ROUND; number++)
            pthread_join(others[number], NULL);
    }
    __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
    pthread_join(one, NULL);
    VALIDATE(pair[0][0] == added && pair[1][0] == added, "a transaction was lost when threads came or went");
}

/* Its stores are undone, and its records are released. */
static VALIDATE_NOINLINE void *leave_inside(void *argument)
{
    unsigned flags = (unsigned)(uintptr_t)argument;

    VALIDATE_START(flags);
    tm_store(&pair[0][0], 1000);
    VALIDATE(tm_alloc(8, VALIDATE_GUARDED), "no memory");
    if (flags & TM_PESSIMISTIC)
        tm_load(&pair[1][0]);
    pthread_exit(NULL);
}

static void *look(void *argument)
{
    (void)argument;
    add(false);
    return NULL;
}

static void run_leave_inside(void)
{
    static const unsigned flags[] = {0, TM_PESSIMISTIC, TM_OBSTINATE};
    uint64_t before = validate_guarded_count();
    pthread_t thread, peer;

    pair[0][0] = pair[1][0] = 0;
    for (unsigned turn = 0; turn < sizeof flags / sizeof flags[0]; turn++) {
        /* Alone at first, then beside another. */
        has_ended = false;
        VALIDATE(pthread_create(&thread, NULL, leave_inside, (void *)(uintptr_t)flags[turn]) == 0, "no thread");
        pthread_join(thread, NULL);
        VALIDATE(pthread_create(&peer, NULL, stay, NULL) == 0, "no thread");
        VALIDATE(pthread_create(&thread, NULL, leave_inside, (void *)(uintptr_t)flags[turn]) == 0, "no thread");
        pthread_join(thread, NULL);
        VALIDATE(pthread_create(&thread, NULL, look, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
        __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
        pthread_join(peer, NULL);
    }
    VALIDATE(pair[0][0] == pair[1][0], "a thread ended in a transaction that was not taken back");
    VALIDATE(validate_guarded_count() == before, "a thread ended in a transaction whose memory was not freed");
}

const struct validate_test validate_joining[] = {
    {"come_and_go", run_come_and_go},
    {"leave_inside", run_leave_inside},
    {0},
};

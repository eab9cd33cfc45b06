/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "check.h"

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

extern "C" PURE uint32_t _ITM_inTransaction(void);
extern "C" PURE void _ITM_abortTransaction(uint32_t reason);
extern "C" const char *_ITM_libraryVersion(void);

#define IN_RETRYABLE_TRANSACTION 1
#define USER_RETRY 2

#define THREADS 4
#define TURNS 20000

static unsigned checks, failures;

void check(bool holds, const char *condition, const char *file, int line)
{
    checks++;
    if (holds)
        return;
    failures++;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
}

void restart_once(unsigned *restarts)
{
    if (_ITM_inTransaction() != IN_RETRYABLE_TRANSACTION || (*restarts)++)
        return;
    _ITM_abortTransaction(USER_RETRY);
}

static void run_suites()
{
    check_exceptions();
    check_memory();
}

static void run_beside_peer()
{
    static long word;
    std::atomic<bool> peer_is_ready(false), suites_have_run(false);
    std::thread peer([&] {
        __transaction_atomic
        {
            word++;
        }
        peer_is_ready = true;
        while (!suites_have_run)
            std::this_thread::yield();
    });
    while (!peer_is_ready)
        std::this_thread::yield();
    run_suites();
    suites_have_run = true;
    peer.join();
}

int main()
{
    run_suites();
    run_beside_peer();
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < THREADS; thread++)
        threads.emplace_back(run_contended, TURNS);
    for (std::thread &thread : threads)
        thread.join();
    check_contended(THREADS, TURNS);
    printf("{\"validate\":\"itm-c++\",\"library\":\"%s\",\"checks\":%u,\"failures\":%u,\"result\":\"%s\"}\n",
           _ITM_libraryVersion(), checks, failures, failures ? "failed" : "passed");
    return failures != 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Checks the locks whose sections may be transactions. Words: lock=cx|tx (both), sections=N for each thread (2000),
 * threads=N (as many as the host has processors, at least 4 where it can), seed=N (1), htm=off for locks only.
 */
#include "sections.h"

#include <tm/htm.h>

#include "../host.h"
#include "../output.h"
#include "../words.h"

/* Far more than any test takes, with other programs at work as well. */
#define TEST_SECONDS_MAX 60

extern const struct sections sections_cx, sections_tx;

uint64_t sections_count;
uint64_t sections_seed;
unsigned sections_threads;

void sections_report(const char *lock, const char *test, const char *failure)
{
    struct output output = OUTPUT_INITIALIZER;

    output_member_text(&output, "check", "sections");
    output_member_text(&output, "lock", lock);
    output_member_text(&output, "transactions", tm_htm_kind_name(tm_htm_kind()));
    output_member_text(&output, "test", test);
    output_member_text(&output, "result", failure ? "failed" : "passed");
    if (failure)
        output_member_text(&output, "failure", failure);
    output_object_end(&output);
    if (failure)
        host_exit(1);
    host_watchdog(TEST_SECONDS_MAX);
}

static unsigned threads_wanted(void)
{
    unsigned threads = host_processors() < 4 ? 4 : host_processors();

    return threads < host_threads_max() ? threads : host_threads_max();
}

int check_main(void)
{
    const char *lock = host_text("lock", "both");

    sections_count = host_number("sections", 2000);
    sections_seed = host_number("seed", 1);
    sections_threads = (unsigned)host_number("threads", threads_wanted());
    if (sections_threads == 0 || sections_threads > host_threads_max()) {
        host_print("threads= needs a number of threads that the host can run\n");
        return 2;
    }
    if (words_equal(host_text("htm", "on"), "off"))
        tm_htm_disable();
    host_watchdog(TEST_SECONDS_MAX);
    if (!words_equal(lock, "tx"))
        sections_cx.run();
    if (!words_equal(lock, "cx"))
        sections_tx.run();
    return 0;
}

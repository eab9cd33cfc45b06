/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Validates the software transactions of the library it is linked with. The same program runs on every host; words:
 *
 *     tests=a,b        names of tests or of families (all)
 *     operations=N     transactions of a test, all threads together (100000)
 *     threads=N        (as many as there are processors, but at least 2)
 *     seed=N           (1)
 *     seconds=N        the limit of a test, if the host has a clock for it (120)
 *
 * Prints a line of JSON for each test, and ends with the first that fails.
 */
#include "validate.h"

#include "../output.h"
#include "../words.h"

/* Far more than any test takes, with other programs at work as well. */
#define SECONDS_DEFAULT 120

#define OPERATIONS_DEFAULT 100000

static const struct validate_family families[] = {
    {"words", validate_words},
    {"nesting", validate_nesting},
    {"memory", validate_memory},
    {"locks", validate_locks},
    {"litmus", validate_litmus},
    {"interrupts", validate_interrupts},
    {0},
};

uint64_t validate_operations;
unsigned validate_threads;
uint64_t validate_seed;

const char *validate_case;
uint64_t validate_step;

static const char *current_test = "";

static void report(const char *failure)
{
    struct output output = OUTPUT_INITIALIZER;

    output_member_text(&output, "validate", "stm");
    output_member_text(&output, "library", tm_algorithm_name);
    output_member_text(&output, "test", current_test);
    output_member_number(&output, "threads", validate_threads);
    output_member_number(&output, "seed", validate_seed);
    output_member_text(&output, "result", failure ? "failed" : "passed");
    if (failure && validate_case) {
        output_member_text(&output, "case", validate_case);
        output_member_number(&output, "step", validate_step);
    }
    if (failure)
        output_member_text(&output, "failure", failure);
    output_object_end(&output);
}

void validate_failed(const char *what)
{
    report(what);
    host_exit(1);
}

void validate_dies(void (*run)(void), const char *text)
{
    const char *said = host_fatal(run);

    VALIDATE(!said || words_contain(said, text), text);
}

void validate_run(void (*body)(unsigned thread))
{
    host_run(validate_threads, body);
}

uint64_t validate_share(void)
{
    return (validate_operations + validate_threads - 1) / validate_threads;
}

unsigned validate_flags(uint64_t *random)
{
    static const unsigned flags[] = {TM_NOT_PRIVATIZING, TM_READ_ONLY, TM_PESSIMISTIC, TM_OBSTINATE,
                                     TM_PESSIMISTIC | TM_NOT_PRIVATIZING, TM_SERIAL};
    unsigned number = random_below(random, 24);

    return number < sizeof flags / sizeof flags[0] ? flags[number] : 0;
}

unsigned validate_flags_cancellable(uint64_t *random)
{
    return validate_flags(random) & ~TM_SERIAL;
}

static void run_families(const struct validate_family *family)
{
    for (; family->name; family++)
        for (const struct validate_test *test = family->tests; test->name; test++) {
            if (!words_wants("tests", family->name) && !words_wants("tests", test->name))
                continue;
            current_test = test->name;
            host_watchdog((unsigned)host_number("seconds", SECONDS_DEFAULT));
            test->run();
            report(NULL);
        }
}

int check_main(void)
{
    unsigned threads = host_processors();

    validate_operations = host_number("operations", OPERATIONS_DEFAULT);
    validate_seed = host_number("seed", 1);
    validate_threads = (unsigned)host_number("threads", threads < 2 && host_threads_max() > 1 ? 2 : threads);
    validate_host_prepare();
    run_families(families);
    run_families(validate_host_families);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Validates locks. Words: locks=a,b (all), tests=a,b (all), sections=N (40000), seed=N (1), seconds=N (60) that a test
 * may take, htm=off for no hardware transactions.
 *
 * LOCKS is X(name) for each lock, from the makefile.
 */
#include "validate.h"

#include <tm/htm.h>

#include "../host.h"
#include "../output.h"
#include "../words.h"

#define X(name) extern const struct validation validation_##name;
LOCKS
#undef X

static const struct validation *const validations[] = {
#define X(name) &validation_##name,
    LOCKS
#undef X
};

uint64_t validate_sections;
uint64_t validate_seed;
/* Far more than any test takes, with other programs at work as well. */
static unsigned seconds_max = 60;

void validate_report(const char *lock, const char *test, const char *failure)
{
    struct output output = OUTPUT_INITIALIZER;

    output_member_text(&output, "validate", "lock");
    output_member_text(&output, "lock", lock);
    output_member_text(&output, "test", test);
    output_member_text(&output, "htm", tm_htm_kind_name(tm_htm_kind()));
    output_member_text(&output, "result", failure ? "failed" : "passed");
    if (failure)
        output_member_text(&output, "failure", failure);
    output_object_end(&output);
    if (failure)
        host_exit(1);
    host_watchdog(seconds_max);
}

int check_main(void)
{
    validate_sections = host_number("sections", 40000);
    validate_seed = host_number("seed", 1);
    if (words_equal(host_text("htm", ""), "off"))
        tm_htm_disable();
    seconds_max = (unsigned)host_number("seconds", seconds_max);
    host_watchdog(seconds_max);
    for (unsigned i = 0; i < sizeof(validations) / sizeof(validations[0]); i++)
        if (words_wants("locks", validations[i]->name))
            validations[i]->run();
    return 0;
}

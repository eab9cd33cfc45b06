/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The checking build's report. It is composed here, because the library cannot rely on a host's formatting. */
#include <tm/lock/holder.h>

#if TM_CHECKING
struct report {
    char text[240];
    unsigned length;
};

static void add_text(struct report *report, const char *text)
{
    while (*text && report->length < sizeof(report->text) - 1)
        report->text[report->length++] = *text++;
    report->text[report->length] = 0;
}

static void add_number(struct report *report, uint64_t number, unsigned base)
{
    char digits[21];
    unsigned begin = sizeof(digits) - 1;

    digits[begin] = 0;
    do {
        digits[--begin] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    add_text(report, digits + begin);
}

void tm_lock_report(const char *kind, const void *lock, uint32_t holder)
{
    struct report report = {.length = 0};

    add_text(&report, kind);
    add_text(&report, " lock 0x");
    add_number(&report, (uintptr_t)lock, 16);
    add_text(&report, " is released by processor ");
    add_number(&report, tm_port_processor(), 10);
    add_text(&report, " at 0x");
    add_number(&report, (uintptr_t)__builtin_return_address(0), 16);
    if (holder) {
        add_text(&report, " but held by processor ");
        add_number(&report, holder - 1, 10);
    } else {
        add_text(&report, " but held by nobody");
    }
    tm_port_misuse(report.text);
}
#endif

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Results: an object of JSON on a line of its own, which programs collect. Other lines, of tables, do not begin with {.
 */
#ifndef TM_CHECK_OUTPUT_H
#define TM_CHECK_OUTPUT_H

#include <tm/port.h>

struct output {
    char text[2000];
    unsigned length;
};

/* Begins an empty line. Text that does not fit is left out. */
#define OUTPUT_INITIALIZER {.length = 0}

void output_text(struct output *output, const char *text);
void output_number(struct output *output, uint64_t number);

/* In thousandths, so that 1500 is 1.500. */
void output_thousandths(struct output *output, uint64_t number);

/* Blanks up to this column. */
void output_column(struct output *output, unsigned column);

/* Members of an object: the first is preceded by the brace. `member` is without quotes, and so is `text`. */
void output_member_text(struct output *output, const char *member, const char *text);
void output_member_number(struct output *output, const char *member, uint64_t number);
void output_member_thousandths(struct output *output, const char *member, uint64_t number);

/* Ends the object, and prints the line. */
void output_object_end(struct output *output);

/* Prints the line. */
void output_end(struct output *output);

#endif

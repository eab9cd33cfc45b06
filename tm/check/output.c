/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "output.h"

#include "host.h"

static void add(struct output *output, char c)
{
    if (output->length < sizeof(output->text) - 1)
        output->text[output->length++] = c;
    output->text[output->length] = 0;
}

void output_text(struct output *output, const char *text)
{
    while (*text)
        add(output, *text++);
}

void output_number(struct output *output, uint64_t number)
{
    char digits[20];
    unsigned count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count)
        add(output, digits[--count]);
}

void output_thousandths(struct output *output, uint64_t number)
{
    output_number(output, number / 1000);
    add(output, '.');
    add(output, (char)('0' + number / 100 % 10));
    add(output, (char)('0' + number / 10 % 10));
    add(output, (char)('0' + number % 10));
}

void output_column(struct output *output, unsigned column)
{
    do
        add(output, ' ');
    while (output->length < column);
}

static void add_member(struct output *output, const char *member)
{
    output_text(output, output->length ? ",\"" : "{\"");
    output_text(output, member);
    output_text(output, "\":");
}

void output_member_text(struct output *output, const char *member, const char *text)
{
    add_member(output, member);
    add(output, '"');
    output_text(output, text);
    add(output, '"');
}

void output_member_number(struct output *output, const char *member, uint64_t number)
{
    add_member(output, member);
    output_number(output, number);
}

void output_member_thousandths(struct output *output, const char *member, uint64_t number)
{
    add_member(output, member);
    output_thousandths(output, number);
}

void output_object_end(struct output *output)
{
    add(output, '}');
    output_end(output);
}

void output_end(struct output *output)
{
    add(output, '\n');
    host_print(output->text);
    output->length = 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "words.h"

#include "host.h"

bool words_equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

bool words_contain(const char *text, const char *part)
{
    for (; *text; text++) {
        unsigned i = 0;

        while (part[i] && text[i] == part[i])
            i++;
        if (!part[i])
            return true;
    }
    return !*part;
}

bool words_wants(const char *key, const char *word)
{
    const char *list = host_text(key, "");

    if (!*list)
        return true;
    while (*list) {
        const char *w = word;

        while (*w && *list == *w)
            list++, w++;
        if (!*w && (!*list || *list == ','))
            return true;
        while (*list && *list++ != ',')
            ;
    }
    return false;
}

unsigned words_numbers(const char *key, const char *otherwise, uint64_t limit, uint64_t *numbers, unsigned numbers_max)
{
    const char *list = host_text(key, otherwise);
    unsigned count = 0;

    while (*list >= '0' && *list <= '9' && count < numbers_max) {
        uint64_t number = 0;

        while (*list >= '0' && *list <= '9')
            number = number * 10 + (uint64_t)(*list++ - '0');
        if (number >= 1 && number <= limit)
            numbers[count++] = number;
        if (*list == ',')
            list++;
    }
    return count;
}

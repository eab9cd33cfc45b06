/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Lists in the words that a program is told (host.h), separated by commas. */
#ifndef TM_CHECK_WORDS_H
#define TM_CHECK_WORDS_H

#include <tm/port.h>

bool words_equal(const char *a, const char *b);

bool words_contain(const char *text, const char *part);

/* Whether the key's list has this word, or there is no list. */
bool words_wants(const char *key, const char *word);

/*
 * The numbers of the key's list, or of `otherwise`, that are at least 1 and at most `limit`: how many they are. What is
 * not a number ends the list.
 */
unsigned words_numbers(const char *key, const char *otherwise, uint64_t limit, uint64_t *numbers, unsigned numbers_max);

#endif

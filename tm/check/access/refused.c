/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Accesses that must not compile. A number chooses one (-DCASE=N); the comment behind it is a part of what the compiler
 * has to say. Case 0 compiles.
 */
#include <tm/tm.h>

struct pair {
    int one, two;
};
union word {
    int number;
    float real;
};

static struct pair pair;
static union word word;
static struct {
    unsigned bits : 3;
} fields;
static int number, array[2];
static const int constant = 1;
static long double real;
static _Complex float complex_number;

void refused(void *memory);

void refused(void *memory)
{
    (void)memory, (void)pair, (void)word, (void)fields, (void)number, (void)array, (void)constant, (void)real;
    (void)complex_number;
#if CASE == 0
    tm_store(&number, tm_load(&constant));
#elif CASE == 1
    (void)tm_load(&pair); /* the object has no form in a transaction */
#elif CASE == 2
    tm_store(&pair, pair); /* the object has no form in a transaction */
#elif CASE == 3
    (void)tm_load(&word); /* the object has no form in a transaction */
#elif CASE == 4
    (void)tm_load(&fields.bits); /* bit-field */
#elif CASE == 5
    tm_store(&fields.bits, 1); /* bit-field */
#elif CASE == 6
    (void)tm_load(&real); /* the object has no form in a transaction */
#elif CASE == 7
    (void)tm_load(&complex_number); /* the object has no form in a transaction */
#elif CASE == 8
    (void)tm_load(&array); /* the object has no form in a transaction */
#elif CASE == 9
    tm_store(&constant, 2); /* the object that is stored to is constant */
#elif CASE == 10
    tm_store_local(&constant, 2); /* the object that is stored to is constant */
#elif CASE == 11
    tm_store_local(&pair, pair); /* the object has no form in a transaction */
#elif CASE == 12
    (void)tm_load_pointer(&number); /* the object is no pointer */
#elif CASE == 13
    tm_store_pointer(&number, 0); /* the object is no pointer */
#elif CASE == 14
    (void)tm_load(memory); /* void */
#elif CASE == 15
    (void)tm_load(refused); /* the object has no form in a transaction */
#elif CASE == 16
    (void)tm_load(number); /* int */
#else
#define NO_CASE
#endif
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Accesses to objects of each type that has a form, in C and in C++: each changes the object and neither of its
 * neighbours, converts as an assignment does, and evaluates its arguments once.
 */
#include <tm/tm.h>

enum fruit { APPLE, PEAR };
struct node {
    struct node *next;
    uint64_t value;
};
typedef void function(void);

static unsigned failures;

#define CHECK(condition) (failures += !(condition))

/* Each transaction loads, stores and loads again. `first` and `second` are two values of the type. */
#define TRY(type, first, second) \
    do { \
        static type neighbours[3] = {first, first, first}; \
        static type private_neighbours[3] = {first, first, first}; \
        if (tm_start(0) == TM_STARTED) { \
            type *object = &neighbours[1]; \
            type const *constant = &neighbours[1]; \
            CHECK(tm_load(object) == (type)(first)); \
            tm_store(object, second); \
            CHECK(tm_load(constant) == (type)(second)); \
            tm_store_local(&private_neighbours[1], second); \
            CHECK(private_neighbours[1] == (type)(second)); \
            tm_commit(); \
        } \
        CHECK(neighbours[0] == (type)(first) && neighbours[2] == (type)(first)); \
        CHECK(neighbours[1] == (type)(second)); \
        CHECK(private_neighbours[0] == (type)(first) && private_neighbours[2] == (type)(first)); \
    } while (0)

static void function_one(void)
{
}

static void function_two(void)
{
}

static void try_types(void)
{
    static struct node one, two;

    TRY(bool, false, true);
    TRY(char, 'a', 'b');
    TRY(signed char, -1, -2);
    TRY(unsigned char, 1, 255);
    TRY(short, -1, -2);
    TRY(unsigned short, 1, 65535);
    TRY(int, -1, -2);
    TRY(unsigned, 1, 4000000000u);
    TRY(long, -1, -2);
    TRY(unsigned long, 1, 2);
    TRY(long long, -1, -2);
    TRY(unsigned long long, 1, 2);
    TRY(float, 1.5f, -2.5f);
    TRY(double, 1.5, -2.5);
    TRY(enum fruit, APPLE, PEAR);
    TRY(struct node *, &one, &two);
    TRY(const struct node *, &one, &two);
    TRY(void *, &one, &two);
    TRY(function *, function_one, function_two);
    TRY(uint8_t, 1, 2);
    TRY(uint16_t, 1, 2);
    TRY(uint32_t, 1, 2);
    TRY(uint64_t, 1, 2);
    TRY(size_t, 1, 2);
}

/* The conversions of an assignment, and qualified objects. */
static void try_conversions(void)
{
    static double real;
    static long number;
    static volatile int changing;

    if (tm_start(0) == TM_STARTED) {
        tm_store(&real, 3);
        tm_store(&number, 'x');
        tm_store(&changing, 5);
        CHECK(tm_load(&changing) == 5);
        tm_commit();
    }
    CHECK(real == 3.0 && number == 'x' && changing == 5);
}

/* Accesses within the arguments of accesses, which are evaluated once; and arrays, which are pointers there. */
static void try_arguments(void)
{
    static struct node last = {NULL, 7}, first = {&last, 3};
    static struct node *top = &first;
    static uint64_t words[2];

    if (tm_start(0) == TM_STARTED) {
        uint64_t *next = words;

        tm_store(next++, tm_load(&tm_load(&tm_load(&top)->next)->value) + 1);
        CHECK(next == words + 1);
        tm_store(words + 1, tm_load(words));
        tm_store_pointer(&top, tm_load_pointer(&tm_load_pointer(&top)->next));
        tm_store_pointer(&first.next, NULL);
        tm_store(&last.next, NULL);
        tm_commit();
    }
    CHECK(words[0] == 8 && words[1] == 8 && top == &last && !first.next);
}

int main(void)
{
    try_types();
    try_conversions();
    try_arguments();
    return failures != 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * new and delete in transactions: what an aborted transaction has allocated is given back, what it has deleted stays,
 * and each by the operators of the program.
 */
#include "check.h"

/* <new> has these as functions that may not be called in transactions. */
namespace std
{
struct nothrow_t;
extern const nothrow_t nothrow;
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept SAFE;
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept SAFE;

struct object {
    long value, other;
    SAFE explicit object(long value) : value(value), other(-value)
    {
    }
    SAFE ~object()
    {
        destroyed++;
    }
    static long destroyed;
};
long object::destroyed;

static object *kept;
static object *kept_array;
static long *plain, *plain_array;

static NOINLINE void make(unsigned *restarts, bool cancel)
{
    __transaction_atomic
    {
        kept = new object(1);
        kept_array = new object[2]{object(2), object(3)};
        plain = new (std::nothrow) long(4);
        plain_array = new (std::nothrow) long[3];
        restart_once(restarts);
        if (cancel)
            __transaction_cancel;
    }
}

static NOINLINE void unmake(unsigned *restarts, bool cancel)
{
    __transaction_atomic
    {
        delete kept;
        delete[] kept_array;
        delete plain;
        delete[] plain_array;
        kept = nullptr;
        restart_once(restarts);
        if (cancel)
            __transaction_cancel;
    }
}

/* Made and deleted in one transaction, as an array and as an object. */
static NOINLINE void pass_by(unsigned *restarts)
{
    __transaction_atomic
    {
        object *one = new object(5);
        long *array = new long[3];
        array[2] = one->value;
        restart_once(restarts);
        delete one;
        delete[] array;
    }
}

static void check_counts(unsigned objects, unsigned arrays)
{
    CHECK(allocations.objects == objects);
    CHECK(allocations.arrays == arrays);
}

void check_memory()
{
    unsigned restarts = 0;
    struct allocations before = allocations;
    make(&restarts, true);
    check_counts(before.objects, before.arrays);
    restarts = 0;
    make(&restarts, false);
    check_counts(before.objects + 2, before.arrays + 2);
    CHECK(kept->value == 1 && kept_array[1].other == -3 && *plain == 4);
    long destroyed = object::destroyed;
    restarts = 0;
    unmake(&restarts, true);
    check_counts(before.objects + 2, before.arrays + 2);
    CHECK(kept && kept->value == 1 && object::destroyed == destroyed);
    restarts = 0;
    unmake(&restarts, false);
    check_counts(before.objects, before.arrays);
    CHECK(!kept && object::destroyed == destroyed + 3);
    restarts = 0;
    pass_by(&restarts);
    check_counts(before.objects, before.arrays);
}

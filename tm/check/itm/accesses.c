/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loads and stores of every type that C has, at their own and at other alignments, and beside each other in one word.
 * Not bit-fields: GCC 12 makes wrong code of them (it stores all of their bytes).
 */
#include "check.h"

/* Adds b to a twice, once in a transaction that is cancelled, and looks at the neighbours. */
#define CHECK_TYPE(name, type, a, b) \
    static type name##_shared[3]; \
    static NOINLINE type name##_add(type value, bool cancel) \
    { \
        type result = 0; \
        __transaction_atomic \
        { \
            name##_shared[1] = name##_shared[1] + value; \
            result = name##_shared[1]; \
            name##_shared[1] = name##_shared[1] + value; \
            if (cancel) \
                __transaction_cancel; \
        } \
        return result; \
    } \
    static NOINLINE type name##_add_only(type value) \
    { \
        __transaction_atomic \
        { \
            name##_shared[1] += value; \
        } \
        return name##_shared[1]; \
    } \
    static NOINLINE void name##_copy(void) \
    { \
        __transaction_atomic \
        { \
            name##_shared[0] = name##_shared[1]; \
            name##_shared[2] = name##_shared[0]; \
        } \
    } \
    static void check_##name(void) \
    { \
        for (int i = 0; i < 3; i++) \
            name##_shared[i] = (type)(a); \
        name##_add((type)(b), true); \
        CHECK(name##_shared[1] == (type)(a)); \
        CHECK(name##_add((type)(b), false) == (type)((type)(a) + (type)(b))); \
        CHECK(name##_shared[1] == (type)((type)((type)(a) + (type)(b)) + (type)(b))); \
        CHECK(name##_shared[0] == (type)(a) && name##_shared[2] == (type)(a)); \
        CHECK(name##_add_only((type)(b)) == (type)((type)((type)((type)(a) + (type)(b)) + (type)(b)) + (type)(b))); \
        name##_copy(); \
        CHECK(name##_shared[0] == name##_shared[1] && name##_shared[2] == name##_shared[1]); \
    }

CHECK_TYPE(u1, uint8_t, 0x7f, 0x81)
CHECK_TYPE(u2, uint16_t, 0x7fff, 0x8101)
CHECK_TYPE(u4, uint32_t, 0x7fffffff, 0x81234567)
CHECK_TYPE(u8, uint64_t, 0x7fffffffffffffff, 0x8123456789abcdef)
CHECK_TYPE(f, float, 1.5, 2.25)
CHECK_TYPE(d, double, 1.5, -2.25e100)
CHECK_TYPE(e, long double, 1.5l, 2.25e300l)
CHECK_TYPE(cf, float _Complex, 1.5f + 2.0if, -0.5f + 4.0if)
CHECK_TYPE(cd, double _Complex, 1.5 + 2.0i, -0.5 + 4.0i)
CHECK_TYPE(ce, long double _Complex, 1.5l + 2.0il, -0.5l + 4.0il)

/* Each member is on no multiple of its size, for some alignment of the whole. */
struct __attribute__((packed)) packed {
    uint8_t u1;
    uint16_t u2;
    uint32_t u4;
    uint64_t u8;
    float f;
    double d;
    long double e;
    double _Complex cd;
    uint8_t last;
};

static NOINLINE void change_packed(struct packed *packed, bool cancel)
{
    __transaction_atomic
    {
        packed->u2 += 0x101;
        packed->u4 += 0x1010101;
        packed->u8 += 0x101010101010101;
        packed->f += 1;
        packed->d += 1;
        packed->e += 1;
        packed->cd += 1;
        if (cancel)
            __transaction_cancel;
    }
}

static void check_packed(void)
{
    static char memory[sizeof(struct packed) + 16];
    for (unsigned offset = 0; offset < 16; offset++) {
        struct packed *packed = (void *)(memory + offset);
        *packed = (struct packed){1, 0xffff, 0xffffffff, 0xffffffffffffffff, 1, 2, 3, 4, 0x55};
        change_packed(packed, true);
        CHECK(packed->u1 == 1 && packed->u2 == 0xffff && packed->u4 == 0xffffffff && packed->u8 == 0xffffffffffffffff);
        CHECK(packed->f == 1 && packed->d == 2 && packed->e == 3 && packed->cd == 4 && packed->last == 0x55);
        change_packed(packed, false);
        CHECK(packed->u1 == 1 && packed->u2 == 0x100 && packed->u4 == 0x1010100 && packed->u8 == 0x101010101010100);
        CHECK(packed->f == 2 && packed->d == 3 && packed->e == 4 && packed->cd == 5 && packed->last == 0x55);
    }
}

/* Stores of all sizes into one word, each over the one before, and loads of all sizes of the result. */
static union {
    uint8_t u1[8];
    uint16_t u2[4];
    uint32_t u4[2];
    uint64_t u8;
} mixed;

struct seen {
    uint64_t u8;
    uint32_t u4;
    uint16_t u2;
    uint8_t u1;
};

static NOINLINE struct seen store_mixed(void)
{
    struct seen seen;
    __transaction_atomic
    {
        mixed.u1[3] = 0x33;
        mixed.u2[3] = 0x7766;
        seen.u8 = mixed.u8;
        mixed.u4[0] = 0x03020100;
        mixed.u1[1] = 0x11;
        seen.u4 = mixed.u4[0];
        seen.u2 = mixed.u2[0];
        seen.u1 = mixed.u1[7];
    }
    return seen;
}

static void check_mixed(void)
{
    mixed.u8 = 0xffeeddccbbaa9988;
    struct seen seen = store_mixed();
    CHECK(seen.u8 == 0x7766ddcc33aa9988);
    CHECK(seen.u4 == 0x03021100 && seen.u2 == 0x1100 && seen.u1 == 0x77);
    CHECK(mixed.u8 == 0x7766ddcc03021100);
}

void check_accesses(void)
{
    check_u1();
    check_u2();
    check_u4();
    check_u8();
    check_f();
    check_d();
    check_e();
    check_cf();
    check_cd();
    check_ce();
    check_packed();
    check_mixed();
}

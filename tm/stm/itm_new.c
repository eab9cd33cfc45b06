/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The compiler's interface: `new` and `delete` of C++ in transactions. Memory comes from the program's operator new, and
 * goes to its operator delete: when the transaction is taken back, or once it has committed and no other one can still
 * read the memory. The names are those of the operators (Itanium C++ ABI, chapter 5) with GCC's _ZGTt before them.
 */
#include "itm.h"

/* std::nothrow_t, of which only references are passed on. */
struct nothrow;

#pragma GCC visibility push(default)
__attribute__((weak)) void *_Znwm(size_t size_bytes);
__attribute__((weak)) void *_Znam(size_t size_bytes);
__attribute__((weak)) void *_ZnwmRKSt9nothrow_t(size_t size_bytes, const struct nothrow *nothrow);
__attribute__((weak)) void *_ZnamRKSt9nothrow_t(size_t size_bytes, const struct nothrow *nothrow);
__attribute__((weak)) void _ZdlPv(void *memory);
__attribute__((weak)) void _ZdaPv(void *memory);
#pragma GCC visibility pop

/*
 * The operator may throw: this file is compiled with -fexceptions. The place in the log comes first, because the
 * transaction may restart for it.
 */
#define DEFINE_NEW(new, delete) \
    void *_ZGTt##new(size_t size_bytes) \
    { \
        struct tm_action *action = tm_itm_add_undo(tm_port_transaction()); \
        void *memory = _Z##new(size_bytes); \
        if (action) \
            *action = (struct tm_action){delete, memory}; \
        return memory; \
    } \
    void *_ZGTt##new##RKSt9nothrow_t(size_t size_bytes, const struct nothrow *nothrow) \
    { \
        struct tm_action *action = tm_itm_add_undo(tm_port_transaction()); \
        void *memory = _Z##new##RKSt9nothrow_t(size_bytes, nothrow); \
        if (action && memory) \
            *action = (struct tm_action){delete, memory}; \
        return memory; \
    }
DEFINE_NEW(nwm, _ZdlPv)
DEFINE_NEW(nam, _ZdaPv)

/* Those that are told the size, or not to throw, do the same as the first. */
#define DEFINE_DELETE(delete) \
    void _ZGTt##delete(void *memory) \
    { \
        tm_free_by(memory, _Z##delete); \
    } \
    void _ZGTt##delete##m(void *memory, size_t size_bytes) \
    { \
        (void)size_bytes; \
        tm_free_by(memory, _Z##delete); \
    } \
    void _ZGTt##delete##RKSt9nothrow_t(void *memory, const struct nothrow *nothrow) \
    { \
        (void)nothrow; \
        tm_free_by(memory, _Z##delete); \
    } \
    void _ZGTt##delete##mRKSt9nothrow_t(void *memory, size_t size_bytes, const struct nothrow *nothrow) \
    { \
        (void)size_bytes; \
        (void)nothrow; \
        tm_free_by(memory, _Z##delete); \
    }
DEFINE_DELETE(dlPv)
DEFINE_DELETE(daPv)

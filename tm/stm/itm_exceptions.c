/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The compiler's interface: exceptions of C++ in transactions, and out of them.
 *
 * The C++ library keeps its exceptions outside of transactional memory. A transaction that is taken back has to take
 * back what it did there as well, so each exception of a transaction is an undo action, which changes as the exception
 * does:
 *
 *     allocated --throw--> in flight --begin of a catch--> caught --end of the catch--> nothing
 *                             ^                              |
 *                             +----------throw;--------------+
 *
 * No destructor of an exception runs when it is dropped: what it would destroy is taken back too. The transaction keeps
 * its caught exceptions up to its end, when their content is in memory for the destructor: with TL2, stores to them are
 * in the write set before that.
 *
 * The functions of the C++ library are weak, so that programs in C need no such library. The interface is that of GCC's
 * libitm; what the C++ library provides for it is in eh_tm.cc of GCC's libsupc++.
 */
#include <unwind.h>

#include "itm.h"

/* Itanium C++ ABI: Exception Handling, section 2.2.2. */
struct exceptions {
    void *caught;
    unsigned uncaught_count;
};

#pragma GCC visibility push(default)
__attribute__((weak)) void *__cxa_allocate_exception(size_t size_bytes);
__attribute__((weak)) void __cxa_free_exception(void *object);
__attribute__((weak, noreturn)) void __cxa_throw(void *object, void *type, void (*destroy)(void *object));
__attribute__((weak)) void *__cxa_begin_catch(void *header);
__attribute__((weak)) void __cxa_end_catch(void);
__attribute__((weak)) struct exceptions *__cxa_get_globals(void);
__attribute__((weak)) void __cxa_tm_cleanup(void *unthrown_object, void *header_in_flight, unsigned caught_count);

/* std::current_exception() and std::exception_ptr::~exception_ptr(): the result's address is an argument. */
struct exception_pointer {
    void *object;
};
__attribute__((weak)) void _ZSt17current_exceptionv(struct exception_pointer *result);
__attribute__((weak)) void _ZNSt15__exception_ptr13exception_ptrD1Ev(struct exception_pointer *pointer);
#pragma GCC visibility pop

/*
 * The C++ library's own transaction-safe functions, such as the constructors of std::runtime_error, refer to these
 * weakly, which links nothing from an archive.
 */
static const void *const wanted_by_the_library[] __attribute__((used)) = {
    (const void *)_ITM_RU1,        (const void *)_ITM_RU8,        (const void *)_ITM_addUserCommitAction,
    (const void *)_ITM_memcpyRnWt, (const void *)_ITM_memcpyRtWn, (const void *)_ZGTtnam,
    (const void *)_ZGTtdlPv,
};

static void clean_up(void *header_in_flight, unsigned caught_count)
{
    if (!__cxa_tm_cleanup)
        tm_port_fatal("__cxa_tm_cleanup is missing: link with -Wl,--undefined=__cxa_tm_cleanup");
    __cxa_tm_cleanup(NULL, header_in_flight, caught_count);
}

static void drop_allocated(void *object)
{
    __cxa_free_exception(object);
}

static void drop_in_flight(void *header)
{
    clean_up(header, 0);
    __cxa_get_globals()->uncaught_count--;
}

static void drop_caught(void *header)
{
    (void)header;
    clean_up(NULL, 1);
}

/* A handler has thrown its exception again, and that was caught inside of the handler: the outer one drops it. */
static void drop_caught_again(void *header)
{
    (void)header;
}

/* The transaction's own reference to an exception that it has caught: the last one, as all others are dropped before. */
static void drop_kept(void *object)
{
    __cxa_free_exception(object);
}

/* The same when the transaction has committed. */
static void release_kept(void *object)
{
    struct exception_pointer pointer = {object};
    _ZNSt15__exception_ptr13exception_ptrD1Ev(&pointer);
}

/*
 * Does nothing. It stands before drop_allocated, with the size, and before drop_caught, with the number of exceptions that
 * were uncaught when the handler began.
 */
static void remember(void *number)
{
    (void)number;
}

/* The latest undo action with this function, and this argument unless that is null. Null if there is none. */
static struct tm_action *find(const struct tm_transaction *transaction, void (*function)(void *argument),
                              const void *argument)
{
    struct tm_action *begin = (struct tm_action *)(void *)transaction->undo_actions.begin;
    for (struct tm_action *action = (struct tm_action *)(void *)transaction->undo_actions.next; action-- != begin;)
        if (action->function == function && (!argument || action->argument == argument))
            return action;
    return NULL;
}

static void *header_of(void *object)
{
    return (struct _Unwind_Exception *)object - 1;
}

/* Two undo actions, of which this is the second. They come first, because the transaction may restart for them. */
static struct tm_action *add_two(struct tm_transaction *transaction)
{
    tm_itm_add_undo(transaction);
    return tm_itm_add_undo(transaction);
}

void *_ITM_cxa_allocate_exception(size_t size_bytes)
{
    struct tm_action *action = add_two(tm_port_transaction());
    void *object = __cxa_allocate_exception(size_bytes);
    if (action) {
        action[-1] = (struct tm_action){remember, (void *)size_bytes};
        action[0] = (struct tm_action){drop_allocated, object};
    }
    return object;
}

void _ITM_cxa_free_exception(void *object)
{
    /* Later: stores to it may be in the write set. Until then it is still dropped where the transaction is taken back. */
    tm_free_by(object, __cxa_free_exception);
}

/*
 * The C++ library constructs its exceptions with stores of both kinds, which a write set would bring out of order. No
 * other context accesses an exception that is under construction.
 */
bool tm_itm_is_in_exception(const struct tm_transaction *transaction, const void *address)
{
    const struct tm_action *action = find(transaction, drop_allocated, NULL);
    return action && (uintptr_t)address - (uintptr_t)action->argument < (uintptr_t)action[-1].argument;
}

void _ITM_cxa_throw(void *object, void *type, void (*destroy)(void *object))
{
    struct tm_action *action = find(tm_port_transaction(), drop_allocated, object);
    if (action)
        *action = (struct tm_action){drop_in_flight, header_of(object)};
    __cxa_throw(object, type, destroy);
}

/* Keeps the exception of the handler that has just begun. Afterwards the addresses of actions are others. */
static void keep(struct tm_transaction *transaction, struct tm_action *place)
{
    struct exception_pointer current = {NULL};
    _ZSt17current_exceptionv(&current);
    if (!current.object)
        return;
    if (find(transaction, drop_kept, current.object)) {
        release_kept(current.object);
        return;
    }
    *place = (struct tm_action){drop_kept, current.object};
    _ITM_addUserCommitAction(release_kept, ITM_NO_TRANSACTION_ID, current.object);
}

void *_ITM_cxa_begin_catch(void *header)
{
    struct tm_transaction *transaction = tm_port_transaction();
    tm_itm_add_undo(transaction);
    struct tm_action *caught = add_two(transaction);
    void *object = __cxa_begin_catch(header);
    if (!caught)
        return object;
    bool is_caught_already = find(transaction, drop_caught, header);
    caught[-1] = (struct tm_action){remember, (void *)(uintptr_t)__cxa_get_globals()->uncaught_count};
    caught[0] = (struct tm_action){is_caught_already ? drop_caught_again : drop_caught, header};
    struct tm_action *in_flight = find(transaction, drop_in_flight, header);
    if (in_flight)
        in_flight->function = tm_itm_do_nothing;
    keep(transaction, caught - 2);
    return object;
}

void _ITM_cxa_end_catch(void)
{
    const struct tm_transaction *transaction = tm_port_transaction();
    struct tm_action *caught = find(transaction, drop_caught, NULL);
    struct tm_action *again = find(transaction, drop_caught_again, NULL);
    if (again > caught)
        caught = again;
    if (caught) {
        bool is_thrown_again = __cxa_get_globals()->uncaught_count > (uintptr_t)caught[-1].argument;
        bool is_the_last = caught->function == drop_caught;
        caught->function = is_thrown_again && is_the_last ? drop_in_flight : tm_itm_do_nothing;
    }
    __cxa_end_catch();
}

void _ITM_commitTransactionEH(void *header)
{
    struct tm_transaction *transaction = tm_port_transaction();
    /* Code without calls to this library has thrown what is not known here. */
    if (transaction->depth && !find(transaction, drop_in_flight, header)) {
        struct tm_action *action = tm_itm_add_undo(transaction);
        if (action)
            *action = (struct tm_action){drop_in_flight, header};
    }
    if (TM_UNLIKELY(tm_commit_from(TM_CALLERS_STACK()) != TM_COMMITTED))
        tm_port_fatal("_ITM_commitTransactionEH: no transaction is open");
}

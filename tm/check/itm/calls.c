/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The functions that a program calls by name: identifiers, actions, versions. */
#include "check.h"

static long shared;
static unsigned committed[4], undone[4];
static unsigned committed_count, undone_count;
static long seen_by_action;

static void commit_action(void *argument)
{
    committed[committed_count++ & 3] = (unsigned)(uintptr_t)argument;
    seen_by_action = shared;
    /* An action may contain its own transactions. */
    __transaction_atomic
    {
        shared++;
    }
}

static void undo_action(void *argument)
{
    undone[undone_count++ & 3] = (unsigned)(uintptr_t)argument;
    seen_by_action = shared;
}

static NOINLINE void act(bool inner, bool outer)
{
    __transaction_atomic
    {
        shared = 10;
        _ITM_addUserCommitAction(commit_action, NO_TRANSACTION_ID, (void *)1);
        _ITM_addUserUndoAction(undo_action, (void *)1);
        __transaction_atomic
        {
            shared = 20;
            _ITM_addUserUndoAction(undo_action, (void *)2);
            _ITM_addUserCommitAction(commit_action, NO_TRANSACTION_ID, (void *)2);
            _ITM_addUserUndoAction(undo_action, (void *)3);
            if (inner)
                __transaction_cancel;
        }
        if (outer)
            __transaction_cancel;
    }
}

static void check_actions(void)
{
    committed_count = undone_count = 0;
    shared = 1;
    act(false, false);
    CHECK(committed_count == 2 && committed[0] == 1 && committed[1] == 2 && undone_count == 0);
    CHECK(seen_by_action == 21 && shared == 22);

    committed_count = undone_count = 0;
    shared = 1;
    act(true, false);
    CHECK(committed_count == 1 && committed[0] == 1);
    CHECK(undone_count == 2 && undone[0] == 3 && undone[1] == 2);
    CHECK(shared == 11);

    committed_count = undone_count = 0;
    shared = 1;
    act(false, true);
    CHECK(committed_count == 0 && undone_count == 3 && undone[0] == 3 && undone[1] == 2 && undone[2] == 1);
    CHECK(seen_by_action == 1 && shared == 1);

    committed_count = 0;
    shared = 5;
    _ITM_addUserCommitAction(commit_action, NO_TRANSACTION_ID, (void *)3);
    CHECK(committed_count == 1 && committed[0] == 3 && seen_by_action == 5);
}

struct identifiers {
    uint64_t outer, inner, after;
    uint32_t how;
};

static NOINLINE struct identifiers identify(bool cancel)
{
    struct identifiers identifiers = {0};
    uint64_t outer, inner = 0, after;
    uint32_t how;
    __transaction_atomic
    {
        shared++;
        outer = _ITM_getTransactionId();
        how = _ITM_inTransaction();
        __transaction_atomic
        {
            shared++;
            inner = _ITM_getTransactionId();
            if (cancel)
                __transaction_cancel;
        }
        after = _ITM_getTransactionId();
        _ITM_dropReferences(&shared, sizeof shared);
    }
    identifiers.outer = outer;
    identifiers.inner = inner;
    identifiers.after = after;
    identifiers.how = how;
    return identifiers;
}

void check_calls(void)
{
    check_actions();

    CHECK(_ITM_inTransaction() == 0);
    CHECK(_ITM_getTransactionId() == NO_TRANSACTION_ID);
    struct identifiers first = identify(false), second = identify(true);
    CHECK(first.outer > NO_TRANSACTION_ID && first.inner != first.outer && first.after == first.outer);
    CHECK(second.outer != first.outer && second.outer != first.inner && second.after == second.outer);
    CHECK(first.how == IN_RETRYABLE_TRANSACTION);

    CHECK(_ITM_versionCompatible(90) && !_ITM_versionCompatible(1));
    CHECK(_ITM_libraryVersion()[0]);
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* All headers and the compiler's transactions in one file, which is C and C++. */
#include <tm/interrupt.h>
#include <tm/lock.h>
#include <tm/signals.h>
#include <tm/tm.h>

static struct tm_byte_lock byte = TM_BYTE_LOCK_INITIALIZER;
static struct tm_test_and_set_lock test_and_set = TM_TEST_AND_SET_LOCK_INITIALIZER;
static struct tm_ticket_lock ticket = TM_TICKET_LOCK_INITIALIZER;
static struct tm_mcs_lock mcs = TM_MCS_LOCK_INITIALIZER;
static struct tm_queued_lock queued = TM_QUEUED_LOCK_INITIALIZER;
static struct tm_paravirtualized_lock paravirtualized = TM_PARAVIRTUALIZED_LOCK_INITIALIZER;
static struct tm_unfair_lock unfair = TM_UNFAIR_LOCK_INITIALIZER;
static struct tm_queued_rw_lock queued_rw = TM_QUEUED_RW_LOCK_INITIALIZER;
static struct tm_cx_lock cx = TM_CX_LOCK_INITIALIZER;
static struct tm_tx_lock tx = TM_TX_LOCK_INITIALIZER;
static uint64_t word;

static void lock_all(void)
{
    struct tm_mcs_node node;

    tm_byte_lock_acquire(&byte);
    tm_test_and_set_lock_acquire(&test_and_set);
    tm_ticket_lock_acquire(&ticket);
    tm_mcs_lock_acquire(&mcs, &node);
    tm_queued_lock_acquire(&queued);
    tm_paravirtualized_lock_acquire(&paravirtualized);
    tm_unfair_lock_acquire(&unfair);
    tm_queued_rw_lock_write_acquire(&queued_rw);
    word++;
    tm_queued_rw_lock_write_release(&queued_rw);
    tm_unfair_lock_release(&unfair);
    tm_paravirtualized_lock_release(&paravirtualized);
    tm_queued_lock_release(&queued);
    tm_mcs_lock_release(&mcs, &node);
    tm_ticket_lock_release(&ticket);
    tm_test_and_set_lock_release(&test_and_set);
    tm_byte_lock_release(&byte);
    cx_optimistic(&cx);
    word++;
    cx_end(&cx);
    tx_spin_lock(&tx);
    word++;
    tx_spin_unlock(&tx);
}

static void store_plainly(void)
{
    if (tm_start(0) == TM_STARTED) {
        tm_store(&word, tm_load(&word) + 1);
        tm_commit();
    }
}

int main(void)
{
    lock_all();
    store_plainly();
    __transaction_atomic {
        word++;
    }
    return word != 5;
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The symbols for other modules: all declarations of <tm/tm.h>, <tm/htm.h>, <tm/statistics.h> and <tm/lock/...>, and
 * the functions that their inline functions call.
 */
#include <linux/module.h>

#include <tm/lock/byte.h>
#include <tm/lock/cx.h>
#include <tm/lock/mcs.h>
#include <tm/lock/paravirtualized.h>
#include <tm/lock/queued.h>
#include <tm/lock/queued_rw.h>
#include <tm/lock/test_and_set.h>
#include <tm/lock/ticket.h>
#include <tm/lock/tx.h>
#include <tm/lock/unfair.h>
#include <tm/statistics.h>
#include <tm/tm.h>

EXPORT_SYMBOL_GPL(tm_start);
EXPORT_SYMBOL_GPL(tm_restart_here);
EXPORT_SYMBOL_GPL(tm_commit);
EXPORT_SYMBOL_GPL(tm_abort);
EXPORT_SYMBOL_GPL(tm_cancel);
EXPORT_SYMBOL_GPL(tm_in_transaction);
EXPORT_SYMBOL_GPL(tm_become_irrevocable);
EXPORT_SYMBOL_GPL(tm_load8);
EXPORT_SYMBOL_GPL(tm_load16);
EXPORT_SYMBOL_GPL(tm_load32);
EXPORT_SYMBOL_GPL(tm_load64);
EXPORT_SYMBOL_GPL(tm_store8);
EXPORT_SYMBOL_GPL(tm_store16);
EXPORT_SYMBOL_GPL(tm_store32);
EXPORT_SYMBOL_GPL(tm_store64);
EXPORT_SYMBOL_GPL(tm_store_local8);
EXPORT_SYMBOL_GPL(tm_store_local16);
EXPORT_SYMBOL_GPL(tm_store_local32);
EXPORT_SYMBOL_GPL(tm_store_local64);
EXPORT_SYMBOL_GPL(tm_alloc);
EXPORT_SYMBOL_GPL(tm_free);
EXPORT_SYMBOL_GPL(tm_lock);
EXPORT_SYMBOL_GPL(tm_unlock);
EXPORT_SYMBOL_GPL(tm_weak_lock);
EXPORT_SYMBOL_GPL(tm_read_counts);
EXPORT_SYMBOL_GPL(tm_algorithm_name);

EXPORT_SYMBOL_GPL(tm_htm_find);
EXPORT_SYMBOL_GPL(tm_htm_found);
EXPORT_SYMBOL_GPL(tm_htm_disable);
EXPORT_SYMBOL_GPL(tm_htm_kind_name);
EXPORT_SYMBOL_GPL(tm_htm_cause_name);
EXPORT_SYMBOL_GPL(tm_htm_budgets);
EXPORT_SYMBOL_GPL(tm_htm_wait_turns);
EXPORT_SYMBOL_GPL(tm_htm_nested_wait_turns);
EXPORT_SYMBOL_GPL(tm_htm_refusals_max);

EXPORT_SYMBOL_GPL(tm_byte_lock_wait);
EXPORT_SYMBOL_GPL(tm_test_and_set_lock_wait);
EXPORT_SYMBOL_GPL(tm_ticket_lock_wait);
EXPORT_SYMBOL_GPL(tm_mcs_lock_wait);
EXPORT_SYMBOL_GPL(tm_mcs_lock_hand_over);
EXPORT_SYMBOL_GPL(tm_queued_lock_wait);
EXPORT_SYMBOL_GPL(tm_paravirtualized_lock_wait);
EXPORT_SYMBOL_GPL(tm_paravirtualized_lock_wake);
EXPORT_SYMBOL_GPL(tm_unfair_lock_wait);
EXPORT_SYMBOL_GPL(tm_queued_rw_lock_read_wait);
EXPORT_SYMBOL_GPL(tm_queued_rw_lock_write_wait);
EXPORT_SYMBOL_GPL(tm_cx_lock_acquire);
EXPORT_SYMBOL_GPL(tm_cx_lock_slow);
EXPORT_SYMBOL_GPL(tm_cx_lock_try_slow);
EXPORT_SYMBOL_GPL(tm_tx_lock_slow);

EXPORT_SYMBOL_GPL(tm_statistics_name);
EXPORT_SYMBOL_GPL(tm_statistics_description);
EXPORT_SYMBOL_GPL(tm_statistics_read);
EXPORT_SYMBOL_GPL(tm_statistics_reset);
#if TM_STATISTICS
EXPORT_SYMBOL_GPL(tm_statistics);
#endif
#if TM_CHECKING
EXPORT_SYMBOL_GPL(tm_lock_report);
#endif

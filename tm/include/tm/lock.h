/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Every lock of the library. Programs that use one of them may include its own header. */
#ifndef TM_LOCK_H
#define TM_LOCK_H

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

#endif

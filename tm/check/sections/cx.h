/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/cx.h>

#define SECTION_NAME cx
#define SECTION_LOCK struct tm_cx_lock
#define SECTION_ENTER(lock) cx_optimistic(lock)
#define SECTION_ENTER_ALONE(lock) cx_exclusive(lock)
#define SECTION_TRY(lock) cx_try(lock)
#define SECTION_LEAVE(lock) cx_end(lock)
/* Sections may be left in any order. */
#define SECTION_ANY_ORDER 1
/* A section that runs alone always makes other sections fail. */
#define SECTION_ALONE_WAITS 0

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Transactional spinlocks that are in no transaction's read set (tm/include/tm/lock/tx.h, tm/lock/tx.c).
 *
 * Right: safety FIRST=EVERY OTHERS=EVERY
 * Right: safety FIRST=EVERY OTHERS=EVERY RTM
 * Right: safety THREADS=3 FIRST=PAIR OTHERS=PAIR
 * Long: safety THREADS=3 FIRST=SINGLE OTHERS=SINGLE
 * Right: progress FIRST=EVERY OTHERS=EVERY
 * Right: progress FIRST=EVERY OTHERS=EVERY RTM
 * Long: safety THREADS=3 FIRST=NESTED OTHERS=EVERY
 * Long: safety THREADS=3 FIRST=NESTED OTHERS=EVERY RTM
 * Wrong: safety FIRST=NESTED OTHERS=OTHER_LOCK ALONE_UNSAID: assertion violated (((onlooker==self)
 * Wrong: safety FIRST=NESTED OTHERS=OTHER_LOCK ALONE_UNHEEDED: assertion violated (((onlooker==self)
 * Wrong: safety FIRST=NESTED OTHERS=OTHER_LOCK NO_SUBSCRIPTION: assertion violated (((onlooker==self)
 * Wrong: safety FIRST=SINGLE OTHERS=SINGLE READ_RELEASED_EARLY: assertion violated (
 */
#define TX
#include "elision.pml"

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The conflict priority of a thread, by which a contention manager can let the transaction of the more
 * urgent thread win (section 6.1 of the paper that <linux/cx.h> names).
 */
#include <linux/cx.h>
#include <linux/sched.h>

/* Upper bits: deadline 3, real time 2, fair 1, batch and idle 0. Lower six: priority within the policy. */
unsigned long cx_priority(const struct task_struct *task)
{
	switch (task->policy) {
	case SCHED_DEADLINE:
		return 3 << 6 | 63;
	case SCHED_FIFO:
	case SCHED_RR:
		return 2 << 6 | task->rt_priority * 63 / MAX_RT_PRIO;
	case SCHED_NORMAL:
		/* nice 19 to -20 */
		return 1 << 6 | (MAX_PRIO - 1 - task->static_prio);
	default:
		return MAX_PRIO - 1 - task->static_prio;
	}
}

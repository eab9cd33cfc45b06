// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wake-ups inside sections. The workers form a ring in which each passes tokens to the next. In the
 * section of the next worker's box it adds a token and wakes that worker, which sleeps until its box
 * holds a token. A lost wake-up leaves a worker asleep, and the test does not finish.
 */
#include <linux/sched.h>
#include <linux/wait.h>

#include "test.h"

enum { DONE_SENT, DONE_TAKEN };
/* The number of tokens that a box holds. A sender sleeps while the box is full. */
#define ROOM 2

static struct box {
	spinlock_t lock;
	wait_queue_head_t changed;
	u64 tokens;
} ____cacheline_aligned boxes[WORKERS_MAX];

static void wakeups_prepare(void)
{
	unsigned int number;

	for (number = 0; number < WORKERS_MAX; number++) {
		spin_lock_init(&boxes[number].lock);
		init_waitqueue_head(&boxes[number].changed);
		boxes[number].tokens = 0;
	}
}

static void send(struct worker *worker)
{
	struct box *box = &boxes[(worker->number + 1) % workers_count];

	spin_lock(&box->lock);
	wait_event_cmd(box->changed, box->tokens < ROOM, spin_unlock(&box->lock), spin_lock(&box->lock));
	box->tokens++;
	wake_up(&box->changed);
	spin_unlock(&box->lock);
	worker->done[DONE_SENT]++;
}

static void take(struct worker *worker)
{
	struct box *box = &boxes[worker->number];

	spin_lock_irq(&box->lock);
	wait_event_lock_irq(box->changed, box->tokens > 0, box->lock);
	box->tokens--;
	wake_up_all(&box->changed);
	spin_unlock_irq(&box->lock);
	worker->done[DONE_TAKEN]++;
}

static void wakeups_work(struct worker *worker)
{
	send(worker);
	take(worker);
}

static bool wakeups_are_right(void)
{
	unsigned int number;
	u64 left = 0;

	for (number = 0; number < workers_count; number++)
		left += boxes[number].tokens;
	return left == 0 && done_by_all(DONE_SENT) == (u64)iterations * workers_count &&
	       done_by_all(DONE_TAKEN) == done_by_all(DONE_SENT);
}

const struct test wakeups_test = {
	.name = "wakeups",
	.workers_min = 1,
	.prepare = wakeups_prepare,
	.work = wakeups_work,
	.is_right = wakeups_are_right,
};

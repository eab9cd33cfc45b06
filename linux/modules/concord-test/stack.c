// SPDX-License-Identifier: GPL-2.0-only
/*
 * The live-stack hazard (Xmetatm, section 17.1). A function begins a transaction and returns, so the
 * stack is now shorter. A timer interrupts the section, and its handler overwrites the stack. Then
 * another processor makes the transaction restart, which goes back into the function; its frame must
 * be unchanged.
 *
 * Workers form pairs: one runs the section, its partner causes the conflict.
 */
#include <linux/hrtimer.h>
#include <linux/sched.h>

#include "test.h"

#define FRAME_WORDS 64
#define PATTERN 0x5a5a000000000000ULL
#define POLLS_MAX 200000
#define DELAY_NS 500

enum { DONE_SECTIONS, DONE_RESTARTS, DONE_INTERRUPTIONS };

static struct stage {
	spinlock_t lock;
	/* In the section's read set; the partner writes it. */
	u64 contended ____cacheline_aligned;
	/* The members from here on are in no transaction's sets. */
	struct hrtimer timer ____cacheline_aligned;
	u64 entries;
	u64 interruptions;
	/* Requests for the partner to write `contended`, and the partner's answers. */
	u64 requests;
	u64 answers;
} ____cacheline_aligned stages[WORKERS_MAX / 2];

static enum hrtimer_restart stack_handler(struct hrtimer *timer)
{
	struct stage *stage = container_of(timer, struct stage, timer);

	dirty_stack(8);
	WRITE_ONCE(stage->interruptions, stage->interruptions + 1);
	return HRTIMER_NORESTART;
}

static void stack_prepare(void)
{
	unsigned int number;

	for (number = 0; number < ARRAY_SIZE(stages); number++) {
		spin_lock_init(&stages[number].lock);
		hrtimer_init(&stages[number].timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		stages[number].timer.function = stack_handler;
	}
}

/* Begins the section and returns inside it. A restart goes back into this function's frame. */
static noinline void enter(struct stage *stage, u64 *disorders)
{
	volatile u64 frame[FRAME_WORDS];
	unsigned int word;

	for (word = 0; word < FRAME_WORDS; word++)
		frame[word] = PATTERN + word;
	spin_lock(&stage->lock);
	for (word = 0; word < FRAME_WORDS; word++)
		if (frame[word] != PATTERN + word)
			count_outside(disorders);
}

/* Waits for a bounded time, because the interrupt or the partner's answer may never come. */
static __always_inline void await(u64 *count, u64 wanted)
{
	unsigned int polls;

	for (polls = 0; polls < POLLS_MAX && load_outside(count) != wanted; polls++)
		;
}

static void section(struct stage *stage, struct worker *worker)
{
	u64 entries = stage->entries, requests = stage->requests, interruptions = stage->interruptions;

	hrtimer_start(&stage->timer, ns_to_ktime(DELAY_NS), HRTIMER_MODE_REL_PINNED_HARD);
	enter(stage, &worker->disorders);
	count_outside(&stage->entries);
	(void)READ_ONCE(stage->contended);
	if (load_outside(&stage->entries) == entries + 1) {
		await(&stage->interruptions, interruptions + 1);
		count_outside(&stage->requests);
		/* A transaction loses and restarts here. */
		await(&stage->answers, requests + 1);
	}
	spin_unlock(&stage->lock);
	hrtimer_cancel(&stage->timer);
	/* The transaction lost before it sent its request. */
	if (stage->requests == requests)
		WRITE_ONCE(stage->requests, requests + 1);
	while (READ_ONCE(stage->answers) != requests + 1)
		cond_resched();
	worker->done[DONE_SECTIONS]++;
	worker->done[DONE_RESTARTS] += stage->entries - entries - 1;
	worker->done[DONE_INTERRUPTIONS] += stage->interruptions - interruptions;
}

static void disturb(struct stage *stage)
{
	u64 answers = stage->answers;

	while (READ_ONCE(stage->requests) == answers)
		cond_resched();
	WRITE_ONCE(stage->contended, answers);
	WRITE_ONCE(stage->answers, answers + 1);
}

static void stack_work(struct worker *worker)
{
	struct stage *stage = &stages[worker->number / 2];

	/* With an odd number of workers the last one has no partner. */
	if (worker->number == workers_count - 1 && worker->number % 2 == 0)
		return;
	if (worker->number % 2 == 0)
		section(stage, worker);
	else
		disturb(stage);
}

static bool stack_is_right(void)
{
	pr_info("stack: %llu sections, %llu interrupted, %llu restarts\n", done_by_all(DONE_SECTIONS),
		done_by_all(DONE_INTERRUPTIONS), done_by_all(DONE_RESTARTS));
	return true;
}

const struct test stack_test = {
	.name = "stack",
	.workers_min = 2,
	.prepare = stack_prepare,
	.work = stack_work,
	.is_right = stack_is_right,
};

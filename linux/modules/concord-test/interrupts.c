// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers that interrupt the workers in their sections. On each processor one handler runs as a hard
 * interrupt and one as a soft interrupt. The handlers take locks themselves, also those of the workers
 * and also nested; they perform irrevocable actions, and they overwrite part of the stack.
 */
#include <linux/hrtimer.h>
#include <linux/percpu.h>

#include "test.h"

/*
 * Nanoseconds from one interrupt to the next. Some interrupts come at once. The others become rarer as
 * the number of processors grows, because all handlers use the same pairs.
 */
#define DELAY_SHORT_MAX_NS 3000
#define DELAY_WORKER_MAX_NS 10000
#define DIRTY_DEPTH_MAX 6
#define DIRTY_BYTES 256

struct pair hard_pair, soft_pair;

struct processor {
	struct worker *worker;
	struct hrtimer hard;
	struct hrtimer soft;
	bool stop;
};
static DEFINE_PER_CPU(struct processor, processors);

noinline void dirty_stack(unsigned int depth)
{
	volatile u8 frame[DIRTY_BYTES];
	unsigned int byte;

	for (byte = 0; byte < DIRTY_BYTES; byte++)
		frame[byte] = 0x5a;
	if (depth)
		dirty_stack(depth - 1);
	/* Prevents a tail call. */
	barrier();
	(void)frame[0];
}

/*
 * Starts the timer of a hard or soft handler again. A hard handler may interrupt the soft handler, so
 * each passes random state of its own.
 */
static enum hrtimer_restart again(struct processor *processor, struct hrtimer *timer, u64 *random)
{
	u32 delay_max_ns = workers_count * DELAY_WORKER_MAX_NS;

	if (READ_ONCE(processor->stop))
		return HRTIMER_NORESTART;
	if (random_below(random, 8) == 0)
		delay_max_ns = DELAY_SHORT_MAX_NS;
	hrtimer_forward_now(timer, ns_to_ktime(random_below(random, delay_max_ns)));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart hard_handler(struct hrtimer *timer)
{
	struct processor *processor = container_of(timer, struct processor, hard);
	struct worker *worker = processor->worker;
	u32 choice = random_below(&worker->interrupt_random, 64);

	dirty_stack(choice % DIRTY_DEPTH_MAX);
	if (choice % 8 == 0)
		cx_exclusive(&hard_pair.lock);
	else
		spin_lock(&hard_pair.lock);
	pair_add(&hard_pair, &worker->disorders, choice == 1);
	spin_unlock(&hard_pair.lock);
	worker->hard_interrupts++;
	return again(processor, timer, &worker->interrupt_random);
}

static enum hrtimer_restart soft_handler(struct hrtimer *timer)
{
	struct processor *processor = container_of(timer, struct processor, soft);
	struct worker *worker = processor->worker;
	unsigned long flags;
	u64 random = worker->soft_interrupts;

	spin_lock(&soft_pair.lock);
	pair_add(&soft_pair, &worker->disorders, random_next(&random) % 64 == 0);
	dirty_stack(1);
	spin_unlock(&soft_pair.lock);
	worker->soft_interrupts++;
	spin_lock_irqsave(&hard_pair.lock, flags);
	pair_add(&hard_pair, &worker->disorders, false);
	spin_unlock_irqrestore(&hard_pair.lock, flags);
	return again(processor, timer, &random);
}

bool interrupts_prepare(void)
{
	pair_init(&hard_pair);
	pair_init(&soft_pair);
	return true;
}

/* Runs on the worker's processor. */
void interrupts_start(struct worker *worker)
{
	struct processor *processor = this_cpu_ptr(&processors);

	processor->worker = worker;
	processor->stop = false;
	hrtimer_init(&processor->hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	processor->hard.function = hard_handler;
	hrtimer_init(&processor->soft, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	processor->soft.function = soft_handler;
	hrtimer_start(&processor->hard, ns_to_ktime(0), HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&processor->soft, ns_to_ktime(0), HRTIMER_MODE_REL_PINNED_SOFT);
}

void interrupts_stop(struct worker *worker)
{
	struct processor *processor = this_cpu_ptr(&processors);

	WRITE_ONCE(processor->stop, true);
	hrtimer_cancel(&processor->hard);
	hrtimer_cancel(&processor->soft);
}

u64 soft_interrupts_by_all(void)
{
	unsigned int number;
	u64 sum = 0;

	for (number = 0; number < workers_count; number++)
		sum += workers[number].soft_interrupts;
	return sum;
}

/* Includes the soft handlers, which add to the hard pair as well. */
u64 hard_interrupts_by_all(void)
{
	unsigned int number;
	u64 sum = soft_interrupts_by_all();

	for (number = 0; number < workers_count; number++)
		sum += workers[number].hard_interrupts;
	return sum;
}

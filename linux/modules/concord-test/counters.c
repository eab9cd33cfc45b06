// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads, and the handlers that interrupt them, add to pairs of counters under every kind of lock
 * (spinlocks, reader/writer locks, seqlocks) and in every form of section.
 */
#include <linux/seqlock.h>

#include "test.h"

#define PAIRS 4
/* Indices of a worker's own counts: its additions to each pair, and to the pairs below. */
enum { DONE_PAIRS, DONE_HARD = PAIRS, DONE_SOFT, DONE_RWLOCK, DONE_SEQLOCK };

static struct pair pairs[PAIRS];

static DEFINE_RWLOCK(rwlock);
static struct pair under_rwlock;
static DEFINE_SEQLOCK(seqlock);
static struct pair under_seqlock;

static void counters_prepare(void)
{
	unsigned int index;

	for (index = 0; index < PAIRS; index++)
		pair_init(&pairs[index]);
	pair_init(&under_rwlock);
	pair_init(&under_seqlock);
}

static void add_to_pair(struct worker *worker)
{
	u32 index = random_below(&worker->random, PAIRS);
	enum form form = random_below(&worker->random, FORMS);
	bool acts = random_below(&worker->random, 8) == 0;
	struct section section;

	if (!section_begin(&section, &pairs[index].lock, form))
		return;
	pair_add(&pairs[index], &worker->disorders, acts);
	section_end(&section);
	worker->done[DONE_PAIRS + index]++;
}

/* Adds to the pairs that handlers use: with interrupts off, or with soft interrupts off. */
static void add_to_handlers_pair(struct worker *worker)
{
	u32 choice = random_below(&worker->random, 8);
	unsigned long flags;

	if (choice < 4) {
		spin_lock_irqsave(&hard_pair.lock, flags);
		pair_add(&hard_pair, &worker->disorders, choice == 0);
		spin_unlock_irqrestore(&hard_pair.lock, flags);
		worker->done[DONE_HARD]++;
	} else if (choice < 6) {
		spin_lock_bh(&soft_pair.lock);
		/* A hard handler takes the inner lock as well, and interrupts are on here. */
		spin_lock_irq(&hard_pair.lock);
		pair_add(&hard_pair, &worker->disorders, false);
		pair_add(&soft_pair, &worker->disorders, choice == 4);
		spin_unlock_irq(&hard_pair.lock);
		spin_unlock_bh(&soft_pair.lock);
		worker->done[DONE_HARD]++;
		worker->done[DONE_SOFT]++;
	} else if (spin_trylock_bh(&soft_pair.lock)) {
		pair_add(&soft_pair, &worker->disorders, choice == 6);
		spin_unlock_bh(&soft_pair.lock);
		worker->done[DONE_SOFT]++;
	}
}

static void use_rwlock(struct worker *worker)
{
	u32 choice = random_below(&worker->random, 8);
	unsigned long flags;

	switch (choice) {
	case 0:
		write_lock(&rwlock);
		pair_add(&under_rwlock, &worker->disorders, false);
		write_unlock(&rwlock);
		worker->done[DONE_RWLOCK]++;
		break;
	case 1:
		write_lock_irqsave(&rwlock, flags);
		pair_add(&under_rwlock, &worker->disorders, random_below(&worker->random, 4) == 0);
		write_unlock_irqrestore(&rwlock, flags);
		worker->done[DONE_RWLOCK]++;
		break;
	case 2:
		if (write_trylock(&rwlock)) {
			pair_add(&under_rwlock, &worker->disorders, false);
			write_unlock(&rwlock);
			worker->done[DONE_RWLOCK]++;
		}
		break;
	default:
		if (choice == 3)
			read_lock_bh(&rwlock);
		else
			read_lock(&rwlock);
		if (READ_ONCE(under_rwlock.one) != READ_ONCE(under_rwlock.two))
			count_outside(&worker->disorders);
		/* A reader that acts holds the lock, while other readers may be transactions. */
		if (choice == 4)
			act();
		if (READ_ONCE(under_rwlock.one) != READ_ONCE(under_rwlock.two))
			count_outside(&worker->disorders);
		if (choice == 3)
			read_unlock_bh(&rwlock);
		else
			read_unlock(&rwlock);
	}
}

static void use_seqlock(struct worker *worker)
{
	unsigned int begun;
	u64 one, two;

	if (random_below(&worker->random, 4) == 0) {
		write_seqlock(&seqlock);
		pair_add(&under_seqlock, &worker->disorders, random_below(&worker->random, 8) == 0);
		write_sequnlock(&seqlock);
		worker->done[DONE_SEQLOCK]++;
		return;
	}
	do {
		begun = read_seqbegin(&seqlock);
		one = READ_ONCE(under_seqlock.one);
		two = READ_ONCE(under_seqlock.two);
	} while (read_seqretry(&seqlock, begun));
	if (one != two)
		worker->disorders++;
}

static void counters_work(struct worker *worker)
{
	add_to_pair(worker);
	add_to_handlers_pair(worker);
	use_rwlock(worker);
	use_seqlock(worker);
}

static bool counters_are_right(void)
{
	unsigned int index;
	bool is_right = true;

	for (index = 0; index < PAIRS; index++)
		is_right &= pair_is_right(&pairs[index], "spinlock", done_by_all(DONE_PAIRS + index));
	is_right &= pair_is_right(&hard_pair, "spinlock with interrupts off",
				  done_by_all(DONE_HARD) + hard_interrupts_by_all());
	is_right &= pair_is_right(&soft_pair, "spinlock with soft interrupts off",
				  done_by_all(DONE_SOFT) + soft_interrupts_by_all());
	is_right &= pair_is_right(&under_rwlock, "rwlock", done_by_all(DONE_RWLOCK));
	is_right &= pair_is_right(&under_seqlock, "seqlock", done_by_all(DONE_SEQLOCK));
	return is_right;
}

const struct test counters_test = {
	.name = "counters",
	.has_interrupts = true,
	.workers_min = 1,
	.prepare = counters_prepare,
	.work = counters_work,
	.is_right = counters_are_right,
};

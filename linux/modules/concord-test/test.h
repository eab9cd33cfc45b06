/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of this module: workers (one per processor), sections, and counts of failures. */
#ifndef CONCORD_TEST_H
#define CONCORD_TEST_H

#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/cx.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <asm/sbi.h>
#include <asm/xmetatm.h>

#define WORKERS_MAX 64

/*
 * A worker is a thread that is bound to a processor. Only that thread writes this structure, except for
 * the members that its processor's handlers write.
 */
struct worker {
	unsigned int number;
	u64 random;
	/* Counts of finished work; each test defines the indices. Written outside sections. */
	u64 done[64];
	/* Written by the processor's handlers. */
	u64 hard_interrupts;
	u64 soft_interrupts;
	u64 interrupt_random;
	/* Violations seen. A count made in a transaction survives the transaction's restart. */
	u64 disorders;
} ____cacheline_aligned;

struct test {
	const char *name;
	/* Timers interrupt the workers. */
	bool has_interrupts;
	/* The smallest number of workers that the test needs. */
	unsigned int workers_min;
	void (*prepare)(void);
	/* Does one of `iterations` pieces of work. */
	void (*work)(struct worker *worker);
	/* Checks the final state after all workers have finished. May print the violations. */
	bool (*is_right)(void);
};

extern const struct test counters_test, lists_test, balances_test, wakeups_test, stack_test;

extern struct worker workers[WORKERS_MAX];
extern unsigned int workers_count;
extern unsigned int iterations;
/* variant=broken-end: sections commit before their bodies, as if cx_end() were broken. */
extern bool end_is_broken;

/* The sum of one count over all workers. */
u64 done_by_all(unsigned int index);

/* Steele, Lea and Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
static inline u64 random_next(u64 *state)
{
	u64 z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline u32 random_below(u64 *state, u32 bound)
{
	return ((random_next(state) >> 32) * bound) >> 32;
}

/*
 * Reads or counts outside the sets of the current transaction; a restart does not undo such a count.
 * One piece of assembler, because nothing may be stored on the stack between xpush and xpop. Interrupts
 * are off, because a handler would find no active transaction and use the stack below the stack
 * pointer, to which the suspended transaction may return. A restart enables interrupts again.
 */
#define OUTSIDE(instructions)				\
	"	csrrci %1, sstatus, 2\n"		\
	"	.insn i 0x0b, 4, x0, x0, 0\n"		\
	instructions					\
	"	.insn i 0x0b, 5, x0, x0, 0\n"		\
	"	andi %1, %1, 2\n"			\
	"	csrs sstatus, %1"

static __always_inline void count_outside(u64 *word)
{
	unsigned long scratch, flags;

	if (cx_in_transaction())
		asm volatile(OUTSIDE("ld %0, %2\n	addi %0, %0, 1\n	sd %0, %2\n")
			     : "=&r" (scratch), "=&r" (flags), "+m" (*word));
	else
		(*word)++;
}

static __always_inline u64 load_outside(u64 *word)
{
	unsigned long value, flags;

	if (!cx_in_transaction())
		return READ_ONCE(*word);
	asm volatile(OUTSIDE("ld %0, %2\n") : "=&r" (value), "=&r" (flags) : "m" (*word) : "memory");
	return value;
}

/* An irrevocable action without effect: asks the firmware for a fence on no hart. */
static inline void act(void)
{
	sbi_ecall(SBI_EXT_RFENCE, SBI_EXT_RFENCE_REMOTE_FENCE_I, 0, 0, 0, 0, 0, 0);
}

/* The ways to begin a section. */
enum form { PLAIN, TRY, EXCLUSIVE, SLEEPLESS_FORMS, IRQSAVE = SLEEPLESS_FORMS, BH, FORMS };

/* A section that has begun. */
struct section {
	spinlock_t *lock;
	enum form form;
	unsigned long flags;
	/* variant=broken-end has committed the section's transaction already. */
	bool has_ended;
};

/* Returns false if a trylock did not get the lock. */
static __always_inline bool section_begin(struct section *section, spinlock_t *lock, enum form form)
{
	section->lock = lock;
	section->form = form;
	switch (form) {
	case TRY:
		if (!spin_trylock(lock))
			return false;
		break;
	case EXCLUSIVE:
		cx_exclusive(lock);
		break;
	case IRQSAVE:
		spin_lock_irqsave(lock, section->flags);
		break;
	case BH:
		spin_lock_bh(lock);
		break;
	default:
		spin_lock(lock);
	}
	section->has_ended = unlikely(end_is_broken) && cx_in_transaction();
	if (section->has_ended)
		xend();
	return true;
}

static __always_inline void section_end(struct section *section)
{
	switch (section->form) {
	case IRQSAVE:
		if (section->has_ended)
			local_irq_restore(section->flags);
		else
			spin_unlock_irqrestore(section->lock, section->flags);
		break;
	case BH:
		if (section->has_ended)
			local_bh_enable();
		else
			spin_unlock_bh(section->lock);
		break;
	case EXCLUSIVE:
		cx_end(section->lock);
		break;
	default:
		if (!section->has_ended)
			spin_unlock(section->lock);
	}
}

/* Two words that a section changes one after the other. No observer may see them differ. */
struct pair {
	spinlock_t lock;
	u64 one;
	u64 two;
} ____cacheline_aligned;

void pair_init(struct pair *pair);

/* Prolongs a section by instructions without memory accesses, so that other workers arrive in it. */
static __always_inline void linger(void)
{
	unsigned int turns;

	for (turns = 0; turns < 100; turns++)
		barrier();
}

/* Adds one to both words. Runs in a section of the pair's lock. */
static __always_inline void pair_add(struct pair *pair, u64 *disorders, bool acts)
{
	u64 one = READ_ONCE(pair->one);

	if (unlikely(one != READ_ONCE(pair->two)))
		count_outside(disorders);
	linger();
	WRITE_ONCE(pair->one, one + 1);
	if (acts)
		act();
	WRITE_ONCE(pair->two, READ_ONCE(pair->two) + 1);
}

bool pair_is_right(const struct pair *pair, const char *name, u64 expected);

/* Pairs that handlers change as well: hard_pair needs interrupts off, soft_pair soft interrupts off. */
extern struct pair hard_pair, soft_pair;
bool interrupts_prepare(void);
void interrupts_start(struct worker *worker);
void interrupts_stop(struct worker *worker);
/* The number of times that handlers added to each pair. */
u64 hard_interrupts_by_all(void);
u64 soft_interrupts_by_all(void);

/* Overwrites a good part of the stack below the caller's frame. */
void dirty_stack(unsigned int depth);

#endif

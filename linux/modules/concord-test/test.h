/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of this module share: workers, one a processor, sections, and how a failure is noted. */
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

/* A worker is a thread that is bound to a processor. Only it writes here, and its processor's handlers where a comment says so. */
struct worker {
	unsigned int number;
	u64 random;
	/* What it did, by an index of the test's own. Written outside sections. */
	u64 done[64];
	/* Of the processor's handlers. */
	u64 hard_interrupts;
	u64 soft_interrupts;
	u64 interrupt_random;
	/* Counted in transactions as well, where they stay. */
	u64 disorders;
} ____cacheline_aligned;

struct test {
	const char *name;
	/* Where a processor's timers interrupt its worker. */
	bool has_interrupts;
	/* How many workers have to be there. */
	unsigned int workers_min;
	void (*prepare)(void);
	/* One of `iterations` pieces of work. */
	void (*work)(struct worker *worker);
	/* After all have done theirs: whether everything is as it must be. May say what is not. */
	bool (*is_right)(void);
};

extern const struct test counters_test, lists_test, balances_test, wakeups_test, stack_test;

extern struct worker workers[WORKERS_MAX];
extern unsigned int workers_count;
extern unsigned int iterations;
/* variant=broken-end: a section that commits before its body, as a broken cx_end would make it. */
extern bool end_is_broken;

/* The sum over all workers of what they did at an index. */
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
 * Reads, or counts for good, in a transaction as well: outside of its sets. In one piece of assembler, because nothing may be put on the stack
 * between xpush and xpop; and without interrupts, whose handlers would find no transaction and use the stack below, which the
 * suspended one may go back to. A restart brings the interrupts back.
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

/* Something that cannot be taken back and does nothing: asks the firmware for a fence on no hart. */
static inline void act(void)
{
	sbi_ecall(SBI_EXT_RFENCE, SBI_EXT_RFENCE_REMOTE_FENCE_I, 0, 0, 0, 0, 0, 0);
}

/* How a section is entered. */
enum form { PLAIN, TRY, EXCLUSIVE, SLEEPLESS_FORMS, IRQSAVE = SLEEPLESS_FORMS, BH, FORMS };

/* A section that has been entered. */
struct section {
	spinlock_t *lock;
	enum form form;
	unsigned long flags;
	/* Torn: its transaction has been committed. */
	bool has_ended;
};

/* False when a trylock did not get the lock. */
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

/* Two words that a section changes one after the other, and that nobody ever sees differ. */
struct pair {
	spinlock_t lock;
	u64 one;
	u64 two;
} ____cacheline_aligned;

void pair_init(struct pair *pair);

/* Stays in a section for some more instructions, which touch nothing: others come meanwhile. */
static __always_inline void linger(void)
{
	unsigned int turns;

	for (turns = 0; turns < 100; turns++)
		barrier();
}

/* In a section of the pair's lock. */
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

/* Pairs that handlers change as well: under which interrupts have to be off, and soft interrupts. */
extern struct pair hard_pair, soft_pair;
bool interrupts_prepare(void);
void interrupts_start(struct worker *worker);
void interrupts_stop(struct worker *worker);
/* How often the processors' handlers added to the pairs. */
u64 hard_interrupts_by_all(void);
u64 soft_interrupts_by_all(void);

/* Fills a good part of the stack. */
void dirty_stack(unsigned int depth);

#endif

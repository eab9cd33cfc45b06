// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts, each with its own lock. A transfer moves money between two accounts under nested locks. An
 * audit adds up all accounts, either under all their locks or as the writer of a lock that transfers
 * take as readers. Chosen at random: the depth of nesting, the form of each section, the place of an
 * irrevocable action, and the order of release.
 */
#include "test.h"

#define ACCOUNTS 8
#define OPENING_BALANCE 1000
enum { DONE_TRANSFERS, DONE_AUDITS };

static struct {
	spinlock_t lock;
	u64 balance;
} ____cacheline_aligned accounts[ACCOUNTS];

static DEFINE_RWLOCK(gate);

static void balances_prepare(void)
{
	unsigned int index;

	for (index = 0; index < ACCOUNTS; index++) {
		spin_lock_init(&accounts[index].lock);
		accounts[index].balance = OPENING_BALANCE;
	}
}

/* Locks the accounts from `first` up to, not including, `end` in order. Locks where a trylock fails. */
static void lock_accounts(struct section *sections, u32 first, u32 end, u64 *random)
{
	for (; first < end; first++) {
		spinlock_t *lock = &accounts[first].lock;
		u32 form = random_below(random, 16);

		if (form >= SLEEPLESS_FORMS || !section_begin(&sections[first], lock, form))
			section_begin(&sections[first], lock, PLAIN);
	}
}

static void unlock_accounts(struct section *sections, u32 first, u32 end, bool in_order)
{
	u32 index;

	for (index = first; index < end; index++)
		section_end(&sections[in_order ? index : end - 1 - (index - first)]);
}

static void transfer(struct worker *worker)
{
	u32 one = random_below(&worker->random, ACCOUNTS);
	u32 other = random_below(&worker->random, ACCOUNTS);
	u32 amount = random_below(&worker->random, OPENING_BALANCE);
	u32 choice = random_below(&worker->random, 16);
	struct section sections[ACCOUNTS];
	unsigned long flags;
	bool acts = choice == 0;

	read_lock(&gate);
	/* No handler takes these locks, so interrupts may be on or off. */
	if (choice & 1)
		local_irq_save(flags);
	lock_accounts(sections, min(one, other), max(one, other) + 1, &worker->random);
	if (accounts[one].balance >= amount) {
		accounts[one].balance -= amount;
		linger();
		if (acts)
			act();
		accounts[other].balance += amount;
	}
	unlock_accounts(sections, min(one, other), max(one, other) + 1, choice & 2);
	if (choice & 1)
		local_irq_restore(flags);
	read_unlock(&gate);
	worker->done[DONE_TRANSFERS]++;
}

static void audit(struct worker *worker)
{
	u32 choice = random_below(&worker->random, 8);
	struct section sections[ACCOUNTS];
	u64 sum = 0;
	u32 index;

	if (choice < 4)
		write_lock(&gate);
	else
		lock_accounts(sections, 0, ACCOUNTS, &worker->random);
	if (choice == 0)
		act();
	for (index = 0; index < ACCOUNTS; index++)
		sum += READ_ONCE(accounts[index].balance);
	if (sum != ACCOUNTS * OPENING_BALANCE)
		count_outside(&worker->disorders);
	if (choice < 4)
		write_unlock(&gate);
	else
		unlock_accounts(sections, 0, ACCOUNTS, choice & 1);
	worker->done[DONE_AUDITS]++;
}

static void balances_work(struct worker *worker)
{
	if (random_below(&worker->random, 8))
		transfer(worker);
	else
		audit(worker);
}

static bool balances_are_right(void)
{
	u64 sum = 0;
	u32 index;

	for (index = 0; index < ACCOUNTS; index++)
		sum += accounts[index].balance;
	if (sum != ACCOUNTS * OPENING_BALANCE)
		pr_err("the accounts hold %llu instead of %u\n", sum, ACCOUNTS * OPENING_BALANCE);
	return sum == ACCOUNTS * OPENING_BALANCE &&
	       done_by_all(DONE_TRANSFERS) + done_by_all(DONE_AUDITS) == (u64)iterations * workers_count;
}

const struct test balances_test = {
	.name = "balances",
	.has_interrupts = true,
	.workers_min = 1,
	.prepare = balances_prepare,
	.work = balances_work,
	.is_right = balances_are_right,
};

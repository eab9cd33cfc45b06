// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bare model of the accounts that decide between transactions and locks: drives cx_account.h, the
 * kernel's own file, with random costs of executions as the kernel does, and checks what it promises.
 *
 *   account SEED COUNT    prints the worst cases of COUNT random programs; exit code 1 if a promise is broken
 *
 * One execution is charged as in cx_site.c: in a window each is; outside, a transaction that lost cycles is
 * charged, and one long wait in SAMPLE for all of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../overlay/kernel/locking/cx_account.h"

#define SAMPLE 32
#define LONG_CYCLES 128

static unsigned long long state;

static unsigned int draw(unsigned int below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(state >> 33) % below;
}

/* How a program's executions lose cycles in one mode: this share of 1024 loses from 1 to twice the mean. */
struct costs {
	unsigned int share, mean_cycles;
};

static struct costs draw_costs(void)
{
	static const unsigned int shares[] = { 0, 1, 5, 30, 200, 600, 1024 };
	struct costs costs = { shares[draw(7)], 20u << draw(9) };

	return costs;
}

static unsigned int cost(const struct costs *costs)
{
	return draw(1024) < costs->share ? 1 + draw(2 * costs->mean_cycles) : 0;
}

/* Runs an execution whose costs in either mode are these, and returns what it lost. */
static unsigned int execute(struct cx_account *account, const unsigned int *cycles)
{
	enum cx_mode mode = account->mode;
	unsigned int lost = cycles[mode];

	if (account->window || (mode == CX_ELIDE && lost))
		cx_account_charge(account, mode, lost, 1, 0);
	else if (mode == CX_LOCK && lost > LONG_CYCLES && draw(SAMPLE) == 0)
		cx_account_charge(account, mode, (unsigned long)lost * SAMPLE, 1, 0);
	return lost;
}

/* The cycles lost, beside those that each mode alone would have lost. */
struct sums {
	double adaptive, alone[CX_MODES];
};

static void run(struct cx_account *account, const struct costs *costs, unsigned int executions, struct sums *sums)
{
	while (executions--) {
		unsigned int cycles[CX_MODES] = { cost(&costs[CX_ELIDE]), cost(&costs[CX_LOCK]) };

		sums->adaptive += execute(account, cycles);
		sums->alone[CX_ELIDE] += cycles[CX_ELIDE];
		sums->alone[CX_LOCK] += cycles[CX_LOCK];
	}
}

static double least(const struct sums *sums)
{
	return sums->alone[CX_ELIDE] < sums->alone[CX_LOCK] ? sums->alone[CX_ELIDE] : sums->alone[CX_LOCK];
}

/* A section and what runs between two of them take this many cycles at least. */
#define PERIOD_CYCLES 1000.0

/*
 * Regret: at most 1.25 times the lesser loss, plus 0.2% of the time, plus what learning takes once: the
 * windows in which a mode is measured for the first times, and the executions that pass before them.
 */
static int keeps_bound(unsigned int executions)
{
	struct costs costs[CX_MODES] = { draw_costs(), draw_costs() };
	unsigned int warm_up_executions = draw(2) * 16;
	struct cx_account account;
	struct sums sums = { 0 };
	double bound;

	cx_account_begin(&account, CX_ELIDE, warm_up_executions);
	run(&account, costs, executions, &sums);
	bound = 1.25 * least(&sums) + 0.002 * executions * PERIOD_CYCLES + CX_MARGIN_CYCLES * (double)executions +
		8.0 * CX_WINDOW_CYCLES_MAX +
		4.0 * warm_up_executions * (costs[CX_ELIDE].mean_cycles + costs[CX_LOCK].mean_cycles);
	if (sums.adaptive <= bound)
		return 1;
	printf("regret: %.0f lost, %.0f eliding, %.0f locking (shares %u %u, means %u %u)\n", sums.adaptive,
	       sums.alone[CX_ELIDE], sums.alone[CX_LOCK], costs[CX_ELIDE].share, costs[CX_LOCK].share,
	       costs[CX_ELIDE].mean_cycles, costs[CX_LOCK].mean_cycles);
	return 0;
}

/* A site that has been friendly for long and turns hostile is a lock after few executions. */
static int gives_up_in_time(void)
{
	struct costs friendly[CX_MODES] = { { 10, 500 }, { 0, 0 } }, hostile[CX_MODES] = { { 1024, 4000 }, { 0, 0 } };
	struct cx_account account;
	struct sums sums = { 0 };
	unsigned int executions = 0;

	friendly[CX_LOCK] = (struct costs){ 1024, 1000 };
	cx_account_begin(&account, CX_ELIDE, draw(2) * 16);
	run(&account, friendly, 100000, &sums);
	if (account.mode != CX_ELIDE) {
		printf("a friendly site is a lock\n");
		return 0;
	}
	while (account.mode == CX_ELIDE && executions < 10000) {
		run(&account, hostile, 1, &sums);
		executions++;
	}
	if (executions <= 80)
		return 1;
	printf("a hostile site elides for %u executions\n", executions);
	return 0;
}

/* A site that is a lock with reason and turns friendly elides again, if others wait for its lock. */
static int comes_back(void)
{
	struct costs hostile[CX_MODES] = { { 1024, 4000 }, { 200, 300 } }, friendly[CX_MODES] = { { 1, 500 }, { 1024, 2000 } };
	struct cx_account account;
	struct sums sums = { 0 };

	cx_account_begin(&account, CX_ELIDE, draw(2) * 16);
	run(&account, hostile, 100000, &sums);
	if (account.mode != CX_LOCK) {
		printf("a hostile site elides\n");
		return 0;
	}
	run(&account, friendly, 10000, &sums);
	if (account.mode == CX_ELIDE)
		return 1;
	printf("a friendly site stays a lock\n");
	return 0;
}

/* Sections that lose to stores of programs are locks, although they lose less as transactions. */
static int leaves_programs_alone(void)
{
	struct cx_account account;
	unsigned int executions, locks = 0;

	cx_account_begin(&account, CX_ELIDE, draw(2) * 16);
	for (executions = 0; executions < 10000; executions++) {
		enum cx_mode mode = account.mode;
		unsigned int lost = mode == CX_ELIDE ? 500 : 5000;

		locks += mode == CX_LOCK;
		if (account.window || mode == CX_ELIDE)
			cx_account_charge(&account, mode, lost, 1, mode == CX_ELIDE && draw(4) != 0);
		else if (draw(SAMPLE) == 0)
			cx_account_charge(&account, mode, (unsigned long)lost * SAMPLE, 1, 0);
	}
	if (locks >= executions / 10 * 9)
		return 1;
	printf("a site that programs disturb elides %u times\n", executions - locks);
	return 0;
}

int main(int count, char **words)
{
	unsigned int index, programs, broken = 0;

	if (count != 3) {
		fprintf(stderr, "usage: account SEED COUNT\n");
		return 2;
	}
	state = strtoull(words[1], NULL, 10);
	programs = (unsigned int)strtoul(words[2], NULL, 10);
	for (index = 0; index < programs; index++)
		broken += !keeps_bound(1000u << draw(10)) + !gives_up_in_time() + !comes_back() +
			  !leaves_programs_alone();
	printf("%u programs, %u broken promises\n", programs, broken);
	return broken != 0;
}

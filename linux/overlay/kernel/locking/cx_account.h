/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account that decides whether a section runs as a transaction or takes its lock: rent or buy, by
 * measured cycles. Plain arithmetic without a kernel's help, so that a program can test it.
 *
 * Both ways of running a section cost cycles beyond the section itself: a transaction loses what a
 * restart throws away, its back-off, and its wait for a lock that is taken; a lock costs the wait for
 * it. An account learns the mean of either from windows, in which every execution counts. Between two
 * windows only executions that lost cycles report, so that an execution without trouble costs nothing.
 *
 * - While the mode in force has lost less than the account's patience, nothing happens.
 * - Then a window measures that mode. If the other mode promises to be cheaper, it comes into force, and
 *   a window measures it too. A mode never tried promises to cost nothing.
 * - Otherwise the patience doubles, up to a bound. After one such window, then four, sixteen and so
 *   on, up to CX_QUIET_MAX, the other mode is tried in a window although its old mean does not promise
 *   anything, because circumstances change. A mode that loses more than twice what it ever did makes
 *   that number one again.
 *
 * This is ski rental (Karlin, Manasse, McGeoch, Owicki: "Competitive Randomized Algorithms for Nonuniform
 * Problems", Algorithmica 1994): a trial of the other mode costs a bounded number of cycles, and the time between two
 * failed trials grows by a factor.
 */
#ifndef _KERNEL_LOCKING_CX_ACCOUNT_H
#define _KERNEL_LOCKING_CX_ACCOUNT_H

/* How a section runs. CX_ELIDE is 0, so that a site in zeroed memory begins there. */
enum cx_mode { CX_ELIDE, CX_LOCK, CX_MODES };

enum cx_window { CX_NO_WINDOW, CX_WINDOW_OF_MODE, CX_TRIAL };

/* Executions in a window. */
#define CX_WINDOW 32
/* A window ends early when its executions have lost this many cycles. */
#define CX_WINDOW_CYCLES_MAX 32768
/* Windows that confirm a mode before the other is tried again, at most. */
#define CX_QUIET_MAX 1024
/* Cycles that the mode in force may lose before a window measures it. */
#define CX_PATIENCE_MIN 4096
#define CX_PATIENCE_MAX (1 << 17)
/* A mode that always loses is not measured all the time: patience grows from what so many executions lose to what so many do. */
#define CX_PATIENCE_EXECUTIONS_MIN 128
#define CX_PATIENCE_EXECUTIONS_MAX 1024
#define CX_PATIENCE_LIMIT (1 << 30)
/*
 * A section that loses to stores of user programs looks at a word by which they decide whether a thread sleeps
 * (a futex). Its lock keeps threads apart while they wait for it, and without that wait more of them sleep
 * and are woken, which costs more cycles than any section sees. So many such executions in a window
 * are enough for the lock.
 */
#define CX_DISTURBED_MIN (CX_WINDOW / 8)
/* More than this an execution cannot lose, as far as an account is concerned. */
#define CX_CYCLES_MAX (1 << 22)
/* A mode has to be cheaper by more than this many cycles, and by an eighth, to replace the other. */
#define CX_MARGIN_CYCLES 16
/* A mode that loses twice what it ever did, and this many cycles more, is a reason to try the other soon. */
#define CX_SURPRISE_CYCLES 64

/* The bytes of a cache line, or of more than one. */
#define CX_ACCOUNT_LINE_BYTES 64

struct cx_account {
	/* What charges write has a line of its own, because every section that asks reads the rest. */
	union {
		unsigned char line[CX_ACCOUNT_LINE_BYTES];
		struct {
			/* Cycles lost since the beginning, by mode. */
			unsigned long total_cycles[CX_MODES];
			/* Cycles that an execution loses in the mean, by mode. */
			unsigned int mean_cycles[CX_MODES];
			/* Cycles lost in this window or, outside a window, since the last one. */
			unsigned int lost_cycles;
			unsigned int patience_cycles;
			/* The greatest mean of the mode in force, since it came into force. */
			unsigned int worst_cycles;
			/* Executions of this window, and those that are yet to pass before it begins to count. */
			unsigned char executions;
			unsigned char warm_up;
			/* Executions of this window that lost to stores of user programs. */
			unsigned char disturbed;
			/* Executions after a change of mode that still feel the mode before: 0 where nobody queues. */
			unsigned char warm_up_executions;
			/* Windows that have confirmed the mode since the last trial, and how many it takes for the next. */
			unsigned short quiet_windows;
			unsigned short quiet_windows_min;
			/* Set while a processor changes the account. */
			unsigned char is_busy;
		};
	};
	unsigned char mode;
	/* What is measured, an enum cx_window: the mode in force, or one that is tried without promise. */
	unsigned char window;
};

/* `warm_up_executions`: the queue of a lock, which empties only after a change of mode, may be as long as this. */
static inline void cx_account_begin(struct cx_account *account, enum cx_mode mode, unsigned int warm_up_executions)
{
	account->warm_up_executions = warm_up_executions;
	account->warm_up = 0;
	account->mode = mode;
	account->window = CX_NO_WINDOW;
	account->quiet_windows = 0;
	account->quiet_windows_min = 1;
	account->executions = 0;
	account->disturbed = 0;
	account->lost_cycles = 0;
	account->patience_cycles = CX_PATIENCE_MIN;
	account->worst_cycles = 0;
	account->mean_cycles[CX_ELIDE] = 0;
	account->mean_cycles[CX_LOCK] = 0;
}

static inline void cx_account_open_window(struct cx_account *account, enum cx_window window)
{
	account->window = window;
	account->executions = 0;
	account->disturbed = 0;
	account->lost_cycles = 0;
}

/* The cycles at which a trial is seen to fail: half as much again as so many executions lose in the mode in force. */
static inline unsigned long cx_account_trial_cycles_max(const struct cx_account *account, unsigned int executions)
{
	return executions * 3 / 2 * (unsigned long)(account->mean_cycles[!account->mode] + CX_MARGIN_CYCLES);
}

/* The cycles that are enough to see that a mode is no better than the other. */
static inline unsigned long cx_account_window_cycles_max(const struct cx_account *account)
{
	if (account->window == CX_TRIAL)
		return cx_account_trial_cycles_max(account, CX_WINDOW);
	return CX_WINDOW_CYCLES_MAX * (1 + account->warm_up_executions);
}

static inline unsigned int cx_account_next_patience(unsigned int patience_cycles, unsigned int mean_cycles)
{
	unsigned int max = CX_PATIENCE_MAX, next = 2 * patience_cycles;

	if (mean_cycles > CX_PATIENCE_LIMIT / CX_PATIENCE_EXECUTIONS_MAX)
		mean_cycles = CX_PATIENCE_LIMIT / CX_PATIENCE_EXECUTIONS_MAX;
	if (next < mean_cycles * CX_PATIENCE_EXECUTIONS_MIN)
		next = mean_cycles * CX_PATIENCE_EXECUTIONS_MIN;
	if (max < mean_cycles * CX_PATIENCE_EXECUTIONS_MAX)
		max = mean_cycles * CX_PATIENCE_EXECUTIONS_MAX;
	return next < max ? next : max;
}

static inline void cx_account_close_window(struct cx_account *account)
{
	unsigned int other = !account->mode, executions = account->executions ? account->executions : 1;
	unsigned int mean = account->lost_cycles / executions, is_better, is_trial = account->window == CX_TRIAL;

	if (account->disturbed >= CX_DISTURBED_MIN)
		mean = CX_CYCLES_MAX;
	account->mean_cycles[account->mode] = mean;
	is_better = mean > account->mean_cycles[other] + account->mean_cycles[other] / 8 + CX_MARGIN_CYCLES;
	if (is_trial) {
		account->quiet_windows = 0;
		if (!is_better)
			account->quiet_windows_min = 1;
		else if (account->quiet_windows_min < CX_QUIET_MAX)
			account->quiet_windows_min *= 4;
	} else if (mean > 2 * account->worst_cycles + CX_SURPRISE_CYCLES) {
		account->quiet_windows_min = 1;
	}
	/* A failed trial says nothing about the mode in force; any other change of mode begins anew. */
	if (is_better && !is_trial)
		account->worst_cycles = 0;
	else if (!is_better && (is_trial || mean > account->worst_cycles))
		account->worst_cycles = mean;
	is_trial = !is_better && mean > CX_MARGIN_CYCLES && ++account->quiet_windows >= account->quiet_windows_min;
	if (is_better || is_trial) {
		account->mode = other;
		cx_account_open_window(account, is_trial ? CX_TRIAL : CX_WINDOW_OF_MODE);
		account->warm_up = account->warm_up_executions;
		return;
	}
	account->window = CX_NO_WINDOW;
	account->lost_cycles = 0;
	account->patience_cycles = cx_account_next_patience(account->patience_cycles, mean);
}

/*
 * Executions before a trial counts do not say what the mode costs, but what they lose is lost. Ends a trial
 * that is seen to fail.
 */
static inline int cx_account_warm_up_trial(struct cx_account *account, unsigned long cycles)
{
	account->lost_cycles += cycles < CX_CYCLES_MAX ? cycles : CX_CYCLES_MAX;
	if (account->lost_cycles > cx_account_trial_cycles_max(account, account->warm_up_executions)) {
		account->warm_up = 0;
		cx_account_close_window(account);
		return 1;
	}
	if (!account->warm_up)
		account->lost_cycles = 0;
	return 0;
}

/*
 * A section has lost these cycles in this mode. It reports once at its end, and may report before that. In
 * a window every section reports, also one that has lost nothing. `is_disturbed`: it lost to a store of a
 * user program. Returns true if the account now wants something else.
 */
static inline int cx_account_charge(struct cx_account *account, enum cx_mode mode, unsigned long cycles, int is_end,
				    int is_disturbed)
{
	account->total_cycles[mode] += cycles;
	/* It began before the present mode came into force. */
	if (mode != account->mode)
		return 0;
	if (account->warm_up) {
		account->warm_up -= is_end;
		if (account->window == CX_TRIAL)
			return cx_account_warm_up_trial(account, cycles);
		return 0;
	}
	account->lost_cycles += cycles < CX_CYCLES_MAX ? cycles : CX_CYCLES_MAX;
	if (!account->window) {
		if (account->lost_cycles < account->patience_cycles)
			return 0;
		cx_account_open_window(account, CX_WINDOW_OF_MODE);
		return 1;
	}
	account->executions += is_end;
	account->disturbed += is_disturbed;
	if (account->executions < CX_WINDOW && account->lost_cycles < cx_account_window_cycles_max(account))
		return 0;
	cx_account_close_window(account);
	return 1;
}

#endif

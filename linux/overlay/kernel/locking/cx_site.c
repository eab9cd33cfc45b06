// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accounts by which sections become transactions or locks (cx_account.h), and the choice of the
 * account.
 *
 * Conflicts over data are a property of code, so a site, that is, one expansion of spin_lock() and its
 * kin, has an account for all locks that it takes. Waiting is a property of a lock: where processors
 * fight for one, its sections have to agree on a mode, because sites of one lock in different modes are
 * the worst of all (whoever takes the lock makes every transaction of it lose, and does not feel it). So
 * a lock that is fought for gets an account of its own, which decides for all of its sites.
 *
 * All of this runs on slow paths, and but for cx_is_fought_for() outside transactions. A change that
 * another processor is making at the same time is not waited for: the charge is dropped, or kept for the
 * section's end.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <asm/sections.h>

#include "cx.h"

/* More than twice the sites of the kernel. */
#define CX_SITES_SHIFT 13
#define CX_LOCKS_SHIFT 9

/* Fights after which a lock's own account decides, if no other lock with the same hash is fought for. */
#define CX_FIGHTS_MIN 4

struct cx_site_account {
	struct cx_account account;
	unsigned char *site;
	unsigned long caller;
} ____cacheline_aligned;

struct cx_lock_account {
	struct cx_account account;
	const volatile void *lock;
	unsigned int fights;
} ____cacheline_aligned;

static struct cx_site_account *sites __read_mostly;
static struct cx_lock_account *locks __read_mostly;

DEFINE_STATIC_KEY_FALSE(cx_key_adaptive);
DEFINE_PER_CPU(struct cx_attempt, cx_attempt);

/* The end of a section that is yet to be charged, if `lock` is set. */
struct cx_charge {
	const volatile void *lock;
	unsigned char *site;
	unsigned long caller;
	unsigned long cycles;
	enum cx_mode mode;
	/* It counts for many, and not in a window, where each is counted. */
	bool is_sample;
};
static DEFINE_PER_CPU(struct cx_charge, charge_later);

void __init cx_site_init(void)
{
	sites = kcalloc(1 << CX_SITES_SHIFT, sizeof(*sites), GFP_KERNEL | __GFP_NOFAIL);
	locks = kcalloc(1 << CX_LOCKS_SHIFT, sizeof(*locks), GFP_KERNEL | __GFP_NOFAIL);
	static_branch_enable(&cx_key_adaptive);
}

/* The account of a site, which is made when there is none; NULL if the table is full. */
static struct cx_site_account *find_site(unsigned char *site, unsigned long caller)
{
	unsigned long index = hash_ptr(site, CX_SITES_SHIFT), probe;

	for (probe = 0; probe < 16; probe++) {
		struct cx_site_account *found = &sites[(index + probe) & ((1 << CX_SITES_SHIFT) - 1)];
		unsigned char *present = READ_ONCE(found->site);

		if (present == site)
			return found;
		if (!present && !(present = cmpxchg(&found->site, NULL, site))) {
			found->caller = caller;
			cx_account_begin(&found->account, CX_ELIDE, 0);
			return found;
		}
		if (present == site)
			return found;
	}
	return NULL;
}

static struct cx_lock_account *lock_slot(const volatile void *lock)
{
	return &locks[hash_ptr((const void *)lock, CX_LOCKS_SHIFT)];
}

static bool governs(const struct cx_lock_account *slot, const volatile void *lock)
{
	return READ_ONCE(slot->lock) == lock && READ_ONCE(slot->fights) >= CX_FIGHTS_MIN;
}

/* Whether a lock's own account decides. Runs also inside a transaction: what it reads is hardly ever written. */
bool cx_is_fought_for(const volatile void *lock)
{
	return static_branch_unlikely(&cx_key_adaptive) && governs(lock_slot(lock), lock);
}

static struct cx_account *find(const volatile void *lock, unsigned char *site, unsigned long caller)
{
	struct cx_lock_account *slot = lock_slot(lock);
	struct cx_site_account *found;

	if (governs(slot, lock))
		return &slot->account;
	found = find_site(site, caller);
	return found ? &found->account : NULL;
}

static bool try_begin(struct cx_account *account)
{
	return !READ_ONCE(account->is_busy) && !xchg(&account->is_busy, 1);
}

static void end(struct cx_account *account)
{
	smp_store_release(&account->is_busy, 0);
}

static void set_site(unsigned char *site, unsigned char what)
{
	if (READ_ONCE(*site) != what)
		WRITE_ONCE(*site, what);
}

/* After a charge: what the site should do from now on. */
static void update_site(const struct cx_account *account, const volatile void *lock, unsigned char *site, bool is_changed)
{
	if (account == &lock_slot(lock)->account) {
		if (account->window || READ_ONCE(*site) != account->mode)
			set_site(site, CX_SITE_ASK);
	} else if (account->window) {
		set_site(site, CX_SITE_ASK);
	} else if (is_changed) {
		set_site(site, account->mode);
	}
}

/*
 * A site of locks that are fought for asks each time. It need not where the lock's account and its own
 * agree; whether they do is looked at once in a while.
 */
static void quiet_site(const struct cx_account *account, const volatile void *lock, unsigned char *site, unsigned long caller)
{
	const struct cx_site_account *own;

	if (csr_read(CSR_CYCLE) % CX_SAMPLE)
		return;
	if (account == &lock_slot(lock)->account) {
		own = find_site(site, caller);
		if (!own || own->account.window || own->account.mode != account->mode)
			return;
	}
	set_site(site, account->mode);
}

/* Whether a physical address is in memory that a user program has mapped. */
static bool is_mapped(unsigned long address)
{
	return address && pfn_valid(PHYS_PFN(address)) && folio_mapped(page_folio(pfn_to_page(PHYS_PFN(address))));
}

/*
 * Charges what a section has lost; cx_account_charge() says when. `conflict` is where it has lost to an
 * access outside transactions, or 0. Returns false if there is no account, or another processor is changing it.
 */
static bool cx_charge(const volatile void *lock, unsigned char *site, unsigned long caller, enum cx_mode mode, unsigned long cycles,
		      bool is_end, unsigned long conflict)
{
	struct cx_account *account = find(lock, site, caller);
	bool is_changed;

	if (!account || !try_begin(account))
		return false;
	is_changed = cx_account_charge(account, mode, cycles, is_end, is_mapped(conflict));
	update_site(account, lock, site, is_changed);
	end(account);
	return true;
}

/*
 * Charges what the section on this processor has lost so far. If its account is busy, the section keeps
 * the cycles for its end: whoever loses most comes when all the others do.
 */
void cx_charge_so_far(const volatile void *lock, unsigned char *site, unsigned long caller)
{
	unsigned long cycles = cx_take_lost_cycles();

	if (!cx_charge(lock, site, caller, CX_ELIDE, cycles, false, 0))
		cx_note_lost(lock, site, caller, cycles);
}

/*
 * For a section that has taken its lock: charges it when this processor comes to a slow path next. The
 * section holds the lock now, and a charge would make all who wait for it wait longer, so that locks
 * would seem to cost more than they do.
 */
void cx_charge_later(const volatile void *lock, unsigned char *site, unsigned long caller, enum cx_mode mode, unsigned long cycles,
		     bool is_sample)
{
	struct cx_charge *later;
	unsigned long flags;

	/* The site of a module may be gone later. */
	if (!is_kernel_core_data((unsigned long)site)) {
		if (!is_sample)
			cx_charge(lock, site, caller, mode, cycles, true, 0);
		return;
	}
	local_irq_save(flags);
	later = this_cpu_ptr(&charge_later);
	if (!later->lock)
		*later = (struct cx_charge){ lock, site, caller, cycles, mode, is_sample };
	local_irq_restore(flags);
}

static bool is_counting(const volatile void *lock, unsigned char *site, unsigned long caller)
{
	const struct cx_account *account = find(lock, site, caller);

	return account && READ_ONCE(account->window);
}

static void charge_what_was_left(void)
{
	struct cx_charge charge;
	unsigned long flags;

	if (likely(!this_cpu_read(charge_later.lock)))
		return;
	local_irq_save(flags);
	charge = *this_cpu_ptr(&charge_later);
	__this_cpu_write(charge_later.lock, NULL);
	local_irq_restore(flags);
	if (charge.lock && (!charge.is_sample || !is_counting(charge.lock, charge.site, charge.caller)))
		cx_charge(charge.lock, charge.site, charge.caller, charge.mode, charge.cycles, true, 0);
}

/* The section on this processor is charged when it ends. Interrupts are off. */
static struct cx_attempt *expect_charge(const volatile void *lock, unsigned char *site, unsigned long caller)
{
	struct cx_attempt *attempt = this_cpu_ptr(&cx_attempt);

	attempt->lock = lock;
	attempt->site = site;
	attempt->caller = caller;
	current_thread_info()->cx_after_commit |= CX_AFTER_ACCOUNT;
	return attempt;
}

/* The mode of a section that begins outside a transaction, and whether it is charged also if it loses nothing. */
enum cx_mode cx_ask(const volatile void *lock, unsigned char *site, unsigned long caller, bool *is_counted)
{
	struct cx_account *account;
	unsigned long flags;

	charge_what_was_left();
	account = find(lock, site, caller);
	*is_counted = account && account->window;
	if (!account)
		return CX_LOCK;
	if (*is_counted && account->mode == CX_ELIDE) {
		local_irq_save(flags);
		expect_charge(lock, site, caller)->conflict = 0;
		local_irq_restore(flags);
	} else if (!*is_counted) {
		quiet_site(account, lock, site, caller);
	}
	return account->mode;
}

/* A section has found its lock taken. */
void cx_note_fight(const volatile void *lock, unsigned char *site, unsigned long caller)
{
	struct cx_lock_account *slot = lock_slot(lock);
	struct cx_site_account *found;

	charge_what_was_left();
	if (governs(slot, lock) || !try_begin(&slot->account))
		return;
	if (slot->lock == lock) {
		slot->fights++;
	} else if (slot->fights) {
		slot->fights--;
	} else {
		found = find_site(site, caller);
		cx_account_begin(&slot->account, found ? found->account.mode : CX_LOCK, num_online_cpus());
		WRITE_ONCE(slot->lock, lock);
		WRITE_ONCE(slot->fights, 1);
	}
	end(&slot->account);
}

/* The section on this processor has lost cycles outside a transaction, and is charged for them when it ends. */
void cx_note_lost(const volatile void *lock, unsigned char *site, unsigned long caller, unsigned long cycles)
{
	unsigned long flags;

	local_irq_save(flags);
	expect_charge(lock, site, caller)->lost_cycles += cycles;
	local_irq_restore(flags);
}

/* What the section on this processor has lost and not been charged for. */
unsigned long cx_take_lost_cycles(void)
{
	unsigned long flags, lost;

	local_irq_save(flags);
	lost = __this_cpu_read(cx_attempt.lost_cycles);
	__this_cpu_write(cx_attempt.lost_cycles, 0);
	current_thread_info()->cx_after_commit &= ~CX_AFTER_ACCOUNT;
	local_irq_restore(flags);
	return lost;
}

/* Lets every thread count its commits. Runs while there is one processor; threads that are made later are copies. */
void __init cx_count_commits(void)
{
	struct task_struct *process, *thread;

	static_branch_enable(&cx_key_statistics);
	task_thread_info(&init_task)->cx_after_commit |= CX_AFTER_COUNT;
	for_each_process_thread(process, thread)
		task_thread_info(thread)->cx_after_commit |= CX_AFTER_COUNT;
}

/* Runs when a section has committed and cx_after_commit was not 0. */
void cx_after_commit(void)
{
	struct cx_attempt attempt;
	unsigned long flags, what;

	if (static_branch_unlikely(&cx_key_statistics))
		this_cpu_inc(cx_statistics.transactional);
	/* Only an inner section of the transaction has ended. */
	if (xgettxid())
		return;
	local_irq_save(flags);
	what = current_thread_info()->cx_after_commit;
	current_thread_info()->cx_after_commit = static_branch_unlikely(&cx_key_statistics) ? CX_AFTER_COUNT : 0;
	attempt = *this_cpu_ptr(&cx_attempt);
	__this_cpu_write(cx_attempt.lost_cycles, 0);
	__this_cpu_write(cx_attempt.conflict, 0);
	local_irq_restore(flags);
	if (what & CX_AFTER_ACCOUNT)
		cx_charge(attempt.lock, attempt.site, attempt.caller, CX_ELIDE, attempt.lost_cycles, true, attempt.conflict);
	if (what & CX_AFTER_INTERRUPTS)
		cx_release_interrupts();
}
EXPORT_SYMBOL(cx_after_commit);

static void show(struct seq_file *file, const struct cx_account *account)
{
	seq_printf(file, "%s%s %lu %lu %u %u ", account->mode == CX_ELIDE ? "elide" : "lock", account->window ? "+" : "",
		   account->total_cycles[CX_ELIDE], account->total_cycles[CX_LOCK],
		   account->mean_cycles[CX_ELIDE], account->mean_cycles[CX_LOCK]);
}

/* A line for each account that was charged. */
int cx_sites_show(struct seq_file *file, void *unused)
{
	unsigned int index;

	seq_puts(file, "mode cycles-lost-eliding cycles-lost-locking mean-eliding mean-locking place\n");
	if (!sites)
		return 0;
	for (index = 0; index < 1 << CX_SITES_SHIFT; index++) {
		if (sites[index].site) {
			show(file, &sites[index].account);
			seq_printf(file, "%pS\n", (void *)sites[index].caller);
		}
	}
	for (index = 0; index < 1 << CX_LOCKS_SHIFT; index++) {
		if (governs(&locks[index], locks[index].lock)) {
			show(file, &locks[index].account);
			seq_printf(file, "lock %pS\n", (void *)locks[index].lock);
		}
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of cxspinlocks: boot parameters that choose the locks and bound the retries, and
 * statistics in /sys/kernel/debug/cx.
 */
#define pr_fmt(text) "cx: " text

#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/lockref_cx.h>
#include <linux/moduleparam.h>
#include <linux/panic.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "cx.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "cx."

static char *mode = "off";
core_param(cx, mode, charp, 0444);
MODULE_PARM_DESC(cx, "off, ss (by subsystem), on, or classes of locks, separated by commas");

static char *safe = "all";
module_param(safe, charp, 0444);
MODULE_PARM_DESC(safe, "steps beyond the paper: all, none, or of counter, wake, ipi, sfence");

static char *policy = "adaptive";
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy, "adaptive: sites learn whether transactions or locks lose fewer cycles; always: transactions first");

static char *raw = "mm/shmem,lib/percpu_counter";
module_param(raw, charp, 0444);
MODULE_PARM_DESC(raw, "files whose raw locks begin transactions: none, or of mm/shmem, lib/percpu_counter");

static char *entry = "safe";
module_param(entry, charp, 0444);
MODULE_PARM_DESC(entry, "unsafe: handlers stay on the interrupted stack, which breaks the kernel");

static char *lockref = "arbitrated";
module_param(lockref, charp, 0444);
MODULE_PARM_DESC(lockref, "arbitrated: the contention manager may refuse a change of a count; cmpxchg: a change always wins");

static char *seqcount = "late";
module_param(seqcount, charp, 0444);
MODULE_PARM_DESC(seqcount, "late: a transaction changes a sequence count once, at the writer's end; twice: at begin and end");

static char *statistics = "off";
module_param(statistics, charp, 0444);
MODULE_PARM_DESC(statistics, "on: also count the sections that ran as transactions");

/*
 * Retries by cause. A retry after a conflict may succeed. A section that needs exclusion, more
 * capacity or less depth would need it again, so those causes have a budget of 0. A section that asks
 * for its own restart waits for another processor; it may do so a few times before it takes the lock
 * and blocks others while it waits.
 */
unsigned int cx_budgets[CX_CAUSES] __read_mostly = {
	[XMETATM_CAUSE_CONFLICT] = 16,
	[XMETATM_CAUSE_NONTRANSACTIONAL] = 16,
	[XMETATM_CAUSE_EXPLICIT] = 3,
	[XMETATM_CAUSE_INTERRUPT] = 3,
};
unsigned int cx_wait_turns __read_mostly = 20000;
unsigned int cx_nested_wait_turns __read_mostly = 1000;
unsigned int cx_refusals_max __read_mostly = 64;

module_param_named(budget_conflict, cx_budgets[XMETATM_CAUSE_CONFLICT], uint, 0644);
module_param_named(budget_nontransactional, cx_budgets[XMETATM_CAUSE_NONTRANSACTIONAL], uint, 0644);
module_param_named(budget_explicit, cx_budgets[XMETATM_CAUSE_EXPLICIT], uint, 0644);
module_param_named(budget_interrupt, cx_budgets[XMETATM_CAUSE_INTERRUPT], uint, 0644);
module_param_named(budget_capacity, cx_budgets[XMETATM_CAUSE_CAPACITY], uint, 0644);
module_param_named(wait_turns, cx_wait_turns, uint, 0644);
module_param_named(nested_wait_turns, cx_nested_wait_turns, uint, 0644);
module_param_named(refusals_max, cx_refusals_max, uint, 0644);

struct cx_name {
	const char *name;
	struct static_key_false *key;
};

#define CX_NAME(class) { #class, &cx_key_##class },
static const struct cx_name classes[] __initconst = { CX_CLASSES(CX_NAME) };

static const struct cx_name steps[] __initconst = {
	{ "counter", &cx_key_counter }, { "wake", &cx_key_wake }, { "ipi", &cx_key_ipi }, { "sfence", NULL },
};

static const struct cx_name raw_files[] __initconst = {
	{ "mm/shmem", &cx_key_raw_shmem }, { "lib/percpu_counter", &cx_key_raw_counter },
};

static bool sfence_is_safe __initdata;

/* The error found in the boot parameters. cx_debugfs_init() reports it, when there is a console. */
static char complaint[160] __initdata;

#define complain(...) snprintf(complaint, sizeof(complaint), __VA_ARGS__)

static void __init enable(const struct cx_name *known)
{
	if (known->key)
		static_branch_enable(known->key);
	else
		sfence_is_safe = true;
}

static void __init enable_listed(const char *parameter, const char *list, const struct cx_name *known, size_t count)
{
	char text[128], *rest = text, *word;
	size_t index;

	if (strscpy(text, list, sizeof(text)) < 0) {
		complain("%s=%s: too long", parameter, list);
		return;
	}
	while ((word = strsep(&rest, ",")) != NULL) {
		strreplace(word, '-', '_');
		for (index = 0; index < count && strcmp(word, known[index].name); index++)
			;
		if (index < count)
			enable(&known[index]);
		else
			complain("%s=%s: there is no %s", parameter, list, word);
	}
}

static void __init enable_all(const struct cx_name *known, size_t count)
{
	size_t index;

	for (index = 0; index < count; index++)
		enable(&known[index]);
}

/* The whole conversion, and the paper's by subsystem. */
static bool is_on __initdata, is_subsystems __initdata;

static bool __init is_one_of(const char *parameter, const char *value, const char *yes, const char *no)
{
	if (strcmp(value, yes) && strcmp(value, no))
		complain("cx.%s=%s: %s or %s is wanted", parameter, value, yes, no);
	return !strcmp(value, yes);
}

/*
 * A reader of a seqlock never waits for a lock, so rent or buy never buys a transaction for it, and a
 * transaction costs more cycles than two comparisons of the count: adaptive leaves it as it is.
 */
static void __init choose_policy(void)
{
	if (is_one_of("policy", policy, "adaptive", "always"))
		cx_site_init();
	else if (is_on || is_subsystems)
		static_branch_enable(&cx_key_seqlock);
	if (is_on && strcmp(raw, "none"))
		enable_listed("cx.raw", raw, raw_files, ARRAY_SIZE(raw_files));
}

/*
 * Runs before the other processors start, so that only this processor holds locks. The locks that it
 * holds now read nonzero, and are released as locks.
 */
static int __init cx_init(void)
{
	int error;

	if (!strcmp(mode, "off"))
		return 0;
	error = cx_arch_init(is_one_of("entry", entry, "unsafe", "safe"));
	if (error == -ENODEV) {
		pr_warn("the processor has no Xmetatm: locks stay locks\n");
		return 0;
	}
	if (error)
		panic("cx: no memory for the trap stacks");

	if (!strcmp(safe, "all"))
		enable_all(steps, ARRAY_SIZE(steps));
	else if (strcmp(safe, "none"))
		enable_listed("cx.safe", safe, steps, ARRAY_SIZE(steps));
	if (!sfence_is_safe)
		static_branch_enable(&cx_key_page_table);
	if (is_one_of("lockref", lockref, "arbitrated", "cmpxchg"))
		static_branch_enable(&cx_key_lockref);
	if (is_one_of("seqcount", seqcount, "late", "twice"))
		static_branch_enable(&cx_key_seqcount);
	if (is_one_of("statistics", statistics, "on", "off"))
		cx_count_commits();

	if (!strcmp(mode, "on")) {
		is_on = true;
		enable_all(classes, ARRAY_SIZE(classes));
		static_branch_enable(&cx_key_rwlock);
	} else if (!strcmp(mode, "ss")) {
		is_subsystems = true;
		enable_all(classes, CX_CLASSES_OF_SUBSYSTEMS);
		static_branch_enable(&cx_key_tasklist);
	} else {
		enable_listed("cx", mode, classes, ARRAY_SIZE(classes));
	}
	choose_policy();
	static_branch_enable(&cx_key);
	pr_info("transactions: %s, %s, safe inside them: %s\n", mode, policy, safe);
	return 0;
}
early_initcall(cx_init);

static const char * const causes[CX_CAUSES] = {
	[XMETATM_CAUSE_CONFLICT] = "conflict",
	[XMETATM_CAUSE_NONTRANSACTIONAL] = "nontransactional",
	[XMETATM_CAUSE_EXPLICIT] = "explicit",
	[XMETATM_CAUSE_NEED_EXCLUSIVE] = "need-exclusive",
	[XMETATM_CAUSE_CAPACITY] = "capacity",
	[XMETATM_CAUSE_INTERRUPT] = "interrupt",
	[XMETATM_CAUSE_DEPTH] = "depth",
};

static const char * const codes[CX_CODES] = {
	[CX_CODE_SPINNING] = "spinning",
	[CX_CODE_WAITED] = "waited",
	[CX_CODE_RAW] = "raw-lock",
	[CX_CODE_EXCLUSIVE] = "exclusive-section",
};

static int statistics_show(struct seq_file *file, void *unused)
{
	struct cx_statistics sum = {};
	unsigned int cpu, index;

	for_each_possible_cpu(cpu) {
		const unsigned long *from = (const unsigned long *)per_cpu_ptr(&cx_statistics, cpu);

		for (index = 0; index < sizeof(sum) / sizeof(*from); index++)
			((unsigned long *)&sum)[index] += READ_ONCE(from[index]);
	}
	if (static_key_enabled(&cx_key_statistics))
		seq_printf(file, "transactional %lu\n", sum.transactional);
	for (index = 1; index < CX_CAUSES; index++)
		seq_printf(file, "restarts %s %lu\n", causes[index], sum.restarts[index]);
	for (index = 1; index < CX_CAUSES; index++)
		seq_printf(file, "exclusive-after %s %lu\n", causes[index], sum.exclusive[index]);
	for (index = 1; index < CX_CODES; index++)
		seq_printf(file, "asked %s %lu\n", codes[index], sum.asked[index]);
	seq_printf(file, "refused %lu\n", sum.refused);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(statistics);

static int mode_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "%s\n", static_key_enabled(&cx_key) ? mode : "off");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mode);

DEFINE_SHOW_ATTRIBUTE(cx_sites);

static int __init cx_debugfs_init(void)
{
	struct dentry *folder;

	/* An experiment on a kernel in another mode than requested is worse than none. */
	if (complaint[0])
		panic("%s", complaint);
	folder = debugfs_create_dir("cx", NULL);

	debugfs_create_file("statistics", 0444, folder, NULL, &statistics_fops);
	debugfs_create_file("mode", 0444, folder, NULL, &mode_fops);
	debugfs_create_file("sites", 0444, folder, NULL, &cx_sites_fops);
	return 0;
}
late_initcall(cx_debugfs_init);

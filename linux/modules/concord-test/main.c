// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses the kernel's spinlocks, as locks or as transactions, from one thread on every processor, and
 * checks that no update was lost.
 *
 *   insmod concord_test.ko test=counters iterations=1000 seed=1
 *
 * The test runs while the module loads. It prints one line on the console, and the module loads only if
 * the test passed. Tests: counters, lists, balances, wakeups, stack.
 */
#define pr_fmt(text) "concord_test: " text

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <asm/cpufeature.h>

#include "test.h"

static char *test = "counters";
module_param(test, charp, 0444);
MODULE_PARM_DESC(test, "counters, lists, balances, wakeups or stack");

unsigned int iterations = 1000;
module_param(iterations, uint, 0444);
MODULE_PARM_DESC(iterations, "pieces of work for each processor");

static unsigned long seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the random choices");

static char *variant = "right";
module_param(variant, charp, 0444);
MODULE_PARM_DESC(variant, "right, or broken-end: sections commit before their bodies, which the tests must detect");

bool end_is_broken;
struct worker workers[WORKERS_MAX];
unsigned int workers_count;

static const struct test *const tests[] = { &counters_test, &lists_test, &balances_test, &wakeups_test, &stack_test };
static const struct test *chosen;

static struct task_struct *threads[WORKERS_MAX];
static atomic_t ready = ATOMIC_INIT(0);
static atomic_t running = ATOMIC_INIT(0);
static DECLARE_COMPLETION(finished);

void pair_init(struct pair *pair)
{
	spin_lock_init(&pair->lock);
	pair->one = 0;
	pair->two = 0;
}

bool pair_is_right(const struct pair *pair, const char *name, u64 expected)
{
	if (pair->one == expected && pair->two == expected)
		return true;
	pr_err("%s: %llu and %llu instead of %llu\n", name, pair->one, pair->two, expected);
	return false;
}

u64 done_by_all(unsigned int index)
{
	unsigned int number;
	u64 sum = 0;

	for (number = 0; number < workers_count; number++)
		sum += workers[number].done[index];
	return sum;
}

/*
 * Brings the hardware's counter of restarts close to its maximum, where it saturates. Sections use the
 * counter to decide when to stop retrying.
 */
static void age_counter(void)
{
	if (riscv_has_extension_unlikely(RISCV_ISA_EXT_XMETATM))
		xmetatm_csr_write(CSR_XRESTARTS, XMETATM_RESTARTS_MAX - 4);
}

static int work(void *data)
{
	struct worker *worker = data;
	unsigned int iteration;

	/* All workers begin together, so that their sections overlap in time. */
	atomic_inc(&ready);
	while (atomic_read(&ready) < workers_count)
		cond_resched();
	if (chosen->has_interrupts)
		interrupts_start(worker);
	for (iteration = 0; iteration < iterations; iteration++) {
		if (iteration % 8 == 0)
			age_counter();
		chosen->work(worker);
		cond_resched();
	}
	if (chosen->has_interrupts)
		interrupts_stop(worker);
	if (atomic_dec_and_test(&running))
		complete(&finished);
	/* Stays alive until kthread_stop(), because the module's code may be freed after that. */
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void stop_workers(unsigned int number)
{
	while (number--)
		kthread_stop(threads[number]);
}

static int start_workers(void)
{
	unsigned int cpu, number = 0;

	for_each_online_cpu(cpu) {
		struct worker *worker = &workers[number];

		if (number == WORKERS_MAX)
			break;
		worker->number = number;
		worker->random = seed * WORKERS_MAX + number;
		worker->interrupt_random = ~worker->random;
		threads[number] = kthread_create_on_cpu(work, worker, cpu, "concord_test/%u");
		if (IS_ERR(threads[number])) {
			int error = PTR_ERR(threads[number]);

			stop_workers(number);
			return error;
		}
		number++;
	}
	workers_count = number;
	atomic_set(&running, number);
	for (number = 0; number < workers_count; number++)
		wake_up_process(threads[number]);
	return 0;
}

static bool run_is_right(void)
{
	unsigned int number;
	bool is_right = true;

	for (number = 0; number < workers_count; number++) {
		if (workers[number].disorders) {
			pr_err("worker %u saw %llu sections half finished\n", number, workers[number].disorders);
			is_right = false;
		}
	}
	return chosen->is_right() && is_right;
}

static int __init concord_test_init(void)
{
	unsigned int index;
	int error;

	for (index = 0; index < ARRAY_SIZE(tests); index++)
		if (!strcmp(tests[index]->name, test))
			chosen = tests[index];
	end_is_broken = !strcmp(variant, "broken-end");
	if (!chosen || (strcmp(variant, "right") && !end_is_broken)) {
		pr_err("unknown test=%s or variant=%s\n", test, variant);
		return -EINVAL;
	}
	if (num_online_cpus() < chosen->workers_min) {
		pr_err("%s: needs at least %u processors\n", test, chosen->workers_min);
		return -EINVAL;
	}
	if (chosen->has_interrupts && !interrupts_prepare())
		return -ENOMEM;
	chosen->prepare();

	/* The workers start together, and no processor goes offline during the test. */
	cpus_read_lock();
	error = start_workers();
	if (!error) {
		wait_for_completion(&finished);
		stop_workers(workers_count);
	}
	cpus_read_unlock();
	if (error)
		return error;
	if (!run_is_right()) {
		pr_err("%s: failed\n", test);
		return -EILSEQ;
	}
	pr_info("%s: passed on %u processors\n", test, workers_count);
	return 0;
}

static void __exit concord_test_exit(void)
{
}

module_init(concord_test_init);
module_exit(concord_test_exit);
MODULE_DESCRIPTION("Test of cooperative transactional spinlocks");
MODULE_LICENSE("GPL");

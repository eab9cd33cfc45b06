/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The library as a module: concord-tm-2pl or concord-tm-tl2. They have the same symbols, so only one of them can be
 * loaded at a time. Other modules include <tm/...> and use the declarations of <tm/tm.h> and <tm/lock/...>.
 *
 * Built with SELF_TEST=y it tests itself while it is loaded, with threads and interrupts:
 *
 *   insmod concord-tm-2pl.ko test_iterations=1000
 *
 * If a test fails, the module does not load (EILSEQ), and the console shows the reason. It can be unloaded when no thread has a transaction state any more: the threads
 * that used it have ended, or returned to their programs.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#ifdef CONFIG_CXSPINLOCKS
#include <asm/cpufeature.h>
#endif

#include <tm/htm.h>
#include <tm/tm.h>

#include "linux.h"

/* The time that ending threads may take to give their transaction states back. */
#define THREADS_END_SECONDS 60

/* Waits until no thread has a state, and none still runs this module's code. */
static void wait_for_threads(void)
{
    unsigned long end = jiffies + THREADS_END_SECONDS * HZ;

    while (tm_linux_threads()) {
        if (time_after(jiffies, end)) {
            /* Their states are the module's memory: it has to stay. */
            WARN_ONCE(1, "threads have ended and not given their transaction states back\n");
            end = jiffies + THREADS_END_SECONDS * HZ;
        }
        msleep(1);
    }
    synchronize_rcu_tasks();
}

#ifdef TM_LINUX_SELF_TEST
static unsigned int test_iterations = 100;
module_param(test_iterations, uint, 0444);
MODULE_PARM_DESC(test_iterations, "pieces of work for each thread of each test at load; 0 for no test");

static unsigned int test_threads;
module_param(test_threads, uint, 0444);
MODULE_PARM_DESC(test_threads, "threads of the test; 0 for three on each processor");

static unsigned long test_seed = 1;
module_param(test_seed, ulong, 0444);
MODULE_PARM_DESC(test_seed, "of what the test does when");

static bool test_misuse;
module_param(test_misuse, bool, 0444);
MODULE_PARM_DESC(test_misuse, "whether to test mistakes of callers too, which warn");

static int test(void)
{
    unsigned threads = test_threads ? test_threads : 3 * num_online_cpus();
    int error;

    if (!test_iterations)
        return 0;
    error = tm_linux_test(threads, test_iterations, test_seed);
    if (!error && test_misuse)
        error = tm_linux_test_misuse();
    wait_for_threads();
    if (!error)
        pr_info("%u threads on %u processors passed every test\n", threads, num_online_cpus());
    return error;
}
#else
static int test(void)
{
    return 0;
}
#endif

void tm_linux_report(const char *what)
{
    pr_emerg("%s\n", what);
}

bool tm_port_has_xmetatm(void)
{
#ifdef CONFIG_CXSPINLOCKS
    return riscv_has_extension_unlikely(RISCV_ISA_EXT_XMETATM);
#else
    return false;
#endif
}

static int __init concord_tm_init(void)
{
    int error = tm_linux_contexts_make();

    if (!error)
        error = test();
    if (error) {
        tm_linux_contexts_free();
        return error;
    }
    pr_info("locks and %s transactions; hardware transactions: %s\n", tm_algorithm_name,
            tm_htm_kind_name(tm_htm_kind()));
    return 0;
}

static void __exit concord_tm_exit(void)
{
    wait_for_threads();
    tm_linux_contexts_free();
}

module_init(concord_tm_init);
module_exit(concord_tm_exit);
MODULE_DESCRIPTION("Locks and software transactions");
MODULE_LICENSE("Dual MIT/GPL");

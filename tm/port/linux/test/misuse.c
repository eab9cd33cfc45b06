/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Callers' mistakes, each of which warns once and leaves the transaction as the manual pages say. */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include <tm/tm.h>

#include "../linux.h"
#include "test.h"

static u64 word;
static unsigned serial_answer;

/* A handler's transaction cannot run alone. */
static void handler(struct irq_work *work)
{
    (void)work;
    serial_answer = tm_start(TM_SERIAL);
    if (serial_answer == TM_STARTED)
        tm_commit();
    if (tm_start(0) == TM_STARTED) {
        tm_store(&word, tm_load(&word) + 1);
        tm_become_irrevocable();
        tm_commit();
    }
}

static int make_mistakes(void)
{
    struct irq_work interrupt;

    if (tm_start(TM_SERIAL) != TM_STARTED)
        return -ENOMEM;
    tm_store(&word, 1);
    /* An irrevocable transaction goes on. */
    tm_cancel();
    tm_abort();
    tm_store(&word, tm_load(&word) + 1);
    tm_commit();

    init_irq_work(&interrupt, handler);
    irq_work_queue(&interrupt);
    irq_work_sync(&interrupt);
    if (word != 3 || serial_answer != TM_MISUSED) {
        pr_err("misuse: the word is %llu instead of 3, and the answer %u\n", word, serial_answer);
        return -EILSEQ;
    }
    pr_info("misuse: passed\n");
    return 0;
}

static DECLARE_COMPLETION(finished);

static int work(void *result)
{
    *(int *)result = make_mistakes();
    complete(&finished);
    wait_for_stop();
    return 0;
}

/* In a thread of its own, which gives its transaction state back when it ends. */
int tm_linux_test_misuse(void)
{
    int result;
    struct task_struct *thread = kthread_run(work, &result, "concord_tm/misuse");

    if (IS_ERR(thread))
        return PTR_ERR(thread);
    wait_for_completion(&finished);
    kthread_stop(thread);
    return result;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Architecture support for transactions in the kernel: stacks for the handlers that interrupt
 * transactions, and inter-processor interrupts that wait for the commit.
 */
#include <linux/bitops.h>
#include <linux/cx.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/cx_entry.h>

/* The end (highest address) of the stack that the next trap in a transaction takes. */
DEFINE_PER_CPU(unsigned long, cx_stack_next);

/* cx.entry=unsafe: handlers stay on the interrupted stack, which demonstrates the live-stack hazard. */
bool cx_entry_is_unsafe __ro_after_init;

int __init cx_arch_init(bool unsafe_entry)
{
	unsigned int cpu;

	if (!riscv_has_extension_unlikely(RISCV_ISA_EXT_XMETATM))
		return -ENODEV;
	BUILD_BUG_ON(NR_CPUS > BITS_PER_LONG);
	cx_entry_is_unsafe = unsafe_entry;
	if (unsafe_entry)
		return 0;
	for_each_possible_cpu(cpu) {
		unsigned long area = __get_free_pages(GFP_KERNEL, CX_AREA_SHIFT - PAGE_SHIFT);

		if (!area)
			return -ENOMEM;
		per_cpu(cx_stack_next, cpu) = area + CX_STACKS * CX_STACK_SIZE;
	}
	return 0;
}

bool cx_hold_interrupt(unsigned int cpu)
{
	if (!static_branch_unlikely(&cx_key_ipi) || !xgettxid())
		return false;
	current_thread_info()->cx_held_interrupts |= BIT(cpu);
	current_thread_info()->cx_after_commit |= CX_AFTER_INTERRUPTS;
	return true;
}

/*
 * Sends the held-back interrupts after a commit. All of them go out as function-call interrupts: a
 * request to reschedule arrives as one whose queue of functions is empty.
 */
void cx_release_interrupts(void)
{
	struct thread_info *thread = current_thread_info();
	unsigned long held, flags;
	unsigned int cpu;

	local_irq_save(flags);
	held = thread->cx_held_interrupts;
	thread->cx_held_interrupts = 0;
	local_irq_restore(flags);
	for_each_set_bit(cpu, &held, BITS_PER_LONG)
		arch_send_call_function_single_ipi(cpu);
}
EXPORT_SYMBOL(cx_release_interrupts);

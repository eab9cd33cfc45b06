// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures the cost of a critical section without contention: cycles and instructions of its begin and
 * end together, for each primitive, with code and data in the first-level caches. In the simulator's
 * timed gear an instruction takes one cycle and a hint takes none.
 *
 *   insmod concord_cost.ko
 */
#define pr_fmt(text) "concord_cost: " text

#include <linux/cx.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/lockref.h>
#include <linux/module.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <asm/csr.h>

#define TURNS 1024

static DEFINE_SPINLOCK(outer);
static DEFINE_SPINLOCK(inner);
static DEFINE_RAW_SPINLOCK(raw);
static DEFINE_RWLOCK(rwlock);
static DEFINE_SEQLOCK(seqlock);
static struct lockref counted = { .lock = __SPIN_LOCK_UNLOCKED(counted.lock), .count = 1 };

/*
 * Prints the cost of one turn in hundredths, without the cost of the loop itself. The first round
 * brings code and data into the caches.
 */
#define MEASURE(name, begin, end) do {							\
	unsigned long cycles, instructions, turn, round;				\
											\
	for (round = 0; round < 2; round++) {						\
		cycles = csr_read(CSR_CYCLE);						\
		instructions = csr_read(CSR_INSTRET);					\
		for (turn = 0; turn < TURNS; turn++) {					\
			begin;								\
			end;								\
			barrier();							\
		}									\
		instructions = csr_read(CSR_INSTRET) - instructions;			\
		cycles = csr_read(CSR_CYCLE) - cycles;					\
	}										\
	cycles = (cycles - loop_cycles) * 100 / TURNS;					\
	instructions = (instructions - loop_instructions) * 100 / TURNS;		\
	if (!loop_cycles) {								\
		loop_cycles = cycles * TURNS / 100;					\
		loop_instructions = instructions * TURNS / 100;				\
	} else {									\
		pr_info("%-24s %4lu.%02lu cycles %4lu.%02lu instructions\n", name, cycles / 100, cycles % 100,	\
			instructions / 100, instructions % 100);			\
	}										\
} while (0)

static int __init concord_cost_init(void)
{
	unsigned long loop_cycles = 0, loop_instructions = 0, saved, flags;

	local_irq_save(saved);
	MEASURE("loop", , );
	MEASURE("spin_lock", spin_lock(&outer), spin_unlock(&outer));
	MEASURE("spin_lock_irqsave", spin_lock_irqsave(&outer, flags), spin_unlock_irqrestore(&outer, flags));
	MEASURE("spin_trylock", (void)spin_trylock(&outer), spin_unlock(&outer));
	MEASURE("raw_spin_lock", raw_spin_lock(&raw), raw_spin_unlock(&raw));
	MEASURE("read_lock", read_lock(&rwlock), read_unlock(&rwlock));
	MEASURE("write_lock", write_lock(&rwlock), write_unlock(&rwlock));
	MEASURE("write_seqlock", write_seqlock(&seqlock), write_sequnlock(&seqlock));
	MEASURE("cx_exclusive", cx_exclusive(&outer), cx_end(&outer));
	MEASURE("lockref_get, put", lockref_get(&counted), (void)lockref_put_return(&counted));
	MEASURE("ktime_get", ktime_get(), );
	spin_lock(&outer);
	MEASURE("spin_lock, nested", spin_lock(&inner), spin_unlock(&inner));
	spin_unlock(&outer);
	local_irq_restore(saved);
	return 0;
}

static void __exit concord_cost_exit(void)
{
}

module_init(concord_cost_init);
module_exit(concord_cost_exit);
MODULE_DESCRIPTION("Uncontended costs of spinlocks and transactions");
MODULE_LICENSE("GPL");

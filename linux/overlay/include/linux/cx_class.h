/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classes of locks, by the source file that takes them. They make the conversion by subsystem, which
 * the paper's first kernel did by hand (table 4), a choice at boot that changes no subsystem.
 */
#ifndef _LINUX_CX_CLASS_H
#define _LINUX_CX_CLASS_H

/* The classes of the paper's table 4 come first. */
#define CX_CLASSES(each)						\
	each(slab) each(dcache) each(address_space) each(page_allocator)\
	each(zones) each(vmalloc) each(task_lists) each(timekeeping)	\
	each(wait_queue) each(mm) each(fs) each(net) each(block) each(other)

#define CX_CLASS_NUMBER(class) CX_CLASS_##class,
enum cx_class { CX_CLASSES(CX_CLASS_NUMBER) CX_CLASSES_COUNT };

/* cx=ss converts the classes before this one. */
#define CX_CLASSES_OF_SUBSYSTEMS CX_CLASS_wait_queue

#ifndef KBUILD_MODFILE
#define KBUILD_MODFILE ""
#endif

/* The compiler folds both into constants. */
#define CX_FILE(name) (__builtin_strcmp(KBUILD_MODFILE, name) == 0)
#define CX_UNDER(folder) (__builtin_strncmp(KBUILD_MODFILE, folder "/", sizeof(folder)) == 0)

#define CX_CLASS (							\
	CX_FILE("mm/slub") || CX_FILE("mm/slab_common") ? CX_CLASS_slab :				\
	CX_FILE("fs/dcache") || CX_FILE("lib/lockref") || CX_FILE("fs/libfs") ? CX_CLASS_dcache :	\
	CX_FILE("mm/filemap") || CX_FILE("mm/page-writeback") || CX_FILE("mm/truncate") ||		\
	CX_FILE("mm/workingset") || CX_FILE("mm/swap_state") || CX_FILE("lib/xarray") ?			\
		CX_CLASS_address_space :								\
	CX_FILE("mm/page_alloc") || CX_FILE("mm/page_isolation") ? CX_CLASS_page_allocator :		\
	CX_FILE("mm/swap") || CX_FILE("mm/vmscan") || CX_FILE("mm/mlock") || CX_FILE("mm/compaction") ?	\
		CX_CLASS_zones :									\
	CX_FILE("mm/vmalloc") ? CX_CLASS_vmalloc :							\
	CX_FILE("kernel/fork") || CX_FILE("kernel/exit") || CX_FILE("kernel/pid") ||			\
	CX_FILE("kernel/signal") ? CX_CLASS_task_lists :						\
	CX_UNDER("kernel/time") ? CX_CLASS_timekeeping :						\
	CX_UNDER("kernel/sched") ? CX_CLASS_wait_queue :						\
	CX_UNDER("mm") ? CX_CLASS_mm :									\
	CX_UNDER("fs") ? CX_CLASS_fs :									\
	CX_UNDER("net") ? CX_CLASS_net :								\
	CX_UNDER("block") || CX_UNDER("drivers") ? CX_CLASS_block : CX_CLASS_other)

/*
 * Raw locks that a transaction may take: the locks of percpu counters, tmpfs's count of its blocks and
 * inodes, and the locks of a wake-up.
 */
#define CX_RAW_CLASSES(each) each(counter) each(shmem) each(wake)
#define CX_RAW_IS_COUNTER CX_FILE("lib/percpu_counter")
#define CX_RAW_IS_SHMEM CX_FILE("mm/shmem")
#define CX_RAW_IS_WAKE CX_UNDER("kernel/sched")

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Cases of contend about memory: page faults, allocation and release. */
#define _GNU_SOURCE
#include "contend.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096ul
/* The memory that one page of page-table entries maps. */
#define TABLE_BYTES (512 * PAGE_BYTES)
/* Pages of one worker. Those of all workers fit into one table. */
#define PAGES 8
#define ALLOCATED_PAGES 16

static char *area;

/* Maps the memory of all workers, below one table. */
static void map_area(struct worker *workers)
{
	char *mapped = mmap(NULL, 2 * TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)workers;
	_Static_assert(TEAM_MAX * PAGES * PAGE_BYTES <= TABLE_BYTES, "the pages of all workers are below one table");
	if (mapped == MAP_FAILED)
		die("%lu bytes", 2 * TABLE_BYTES);
	area = (char *)(((uintptr_t)mapped + TABLE_BYTES - 1) / TABLE_BYTES * TABLE_BYTES);
	/* Fails on kernels without huge pages, which is as good. */
	madvise(area, TABLE_BYTES, MADV_NOHUGEPAGE);
}

/* Writes to each page, with one fault, and returns whether all of them were new, that is, zero. */
static int touch(char *pages, unsigned count)
{
	int is_new = 1;

	for (unsigned page = 0; page < count; page++)
		is_new &= __atomic_exchange_n((unsigned *)(pages + page * PAGE_BYTES), 1, __ATOMIC_RELAXED) == 0;
	return is_new;
}

/*
 * Faults pages in, and drops them. In threads the lock is that of the page-table page; in processes only the locks of
 * the page allocator and of the lists of pages are everybody's.
 */
static int fault(struct worker *worker, unsigned round)
{
	char *pages = area + worker->number * PAGES * PAGE_BYTES;

	(void)round;
	return touch(pages, PAGES) && madvise(pages, PAGES * PAGE_BYTES, MADV_DONTNEED) == 0;
}

/* Maps memory, writes to it and unmaps it. In threads the process's address space is shared. */
static int allocate(struct worker *worker, unsigned round)
{
	char *pages = mmap(NULL, ALLOCATED_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)worker, (void)round;
	return pages != MAP_FAILED && touch(pages, ALLOCATED_PAGES) && munmap(pages, ALLOCATED_PAGES * PAGE_BYTES) == 0;
}

/* One page of all processes. */
static unsigned *shared_page;

static void map_shared_page(struct worker *workers)
{
	(void)workers;
	shared_page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_page == MAP_FAILED)
		die("a shared page");
}

/* Adds to a word of the page, which the process must map first, under the page's lock. The spinlock is that of its waiters. */
static int add_in_page(struct worker *worker, unsigned round)
{
	(void)worker, (void)round;
	__atomic_fetch_add(shared_page, 1, __ATOMIC_RELAXED);
	return madvise(shared_page, PAGE_BYTES, MADV_DONTNEED) == 0;
}

static int page_has_all(struct worker *workers)
{
	return *shared_page == workers->workers * workers->rounds;
}

const struct contention memory_cases[] = {
	/* Disjoint data. */
	{.name = "faults", .kind = THREADS, .rounds = 500, .set_up = map_area, .operate = fault},
	{.name = "faults-processes", .kind = PROCESSES, .rounds = 300, .set_up = map_area, .operate = fault},
	{.name = "allocate", .kind = PROCESSES, .rounds = 150, .operate = allocate},
	/* Shared data. */
	{.name = "allocate-threads", .kind = THREADS, .rounds = 150, .operate = allocate},
	{.name = "page-wait", .kind = PROCESSES, .rounds = 500, .set_up = map_shared_page, .operate = add_in_page,
	 .check = page_has_all},
	{.name = NULL},
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three linked structures: a sorted list under one lock; a sorted list whose nodes have their own locks
 * and are locked hand over hand (a lock is released after the next one is taken, so locks are released
 * out of order); and a hash table whose buckets have their own locks, of which a move takes two.
 */
#include <linux/hash.h>
#include <linux/list.h>

#include "test.h"

#define KEYS 32
#define BUCKETS_BITS 3
#define BUCKETS (1 << BUCKETS_BITS)
/* Counts by key: insertions less removals in each list. */
#define DONE_COUPLED KEYS

struct node {
	spinlock_t lock;
	u64 key;
	struct node *next;
};

struct entry {
	struct hlist_node link;
	u64 key;
	/* The bucket that holds the entry; guarded by the lock of that bucket. */
	u32 bucket;
};

static DEFINE_SPINLOCK(list_lock);
/* The heads have the key 0, which no node has. */
static struct node list_head, coupled_head;
static struct node list_nodes[KEYS], coupled_nodes[KEYS];

static spinlock_t bucket_locks[BUCKETS];
static struct hlist_head buckets[BUCKETS];
static struct entry entries[KEYS];

static void lists_prepare(void)
{
	unsigned int index;

	spin_lock_init(&coupled_head.lock);
	for (index = 0; index < KEYS; index++) {
		list_nodes[index].key = index + 1;
		coupled_nodes[index].key = index + 1;
		spin_lock_init(&coupled_nodes[index].lock);
	}
	for (index = 0; index < BUCKETS; index++) {
		spin_lock_init(&bucket_locks[index]);
		INIT_HLIST_HEAD(&buckets[index]);
	}
	for (index = 0; index < KEYS; index++) {
		entries[index].key = index;
		entries[index].bucket = hash_32(index, BUCKETS_BITS);
		hlist_add_head(&entries[index].link, &buckets[entries[index].bucket]);
	}
}

/* Inserts the node after `before`, or removes it. Returns the change in the number of nodes. */
static int change(struct node *before, struct node *node, bool inserts)
{
	bool is_there = before->next && before->next->key == node->key;

	if (inserts && !is_there) {
		node->next = before->next;
		before->next = node;
		return 1;
	}
	if (!inserts && is_there) {
		before->next = before->next->next;
		return -1;
	}
	return 0;
}

static void use_list(struct worker *worker)
{
	u32 key = random_below(&worker->random, KEYS);
	bool inserts = random_below(&worker->random, 2);
	enum form form = random_below(&worker->random, FORMS);
	bool acts = random_below(&worker->random, 32) == 0;
	struct node *before = &list_head;
	struct section section;
	int changed;

	if (!section_begin(&section, &list_lock, form))
		return;
	while (before->next && before->next->key < key + 1) {
		/* A corrupted list may be circular. */
		if (before->next->key <= before->key) {
			count_outside(&worker->disorders);
			break;
		}
		before = before->next;
	}
	if (acts)
		act();
	linger();
	changed = change(before, &list_nodes[key], inserts);
	section_end(&section);
	worker->done[key] += changed;
}

static void use_coupled_list(struct worker *worker)
{
	u32 key = random_below(&worker->random, KEYS);
	bool inserts = random_below(&worker->random, 2);
	bool acts = random_below(&worker->random, 16) == 0;
	struct node *before = &coupled_head, *next;
	int changed;

	spin_lock(&before->lock);
	for (;;) {
		next = before->next;
		if (!next || next->key > key)
			break;
		if (next->key <= before->key)
			count_outside(&worker->disorders);
		spin_lock(&next->lock);
		spin_unlock(&before->lock);
		before = next;
		if (acts && next->key == key)
			act();
	}
	/* A removal holds the next node's lock too, so that no other worker is at that node. */
	if (next && next->key == key + 1)
		spin_lock(&next->lock);
	changed = change(before, &coupled_nodes[key], inserts);
	if (next && next->key == key + 1) {
		spin_unlock(&before->lock);
		spin_unlock(&next->lock);
	} else {
		spin_unlock(&before->lock);
	}
	worker->done[DONE_COUPLED + key] += changed;
}

/* Moves an entry to another bucket, if it is in the bucket that is searched. */
static void use_hash(struct worker *worker)
{
	u32 key = random_below(&worker->random, KEYS);
	u32 from = random_below(&worker->random, BUCKETS);
	u32 to = random_below(&worker->random, BUCKETS);
	bool acts = random_below(&worker->random, 32) == 0;
	struct entry *entry;

	if (from == to)
		return;
	spin_lock(&bucket_locks[min(from, to)]);
	if (random_below(&worker->random, 8))
		spin_lock(&bucket_locks[max(from, to)]);
	else
		cx_exclusive(&bucket_locks[max(from, to)]);
	hlist_for_each_entry(entry, &buckets[from], link) {
		if (entry->bucket != from)
			count_outside(&worker->disorders);
		if (entry->key != key)
			continue;
		hlist_del(&entry->link);
		if (acts)
			act();
		hlist_add_head(&entry->link, &buckets[to]);
		entry->bucket = to;
		break;
	}
	/* Releases the locks in the order in which they were taken. */
	spin_unlock(&bucket_locks[min(from, to)]);
	spin_unlock(&bucket_locks[max(from, to)]);
}

static void lists_work(struct worker *worker)
{
	use_list(worker);
	use_coupled_list(worker);
	use_hash(worker);
}

static bool list_is_right(const struct node *head, unsigned int first_index, const char *name)
{
	const struct node *node = head->next;
	unsigned int key;

	for (key = 0; key < KEYS; key++) {
		bool is_there = node && node->key == key + 1;

		if (done_by_all(first_index + key) != is_there) {
			pr_err("%s: key %u is %s, and was inserted %lld times more than removed\n", name, key,
			       is_there ? "there" : "not there", (s64)done_by_all(first_index + key));
			return false;
		}
		if (is_there)
			node = node->next;
	}
	if (node)
		pr_err("%s: the list is out of order\n", name);
	return !node;
}

static bool lists_are_right(void)
{
	unsigned int bucket, found = 0;
	struct entry *entry;
	bool is_right;

	is_right = list_is_right(&list_head, 0, "list under one lock");
	is_right &= list_is_right(&coupled_head, DONE_COUPLED, "list locked hand over hand");
	for (bucket = 0; bucket < BUCKETS; bucket++)
		hlist_for_each_entry(entry, &buckets[bucket], link)
			found += entry->bucket == bucket;
	if (found != KEYS) {
		pr_err("hash: %u entries instead of %u\n", found, KEYS);
		is_right = false;
	}
	return is_right;
}

const struct test lists_test = {
	.name = "lists",
	.has_interrupts = true,
	.workers_min = 1,
	.prepare = lists_prepare,
	.work = lists_work,
	.is_right = lists_are_right,
};

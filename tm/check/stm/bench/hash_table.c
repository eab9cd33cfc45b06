/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A hash table with chains. */
#include "workload.h"

#define KEYS 4096
#define CHAINS 1024

struct node {
    uint64_t key;
    struct node *next;
};

static struct node *chains[CHAINS];

static struct node **chain_of(uint64_t key)
{
    return &chains[(key * 0x9e3779b97f4a7c15ull >> 32) % CHAINS];
}

static NOINLINE void insert(struct node **chain, uint64_t key)
{
    TRANSACTION
        struct node *first = LOAD(*chain);
        struct node *node = first;
        while (node && LOAD(node->key) != key)
            node = LOAD(node->next);
        if (!node) {
            struct node *added = ALLOCATE(sizeof *added);
            STORE(added->key, key);
            STORE(added->next, first);
            STORE(*chain, added);
        }
    END
}

static NOINLINE void remove_key(struct node **chain, uint64_t key)
{
    TRANSACTION
        struct node **place = chain;
        struct node *node = LOAD(*place);
        while (node && LOAD(node->key) != key) {
            place = &node->next;
            node = LOAD(*place);
        }
        if (node) {
            STORE(*place, LOAD(node->next));
            RELEASE(node);
        }
    END
}

static NOINLINE bool look_up(struct node **chain, uint64_t key)
{
    bool found;
    READ_ONLY_TRANSACTION
        struct node *node = LOAD(*chain);
        while (node && LOAD(node->key) != key)
            node = LOAD(node->next);
        found = node;
    END
    return found;
}

static void prepare(void)
{
    for (uint64_t key = 0; key < KEYS; key += 2)
        insert(chain_of(key), key);
}

static void operate(uint64_t *random)
{
    uint64_t key = random_below(random, KEYS);
    switch (next_set_operation(random)) {
    case SET_INSERT:
        insert(chain_of(key), key);
        break;
    case SET_REMOVE:
        remove_key(chain_of(key), key);
        break;
    case SET_LOOK_UP:
        look_up(chain_of(key), key);
    }
}

static bool adds_up(uint64_t operations)
{
    (void)operations;
    bool good = true;
    for (uint64_t key = 0; key < KEYS; key++) {
        unsigned count = 0;
        for (const struct node *node = *chain_of(key); node; node = node->next)
            count += node->key == key;
        good = good && count <= 1;
        remove_key(chain_of(key), key);
    }
    for (unsigned chain = 0; chain < CHAINS; chain++)
        good = good && !chains[chain];
    return good;
}

const struct workload hash_table = {"hash-table", prepare, operate, adds_up};

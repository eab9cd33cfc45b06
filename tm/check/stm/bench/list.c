/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A sorted, singly linked list of keys. */
#include "workload.h"

#define KEYS 128

struct node {
    uint64_t key;
    struct node *next;
};

static struct node *head;

static NOINLINE void insert(uint64_t key)
{
    TRANSACTION
        struct node **place = &head;
        struct node *node = LOAD(*place);
        while (node && LOAD(node->key) < key) {
            place = &node->next;
            node = LOAD(*place);
        }
        if (!node || LOAD(node->key) != key) {
            struct node *added = ALLOCATE(sizeof *added);
            STORE(added->key, key);
            STORE(added->next, node);
            STORE(*place, added);
        }
    END
}

static NOINLINE void remove_key(uint64_t key)
{
    TRANSACTION
        struct node **place = &head;
        struct node *node = LOAD(*place);
        while (node && LOAD(node->key) < key) {
            place = &node->next;
            node = LOAD(*place);
        }
        if (node && LOAD(node->key) == key) {
            STORE(*place, LOAD(node->next));
            RELEASE(node);
        }
    END
}

static NOINLINE bool look_up(uint64_t key)
{
    bool found;
    READ_ONLY_TRANSACTION
        struct node *node = LOAD(head);
        while (node && LOAD(node->key) < key)
            node = LOAD(node->next);
        found = node && LOAD(node->key) == key;
    END
    return found;
}

static void prepare(void)
{
    for (uint64_t key = 0; key < KEYS; key += 2)
        insert(key);
}

static void operate(uint64_t *random)
{
    uint64_t key = random_below(random, KEYS);
    switch (next_set_operation(random)) {
    case SET_INSERT:
        insert(key);
        break;
    case SET_REMOVE:
        remove_key(key);
        break;
    case SET_LOOK_UP:
        look_up(key);
    }
}

static bool adds_up(uint64_t operations)
{
    (void)operations;
    bool sorted = true;
    for (const struct node *node = head; node && node->next; node = node->next)
        sorted = sorted && node->key < node->next->key;
    for (uint64_t key = 0; key < KEYS; key++)
        remove_key(key);
    return sorted && !head;
}

const struct workload list = {"list", prepare, operate, adds_up};

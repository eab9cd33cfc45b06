/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A red-black tree: Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", chapter 13, without its sentinel,
 * which all transactions would write.
 */
#include "workload.h"

#define KEYS 4096

struct node {
    uint64_t key;
    struct node *children[2]; /* Of smaller and of larger keys. */
    struct node *parent;
    uint64_t is_red;
};

static struct node *root;

static SAFE bool is_red(struct node *node)
{
    return node && LOAD(node->is_red);
}

/* Which child of its parent a node is. */
static SAFE unsigned side_of(struct node *node, struct node *parent)
{
    return LOAD(parent->children[1]) == node;
}

/* Replaces `old` by `node`, or by nothing. */
static SAFE void replace(struct node *old, struct node *parent, struct node *node)
{
    if (parent)
        STORE(parent->children[side_of(old, parent)], node);
    else
        STORE(root, node);
    if (node)
        STORE(node->parent, parent);
}

/* Moves a node down to `side`; its child of the other side takes its place. */
static SAFE void rotate(struct node *node, unsigned side)
{
    struct node *child = LOAD(node->children[!side]);
    struct node *moved = LOAD(child->children[side]);
    replace(node, LOAD(node->parent), child);
    STORE(node->children[!side], moved);
    if (moved)
        STORE(moved->parent, node);
    STORE(child->children[side], node);
    STORE(node->parent, child);
}

/* `node` is red, and its parent may be. */
static SAFE void balance_inserted(struct node *node)
{
    struct node *parent = LOAD(node->parent);
    while (is_red(parent)) {
        struct node *above = LOAD(parent->parent);
        unsigned side = side_of(parent, above);
        struct node *uncle = LOAD(above->children[!side]);
        if (is_red(uncle)) {
            STORE(parent->is_red, 0);
            STORE(uncle->is_red, 0);
            STORE(above->is_red, 1);
            node = above;
            parent = LOAD(node->parent);
            continue;
        }
        if (side_of(node, parent) != side) {
            rotate(parent, side);
            parent = node;
        }
        STORE(parent->is_red, 0);
        STORE(above->is_red, 1);
        rotate(above, !side);
        break;
    }
    struct node *top = LOAD(root);
    if (LOAD(top->is_red))
        STORE(top->is_red, 0);
}

/* The paths through `node`, a child of `parent` or nothing, have one black node less than others. */
static SAFE void balance_removed(struct node *node, struct node *parent)
{
    while (parent && !is_red(node)) {
        /* If it is nothing, the sibling is not, because it has the additional black node. */
        unsigned side = side_of(node, parent);
        struct node *sibling = LOAD(parent->children[!side]);
        if (LOAD(sibling->is_red)) {
            STORE(sibling->is_red, 0);
            STORE(parent->is_red, 1);
            rotate(parent, side);
            sibling = LOAD(parent->children[!side]);
        }
        if (!is_red(LOAD(sibling->children[0])) && !is_red(LOAD(sibling->children[1]))) {
            STORE(sibling->is_red, 1);
            node = parent;
            parent = LOAD(node->parent);
            continue;
        }
        if (!is_red(LOAD(sibling->children[!side]))) {
            STORE(LOAD(sibling->children[side])->is_red, 0);
            STORE(sibling->is_red, 1);
            rotate(sibling, !side);
            sibling = LOAD(parent->children[!side]);
        }
        STORE(sibling->is_red, LOAD(parent->is_red));
        STORE(parent->is_red, 0);
        STORE(LOAD(sibling->children[!side])->is_red, 0);
        rotate(parent, side);
        return;
    }
    if (is_red(node))
        STORE(node->is_red, 0);
}

static SAFE void take_out(struct node *node)
{
    struct node *removed = node;
    if (LOAD(node->children[0]) && LOAD(node->children[1])) {
        /* The next larger key moves here, and its node is removed. */
        removed = LOAD(node->children[1]);
        for (struct node *left = LOAD(removed->children[0]); left; left = LOAD(removed->children[0]))
            removed = left;
        STORE(node->key, LOAD(removed->key));
    }
    struct node *child = LOAD(removed->children[0]);
    if (!child)
        child = LOAD(removed->children[1]);
    struct node *parent = LOAD(removed->parent);
    replace(removed, parent, child);
    if (!LOAD(removed->is_red))
        balance_removed(child, parent);
    RELEASE(removed);
}

static NOINLINE void insert(uint64_t key)
{
    TRANSACTION
        struct node *parent = NULL;
        struct node *node = LOAD(root);
        unsigned side = 0;
        while (node) {
            uint64_t other = LOAD(node->key);
            if (other == key)
                break;
            parent = node;
            side = key > other;
            node = LOAD(node->children[side]);
        }
        if (!node) {
            node = ALLOCATE(sizeof *node);
            STORE(node->key, key);
            STORE(node->children[0], NULL);
            STORE(node->children[1], NULL);
            STORE(node->parent, parent);
            STORE(node->is_red, 1);
            if (parent)
                STORE(parent->children[side], node);
            else
                STORE(root, node);
            balance_inserted(node);
        }
    END
}

static NOINLINE void remove_key(uint64_t key)
{
    TRANSACTION
        struct node *node = LOAD(root);
        while (node) {
            uint64_t other = LOAD(node->key);
            if (other == key)
                break;
            node = LOAD(node->children[key > other]);
        }
        if (node)
            take_out(node);
    END
}

static NOINLINE bool look_up(uint64_t key)
{
    bool found;
    READ_ONLY_TRANSACTION
        struct node *node = LOAD(root);
        while (node) {
            uint64_t other = LOAD(node->key);
            if (other == key)
                break;
            node = LOAD(node->children[key > other]);
        }
        found = node;
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

/*
 * The number of black nodes on every path down, or -1 if the subtree is unbalanced or has keys outside of `low` to
 * below `high`.
 */
static int black_height(const struct node *node, const struct node *parent, uint64_t low, uint64_t high)
{
    if (!node)
        return 0;
    int left = black_height(node->children[0], node, low, node->key);
    int right = black_height(node->children[1], node, node->key + 1, high);
    bool is_good = left >= 0 && left == right && node->parent == parent && node->key >= low && node->key < high &&
                   !(node->is_red && parent && parent->is_red);
    return is_good ? left + !node->is_red : -1;
}

static bool adds_up(uint64_t operations)
{
    (void)operations;
    bool good = black_height(root, NULL, 0, KEYS) >= 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        remove_key(key);
        good = good && black_height(root, NULL, key + 1, KEYS) >= 0;
    }
    return good && !root;
}

const struct workload tree = {"red-black-tree", prepare, operate, adds_up};

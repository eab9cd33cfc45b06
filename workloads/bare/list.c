/*
 * A sorted linked list that all harts search and change at once. Each hart looks up, inserts or removes a random key,
 * `iterations` times. Each operation is one section, which is a transaction where possible.
 *
 * What to look at: the code below does not consider other harts. It has no lock for each node, no order of locks, no
 * mark on a removed node; between cx_optimistic and cx_end the hart has the list to itself. In the result: the sets are
 * large, because a search reads every node up to the key, and a change near the head conflicts with every search that
 * has passed there. No hart takes the lock as long as all nodes fit into the first-level cache, or the machine is not
 * in best-effort mode.
 */
#include "bare.h"
#include "cx.h"
#include "random.h"

#define KEYS 128

struct node {
    u64 key;
    struct node *next;
};

/* One node for each key, so that the list needs no allocator. */
static struct node nodes[KEYS] __attribute__((aligned(LINE_SIZE_BYTES)));
static struct node *head __attribute__((aligned(LINE_SIZE_BYTES)));
static cx_lock lock __attribute__((aligned(LINE_SIZE_BYTES))) = CX_FREE;

/* Counts of each hart. Written outside sections only. */
static struct {
    u64 inserted[KEYS];
    u64 removed[KEYS];
    u64 found;
    u64 disorders;
    u64 restarts;
} __attribute__((aligned(LINE_SIZE_BYTES))) notes[HARTS_MAX];

/*
 * Returns the link to the first node whose key is not below `key`, and notes nodes out of order on the way. No
 * transaction ever sees a half-finished change, not even one that is going to restart, because the first conflicting
 * access ends it.
 */
static struct node **search(u64 key, int *disorder)
{
    struct node **link = &head;
    while (*link && (*link)->key < key) {
        struct node *next = (*link)->next;
        *disorder |= next && next->key <= (*link)->key;
        link = &(*link)->next;
    }
    return link;
}

static int is_key(const struct node *node, u64 key)
{
    return node && node->key == key;
}

static NAMED int look_up(u64 key, int *disorder)
{
    cx_optimistic(&lock);
    int found = is_key(*search(key, disorder), key);
    cx_end(&lock);
    return found;
}

static NAMED int insert(u64 key, int *disorder)
{
    cx_optimistic(&lock);
    struct node **link = search(key, disorder);
    int absent = !is_key(*link, key);
    if (absent) {
        nodes[key] = (struct node){.key = key, .next = *link};
        *link = &nodes[key];
    }
    cx_end(&lock);
    return absent;
}

static NAMED int remove(u64 key, int *disorder)
{
    cx_optimistic(&lock);
    struct node **link = search(key, disorder);
    int present = is_key(*link, key);
    if (present)
        *link = (*link)->next;
    cx_end(&lock);
    return present;
}

void run(u64 index, u64 harts, u64 iterations)
{
    u64 random = random_seed(index);
    (void)harts;
    while (iterations--) {
        u64 key = random_below(&random, KEYS);
        int disorder = 0;
        switch (random_below(&random, 4)) {
        case 0:
            notes[index].inserted[key] += (u64)insert(key, &disorder);
            break;
        case 1:
            notes[index].removed[key] += (u64)remove(key, &disorder);
            break;
        default:
            notes[index].found += (u64)look_up(key, &disorder);
        }
        notes[index].disorders += (u64)disorder;
    }
    notes[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
}

/* Returns whether the list is in order and holds exactly the keys that were inserted once more than removed. */
static int is_right(u64 harts)
{
    const struct node *node = head;
    for (u64 key = 0; key < KEYS; key++) {
        u64 balance = 0;
        for (u64 index = 0; index < harts; index++)
            balance += notes[index].inserted[key] - notes[index].removed[key];
        if (balance != (u64)is_key(node, key))
            return 0;
        if (balance)
            node = node->next;
    }
    return node == 0;
}

u32 verify(u64 harts, u64 iterations)
{
    u64 inserted = 0, removed = 0, found = 0, disorders = 0, restarts = 0;
    (void)iterations;
    for (u64 index = 0; index < harts; index++) {
        for (u64 key = 0; key < KEYS; key++) {
            inserted += notes[index].inserted[key];
            removed += notes[index].removed[key];
        }
        found += notes[index].found;
        disorders += notes[index].disorders;
        restarts += notes[index].restarts;
    }
    print_counted("inserted ", inserted);
    print_counted(" removed ", removed);
    print_counted(" found ", found);
    print_counted(" out of order ", disorders);
    print_counted(" restarts ", restarts);
    print("\n");
    return !is_right(harts) || disorders != 0;
}

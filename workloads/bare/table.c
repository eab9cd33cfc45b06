/*
 * Every call of cx.h in every state of its lock ("TxLinux", SOSP 2007, tables 2 and 3). Hart 0 makes the call; before
 * it, harts 1 and 2 bring the lock into the state. Free: no hart is in a section. Transactional: one or both of them
 * are in a section as transactions. Exclusive: one holds the lock. The caller is in no transaction, or in the section
 * of another lock as a transaction.
 *
 * What to look at: one line for each case on the console. It says whether the caller's section is a transaction or
 * holds the lock; whether the caller entered at once or had to wait until the others had left; how often it restarted,
 * and the cause of the last restart; and the restarts of the two others. A transaction makes no other hart restart.
 * When the caller wants the lock of a transactional section, the contention manager chooses the winner: under
 * size-matters, timestamp and requester-stalls the caller waits, under requester-wins it does not, and os-prio compares
 * the priorities; the caller's is `priority=N`.
 */
#include "bare.h"
#include "cx.h"

#define HARTS 3
/* Number of polls after which an occupant leaves its section by itself. A call that need not wait takes less time. */
#define PATIENCE 5000

enum call { OPTIMISTIC, OPTIMISTIC_IRREVOCABLE, EXCLUSIVE_CALL, CALLS };
static const char *const call_names[CALLS] = {"optimistic", "optimistic, irrevocable", "exclusive"};

enum state { FREE, TRANSACTIONAL, TRANSACTIONAL_TWICE, EXCLUSIVE, STATES };
static const char *const state_names[STATES] = {"free", "transactional", "transactional twice", "exclusive"};

static cx_lock lock __attribute__((aligned(LINE_SIZE_BYTES))) = CX_FREE;
static cx_lock outer __attribute__((aligned(LINE_SIZE_BYTES))) = CX_FREE;

/* Read and written outside of transactions only. */
static u64 arrivals __attribute__((aligned(LINE_SIZE_BYTES)));
static u64 leave __attribute__((aligned(LINE_SIZE_BYTES)));
static struct {
    u64 is_in;
    u64 has_left;
    u64 restarts;
    u64 cause;
} __attribute__((aligned(LINE_SIZE_BYTES))) notes[HARTS];

static u64 sections __attribute__((aligned(LINE_SIZE_BYTES)));
static u64 sections_expected;
static u64 mistakes;

/*
 * A load and a store that join no set and that no restart undoes, whether or not a transaction is active. Each is one
 * piece of assembler, because the compiler must not store anything on the stack in between.
 */
static inline u64 load_outside(const u64 *word)
{
    u64 value;
    __asm__ volatile(".insn i 0x0b, 4, x0, x0, 0\n  ld %0, %1\n  .insn i 0x0b, 5, x0, x0, 0"
                     : "=&r"(value) : "m"(*word) : "memory");
    return value;
}

static inline void store_outside(u64 *word, u64 value)
{
    __asm__ volatile(".insn i 0x0b, 4, x0, x0, 0\n  sd %1, %0\n  .insn i 0x0b, 5, x0, x0, 0"
                     : "=m"(*word) : "r"(value) : "memory");
}

static void barrier(u64 *passed)
{
    *passed += HARTS;
    __atomic_fetch_add(&arrivals, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&arrivals, __ATOMIC_SEQ_CST) < *passed)
        ;
}

/* An irrevocable action without effect: it makes a transaction restart. */
static void act(void)
{
    xmetatm_csr_write(CSR_XPRIORITY, xmetatm_csr_read(CSR_XPRIORITY));
}

/* The cause of the last restart of the active transaction. In a section with the lock, of the transaction before it. */
static u64 last_cause(void)
{
    return xmetatm_cause(xmetatm_last_status(xmetatm_csr_read(CSR_XSTATUS)));
}

static NAMED void occupy(u64 index, enum state state)
{
    if (state == EXCLUSIVE)
        cx_exclusive(&lock);
    else
        cx_optimistic(&lock);
    store_outside(&notes[index].is_in, 1);
    for (u64 polls = 0; polls < PATIENCE && !load_outside(&leave); polls++)
        ;
    u64 cause = last_cause();
    store_outside(&notes[index].has_left, 1);
    cx_end(&lock);
    notes[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
    notes[index].cause = notes[index].restarts ? cause : XMETATM_CAUSE_NONE;
}

static void print_restarts(const char *who, u64 index)
{
    print_counted(who, notes[index].restarts);
    if (notes[index].restarts)
        print_counted(" cause ", notes[index].cause);
}

static NAMED void call(enum call call, int is_nested, enum state state, u64 occupants)
{
    for (u64 index = 1; index <= occupants; index++)
        while (!load_outside(&notes[index].is_in))
            ;
    if (is_nested)
        cx_optimistic(&outer);
    if (call == EXCLUSIVE_CALL)
        cx_exclusive(&lock);
    else
        cx_optimistic(&lock);
    u64 waited = load_outside(&notes[1].has_left);
    if (call == OPTIMISTIC_IRREVOCABLE)
        act();
    sections++;
    u64 holds = (u64)cx_is_exclusive();
    u64 cause = last_cause();
    mistakes += lock != (holds ? CX_TAKEN : CX_FREE);
    cx_end(&lock);
    if (is_nested)
        cx_end(&outer);
    notes[0].restarts = xmetatm_csr_read(CSR_XRESTARTS);
    notes[0].cause = cause;
    sections_expected++;
    mistakes += xgettxid() != 0 || outer != CX_FREE;
    __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
    for (u64 index = 1; index <= occupants; index++)
        while (!load_outside(&notes[index].has_left))
            ;

    print(call_names[call]);
    print(is_nested ? ", in a transaction, " : ", ");
    print(state_names[state]);
    print(holds ? ": has the lock, " : ": is a transaction, ");
    print(waited ? "waits" : "at once");
    print_restarts(", restarts ", 0);
    for (u64 index = 1; index <= occupants; index++)
        print_restarts(", occupant ", index);
    print("\n");
}

void run(u64 index, u64 harts, u64 iterations)
{
    u64 passed = 0;
    if (index >= HARTS || harts < HARTS)
        return;
    xmetatm_csr_write(CSR_XPRIORITY, index == 0 ? argument("priority", 0) : 0);
    for (u64 round = 0; round < iterations * CALLS * 2 * STATES; round++) {
        enum state state = round % STATES;
        int is_nested = round / STATES % 2 != 0;
        enum call what = round / STATES / 2 % CALLS;
        u64 occupants = state == FREE ? 0 : state == TRANSACTIONAL_TWICE ? 2 : 1;

        barrier(&passed);
        notes[index].is_in = 0;
        notes[index].has_left = 0;
        xmetatm_csr_write(CSR_XRESTARTS, 0);
        if (index == 0)
            leave = 0;
        barrier(&passed);
        if (index == 0)
            call(what, is_nested, state, occupants);
        else if (index <= occupants)
            occupy(index, state);
        /* All harts have left their sections. */
        barrier(&passed);
        if (index == 0)
            mistakes += lock != CX_FREE;
    }
}

u32 verify(u64 harts, u64 iterations)
{
    (void)iterations;
    if (harts < HARTS) {
        print("three harts are needed\n");
        return 1;
    }
    print_counted("sections ", sections);
    print_counted(" mistakes ", mistakes);
    print("\n");
    return mistakes != 0 || sections != sections_expected;
}

/*
 * A bank: every hart moves money between 128 accounts, `iterations` times, and each transfer is a transaction. Every
 * 32nd time the hart audits instead: it adds up all accounts in one transaction and must find the opening total,
 * however many transfers are under way.
 *
 * What to look at: the sum on the console, which is right although no hart ever takes a lock. In the result: how many
 * transactions restarted, for which causes, and how their number grows with --harts. In its conflicts: whether a
 * transfer or an audit, which reads all accounts, wins, and how --contention-manager changes that. With --granularity
 * line, transfers without a common account conflict as well, because eight accounts lie on a line.
 */
#include "bare.h"
#include "random.h"
#include "../include/xmetatm.h"

#define ACCOUNTS 128
#define OPENING_BALANCE 1000
#define AUDIT_EVERY 32

static u64 accounts[ACCOUNTS] __attribute__((aligned(LINE_SIZE_BYTES))) = {[0 ... ACCOUNTS - 1] = OPENING_BALANCE};

/* Counts of each hart, on lines that no other hart touches. Written outside transactions only. */
static struct {
    u64 transfers;
    u64 audits;
    u64 audits_wrong;
    u64 restarts;
} __attribute__((aligned(LINE_SIZE_BYTES))) notes[HARTS_MAX];

/* Moves the amount if the account holds that much. Returns whether it did. */
static NAMED int transfer(u64 from, u64 to, u64 amount)
{
    /*
     * The status of xbegin is ignored: after a restart for any cause the transaction tries again. That is right for a
     * transaction that is small and only reads and writes memory. Other sections need cx.h.
     */
    xbegin();
    int covered = accounts[from] >= amount;
    if (covered) {
        accounts[from] -= amount;
        accounts[to] += amount;
    }
    xend();
    return covered;
}

static u64 total(void)
{
    u64 sum = 0;
    for (u64 account = 0; account < ACCOUNTS; account++)
        sum += accounts[account];
    return sum;
}

static NAMED u64 audit(void)
{
    xbegin();
    u64 sum = total();
    xend();
    return sum;
}

void run(u64 index, u64 harts, u64 iterations)
{
    u64 random = random_seed(index);
    (void)harts;
    for (u64 count = 1; count <= iterations; count++) {
        if (count % AUDIT_EVERY == 0) {
            notes[index].audits++;
            notes[index].audits_wrong += audit() != ACCOUNTS * OPENING_BALANCE;
        } else {
            u64 from = random_below(&random, ACCOUNTS);
            u64 to = random_below(&random, ACCOUNTS);
            notes[index].transfers += (u64)transfer(from, to, random_below(&random, OPENING_BALANCE));
        }
    }
    notes[index].restarts = xmetatm_csr_read(CSR_XRESTARTS);
}

u32 verify(u64 harts, u64 iterations)
{
    u64 transfers = 0, audits = 0, audits_wrong = 0, restarts = 0;
    (void)iterations;
    for (u64 index = 0; index < harts; index++) {
        transfers += notes[index].transfers;
        audits += notes[index].audits;
        audits_wrong += notes[index].audits_wrong;
        restarts += notes[index].restarts;
    }
    print_counted("transfers ", transfers);
    print_counted(" audits ", audits);
    print_counted(" of which wrong ", audits_wrong);
    print_counted(" restarts ", restarts);
    print_counted(" sum ", total());
    print("\n");
    return total() != ACCOUNTS * OPENING_BALANCE || audits_wrong != 0;
}

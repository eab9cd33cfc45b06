/*
 * A transaction that is interrupted. Each of the `iterations` sections of a hart waits inside a transaction until the
 * timer has interrupted it. The handler runs a transaction itself and returns; then the section goes on and commits as
 * if there had been no interrupt.
 *
 * What to look at: every interrupt suspended a transaction, and all transactions survived. Half of the sections commit
 * at the first try. The other half asks for a restart after the interrupt, which shows the live-stack rule: the restart
 * goes back into a function that has returned, whose stack frame must be unchanged. It is, because the handler runs on
 * a separate stack (interrupted_entry.S). A handler that saved its registers below the interrupted stack pointer would
 * overwrite the frame.
 *
 * In best-effort mode no transaction survives an interrupt: each restarts with cause INTERRUPT, and the program says
 * so.
 */
#include "bare.h"
#include "../include/xmetatm.h"

#define CAUSE_SUPERVISOR_TIMER (1UL << 63 | 5)
#define SIE_TIMER (1UL << 5)
#define SSTATUS_SIE (1UL << 1)
/* Of the 10 MHz timebase. */
#define DELAY_TICKS 10
#define TIMER_NEVER (~0UL)

#define HANDLER_STACK_SIZE 2048
#define WORDS 16
#define FRAME_WORDS 8
#define FRAME_PATTERN 0x11feed5afe000000
#define CODE_BACK 1

#define FAILURE_FRAME 2

/* `stvec`: saves registers on the stack below the `struct hart` that sscratch points to, and calls `timer`. */
extern void interrupted_entry(void);

/* The data of a hart's handler. It lies above the handler's stack. */
struct hart {
    /* Interrupts that the handler took. The section waits for this word. */
    u64 interrupts;
    /* Interrupts that suspended a transaction. */
    u64 suspended;
} __attribute__((aligned(LINE_SIZE_BYTES)));

static struct {
    u8 handler_stack[HANDLER_STACK_SIZE];
    struct hart hart;
    /* Each section adds 2 to each word. */
    u64 words[WORDS];
    u64 committed_at_once;
    u64 went_back;
    u64 lost_to_interrupt;
} __attribute__((aligned(LINE_SIZE_BYTES))) harts[HARTS_MAX];

/* Interrupts of all harts. Handlers count them in transactions. */
static u64 interrupts __attribute__((aligned(LINE_SIZE_BYTES)));

static void timer_set(u64 time)
{
    __asm__ volatile("csrw 0x14d, %0" : : "r"(time) : "memory"); /* stimecmp */
}

static u64 time_now(void)
{
    u64 time;
    __asm__ volatile("rdtime %0" : "=r"(time) : : "memory");
    return time;
}

/* The handler. The interrupted transaction is suspended, so the handler's accesses are no part of it. */
void timer(struct hart *hart, u64 cause, u64 program_counter, u64 value)
{
    if (cause != CAUSE_SUPERVISOR_TIMER)
        trapped(cause, program_counter, value);
    timer_set(TIMER_NEVER);
    hart->suspended += xmetatm_csr_read(CSR_XTRAP) & XTRAP_PT;
    xbegin();
    interrupts++;
    /*
     * The section polls this word. A load would add the word to the section's read set, and this store would make the
     * section lose. xtest adds the word only when it has the awaited value.
     */
    hart->interrupts++;
    xend();
}

/*
 * Begins the section's transaction and returns inside it. Checks a part of its own stack frame after each restart. Not
 * inlined, so that the frame is gone when the interrupt comes.
 */
static __attribute__((noinline)) u64 section_begin(void)
{
    volatile u64 frame[FRAME_WORDS];
    for (u64 word = 0; word < FRAME_WORDS; word++)
        frame[word] = FRAME_PATTERN + word;
    u64 status = xbegin();
    for (u64 word = 0; word < FRAME_WORDS; word++)
        if (frame[word] != FRAME_PATTERN + word) {
            /* The console is out of reach in a transaction, so it ends here. */
            xend();
            print("the frame that xbegin belongs to was written over\n");
            finish(FAILURE_FRAME);
        }
    return status;
}

static void section(u64 index, int go_back)
{
    u64 *words = harts[index].words;
    const u64 *count = &harts[index].hart.interrupts;
    u64 awaited = *count + 1;
    timer_set(time_now() + DELAY_TICKS);

    u64 status = section_begin();
    u64 id = xgettxid();
    for (u64 word = 0; word < WORDS; word++)
        words[word]++;
    /* sstatus is in the checkpoint: a restart closes the door again. */
    xmetatm_csr_set(sstatus, SSTATUS_SIE);
    while (!xtest_d(count, awaited))
        ;
    xmetatm_csr_clear(sstatus, SSTATUS_SIE);
    if (go_back && status == 0)
        xrestart(xmetatm_status(XMETATM_CAUSE_EXPLICIT, CODE_BACK));
    int same = xgettxid() == id;
    for (u64 word = 0; word < WORDS; word++)
        words[word]++;
    xend();

    harts[index].committed_at_once += status == 0 && same;
    harts[index].went_back += status == xmetatm_status(XMETATM_CAUSE_EXPLICIT, CODE_BACK);
    harts[index].lost_to_interrupt += xmetatm_cause(status) == XMETATM_CAUSE_INTERRUPT;
}

void run(u64 index, u64 count, u64 iterations)
{
    (void)count;
    xmetatm_csr_write(sscratch, &harts[index].hart);
    xmetatm_csr_write(stvec, interrupted_entry);
    xmetatm_csr_set(sie, SIE_TIMER);
    for (u64 iteration = 0; iteration < iterations; iteration++)
        section(index, iteration % 2 != 0);
    xmetatm_csr_clear(sie, SIE_TIMER);
}

u32 verify(u64 count, u64 iterations)
{
    u64 suspended = 0, at_once = 0, back = 0, lost = 0;
    int right = interrupts == count * iterations;
    for (u64 index = 0; index < count; index++) {
        suspended += harts[index].hart.suspended;
        at_once += harts[index].committed_at_once;
        back += harts[index].went_back;
        lost += harts[index].lost_to_interrupt;
        right &= harts[index].hart.interrupts == iterations;
        for (u64 word = 0; word < WORDS; word++)
            right &= harts[index].words[word] == 2 * iterations;
    }
    print_counted("interrupts ", interrupts);
    print_counted(" suspended ", suspended);
    print_counted(" committed at once ", at_once);
    print_counted(" went back ", back);
    print_counted(" lost to the interrupt ", lost);
    print("\n");
    return !right || suspended != interrupts || at_once + back + lost != interrupts;
}

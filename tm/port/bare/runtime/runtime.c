/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The run-time of bare-metal programs. It runs unchanged on Concord and on `qemu-system-riscv64 -M virt`: it starts
 * every hart through the SBI, reads `iterations=N` from the device tree's bootargs, runs the program on all harts
 * between two barriers, and ends the run through the finisher. Programs with transactions are compiled with
 * NEEDS_XMETATM: on a machine without transactions they print a message and fail.
 *
 * Devices are QEMU virt's: ns16550 at 0x10000000, sifive-test finisher at 0x100000. Translation stays off.
 */
#include "bare.h"
#include "device_tree.h"
#include <xmetatm.h>

#define UART ((volatile u8 *)0x10000000)
#define UART_LINE_STATUS 5
#define UART_TRANSMITTER_EMPTY 0x20
#define FINISHER ((volatile u32 *)0x100000)
#define FINISHER_PASS 0x5555
#define FINISHER_FAIL 0x3333

#define SBI_EXTENSION_HART_STATE 0x48534d
#define SBI_HART_START 0
#define SBI_HART_STATUS 2

#define FAILURE_NO_HART 100
#define FAILURE_TRAP 101
#define FAILURE_BOOTARGS 102
#define FAILURE_NO_EXTENSION 103

/* The depth of the nodes below the root. */
#define DEPTH_TOP 2

extern void secondary_start(void);
extern u64 iterations_default;

static u64 harts;
static u64 hart_numbers[HARTS_MAX];
static u64 iterations;
static const u8 *device_tree;
static const u8 *bootargs;

struct sbi_result sbi_call(u64 extension, u64 function, u64 argument0, u64 argument1, u64 argument2)
{
    register u64 a0 __asm__("a0") = argument0;
    register u64 a1 __asm__("a1") = argument1;
    register u64 a2 __asm__("a2") = argument2;
    register u64 a6 __asm__("a6") = function;
    register u64 a7 __asm__("a7") = extension;
    __asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
    return (struct sbi_result){(long)a0, (long)a1};
}

static void print_character(char character)
{
    while (!(UART[UART_LINE_STATUS] & UART_TRANSMITTER_EMPTY))
        ;
    UART[0] = (u8)character;
}

void print(const char *text)
{
    while (*text)
        print_character(*text++);
}

void print_hex(u64 value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        print_character("0123456789abcdef"[value >> shift & 15]);
}

void print_decimal(u64 value)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        print_character(digits[--count]);
}

void print_counted(const char *text, u64 value)
{
    print(text);
    print_decimal(value);
}

void finish(u32 code)
{
    __asm__ volatile("fence" ::: "memory");
    *FINISHER = code ? FINISHER_FAIL | code << 16 : FINISHER_PASS;
    for (;;)
        __asm__ volatile("wfi");
}

void trapped(u64 cause, u64 program_counter, u64 value)
{
    print("trap ");
    print_hex(cause);
    print(" at ");
    print_hex(program_counter);
    print(" value ");
    print_hex(value);
    print("\n");
    finish(FAILURE_TRAP);
}

/*
 * No hart leaves before all have arrived. The last to arrive resets the count and then opens the next phase, so that a
 * fast hart that arrives again waits for a phase that is not open yet.
 */
static void barrier(void)
{
    static u64 arrived;
    static u64 phase;
    u64 mine = __atomic_load_n(&phase, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == harts) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&phase, mine + 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == mine)
            ;
    }
}

const char *argument_text(const char *key)
{
    const u8 *text = bootargs;
    while (text && *text) {
        u64 matched = 0;
        while (key[matched] && text[matched] == (u8)key[matched])
            matched++;
        if (!key[matched] && text[matched] == '=')
            return (const char *)text + matched + 1;
        while (*text && *text != ' ')
            text++;
        while (*text == ' ')
            text++;
    }
    return 0;
}

u64 argument(const char *key, u64 otherwise)
{
    const char *first = argument_text(key);
    const char *digit = first;
    u64 value = 0;
    if (!first)
        return otherwise;
    while (*digit >= '0' && *digit <= '9')
        value = value * 10 + (u64)(*digit++ - '0');
    if (digit == first || (*digit && *digit != ' ')) {
        print("bootargs: ");
        print(key);
        print("= needs a decimal number\n");
        finish(FAILURE_BOOTARGS);
    }
    return value;
}

int machine_has_extension(const char *name)
{
    return device_tree_has_extension(device_tree, name);
}

u64 timebase_hertz(void)
{
    u32 length_bytes;
    const u8 *frequency = device_tree_property(device_tree, DEPTH_TOP, "cpus", "timebase-frequency", &length_bytes);
    return frequency ? (u64)frequency[0] << 24 | (u64)frequency[1] << 16 | (u64)frequency[2] << 8 | frequency[3] : 0;
}

u64 hart_number(u64 index)
{
    return hart_numbers[index];
}

/* start.S enters here on every hart but the boot hart. */
void secondary(u64 index)
{
    barrier();
    run(index, harts, iterations);
    barrier();
    for (;;)
        __asm__ volatile("wfi");
}

/* Starts every hart the SBI knows but the caller, and counts them. */
static void start_harts(u64 boot_hart)
{
    u8 exists[HARTS_MAX];
    harts = 1;
    for (u64 hart = 0; hart < HARTS_MAX; hart++) {
        exists[hart] = sbi_call(SBI_EXTENSION_HART_STATE, SBI_HART_STATUS, hart, 0, 0).error == 0;
        harts += exists[hart] && hart != boot_hart;
    }
    /* `harts` is final before the first hart that could reach the barrier. */
    u64 index = 1;
    hart_numbers[0] = boot_hart;
    for (u64 hart = 0; hart < HARTS_MAX; hart++) {
        if (!exists[hart] || hart == boot_hart)
            continue;
        hart_numbers[index] = hart;
        if (sbi_call(SBI_EXTENSION_HART_STATE, SBI_HART_START, hart, (u64)secondary_start, index++).error) {
            print_counted("hart ", hart);
            print(" does not start\n");
            finish(FAILURE_NO_HART);
        }
    }
}

/* start.S enters here on the boot hart. */
void boot(u64 hart, const u8 *tree)
{
    u32 length_bytes;
    device_tree = tree;
    bootargs = device_tree_property(tree, DEPTH_TOP, "chosen", "bootargs", &length_bytes);
    iterations = argument("iterations", iterations_default);
#ifdef NEEDS_XMETATM
    if (!machine_has_extension(XMETATM_EXTENSION)) {
        print("this machine has no transactions: its device tree does not name " XMETATM_EXTENSION "\n");
        finish(FAILURE_NO_EXTENSION);
    }
#endif
    start_harts(hart);
    barrier();
    run(0, harts, iterations);
    barrier();
    u32 code = verify(harts, iterations);
    print_counted("harts ", harts);
    print_counted(" iterations ", iterations);
    print(code ? " failed\n" : " passed\n");
    finish(code);
}

/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface of bare-metal programs to their run-time. A program defines `run` and `verify`; runtime.c has the rest.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

/* Programs with the library have its number of harts. */
#ifdef TM_BARE_HARTS_MAX
#define HARTS_MAX TM_BARE_HARTS_MAX
#else
#define HARTS_MAX 64
#endif
#define LINE_SIZE_BYTES 64

/* Marks a function that profiles should name separately from its caller. */
#define NAMED __attribute__((noinline, noclone))

/*
 * The run-time calls this once on every hart, between two barriers. `index` counts the running harts from 0; it is not
 * the hart number.
 */
void run(u64 index, u64 harts, u64 iterations);

/* The run-time calls this on the boot hart after all harts have run. Returns 0, or the failure code of the run. */
u32 verify(u64 harts, u64 iterations);

void print(const char *text);
void print_hex(u64 value);
void print_decimal(u64 value);
/* Prints the text, then the number in decimal. */
void print_counted(const char *text, u64 value);

/*
 * Returns N of the word `key=N` in the bootargs, or `otherwise` if there is none. A value that is no number ends the
 * run.
 */
u64 argument(const char *key, u64 otherwise);

/* Returns the text after `key=` in the bootargs, which ends with a space or a zero. Null if there is no such word. */
const char *argument_text(const char *key);

/* Returns whether the device tree names an extension of the harts. */
int machine_has_extension(const char *name);

/* The frequency of the `time` register according to the device tree, or 0. */
u64 timebase_hertz(void);

/* The number by which the SBI knows the hart of this index. */
u64 hart_number(u64 index);

/* Reports an unexpected trap and ends the run. start.S calls it unless the program has its own trap vector. */
void trapped(u64 cause, u64 program_counter, u64 value) __attribute__((noreturn));

/* Ends the run through the finisher: 0 is success. */
void finish(u32 code) __attribute__((noreturn));

struct sbi_result {
    long error;
    long value;
};
struct sbi_result sbi_call(u64 extension, u64 function, u64 argument0, u64 argument1, u64 argument2);

#define SBI_EXTENSION_TIME 0x54494d45
#define SBI_EXTENSION_IPI 0x735049
#define SBI_EXTENSION_RESET 0x53525354
#define SBI_RESET_SHUTDOWN 0
#define SBI_RESET_COLD_REBOOT 1

#ifdef __cplusplus
}
#endif

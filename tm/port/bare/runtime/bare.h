/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the bare-metal programs share. A program defines `run` and `verify`; everything else is in runtime.c. */
#pragma once

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#define HARTS_MAX 64
#define LINE_SIZE_BYTES 64

/* For a function that the profiles of a run's result shall name, and not the one that calls it. */
#define NAMED __attribute__((noinline, noclone))

/*
 * Called once on every hart between two barriers. `index` counts the running harts from 0 and is not the hart number.
 */
void run(u64 index, u64 harts, u64 iterations);

/* Called on the boot hart after all have run: 0, or the failure code that the run ends with. */
u32 verify(u64 harts, u64 iterations);

void print(const char *text);
void print_hex(u64 value);
void print_decimal(u64 value);
/* The text, and the number in decimal behind it. */
void print_counted(const char *text, u64 value);

/* The number N of `key=N`, a word of its own in the bootargs, or `otherwise` when there is none. Another value ends the run. */
u64 argument(const char *key, u64 otherwise);

/* What follows `key=`, a word of its own in the bootargs: it ends with a space or a zero. Null when there is none. */
const char *argument_text(const char *key);

/* Whether the device tree says that the harts have an extension. */
int machine_has_extension(const char *name);

/* How fast the `time` register counts, as the device tree says; 0 where it does not. */
u64 timebase_hertz(void);

/* The number by which the SBI knows the hart of this index. */
u64 hart_number(u64 index);

/* Reports a trap that nobody expected, and ends the run. start.S comes here unless the program has a trap vector of its own. */
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

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * concord-hint: sends a hint to the simulated machine from a shell script.
 *
 * Each subcommand executes one instruction of the architecture's HINT space, which any other RISC-V
 * processor ignores. The program is freestanding and static, so that it starts in a few hundred
 * instructions and the hint takes effect close to its place in the script.
 */
#include "concord.h"

#define SYS_write 64
#define SYS_exit_group 94

static long system_call(long number, long a, long b, long c)
{
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a7 __asm__("a7") = number;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
	return a0;
}

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static int usage(void)
{
	static const char text[] =
		"usage: concord-hint gear functional|timed\n"
		"       concord-hint region begin|end\n"
		"       concord-hint marker NUMBER\n"
		"       concord-hint fail CODE    (0 to 255)\n";

	system_call(SYS_write, 2, (long)text, sizeof text - 1);
	return 2;
}

/* Reads a decimal number of at most `maximum`. Returns 0 if `text` is not such a number. */
static int parse(const char *text, unsigned long maximum, unsigned long *number)
{
	unsigned long value = 0;

	if (!*text)
		return 0;
	for (; *text; text++) {
		unsigned long digit = (unsigned long)(*text - '0');

		if (digit > 9 || value > (maximum - digit) / 10)
			return 0;
		value = value * 10 + digit;
	}
	*number = value;
	return 1;
}

static int run(long count, char **words)
{
	unsigned long number;

	if (count != 3)
		return usage();
	if (equal(words[1], "gear") && equal(words[2], "functional"))
		concord_hint(CONCORD_HINT_GEAR_FUNCTIONAL, 0);
	else if (equal(words[1], "gear") && equal(words[2], "timed"))
		concord_hint(CONCORD_HINT_GEAR_TIMED, 0);
	else if (equal(words[1], "region") && equal(words[2], "begin"))
		concord_hint(CONCORD_HINT_REGION_BEGIN, 0);
	else if (equal(words[1], "region") && equal(words[2], "end"))
		concord_hint(CONCORD_HINT_REGION_END, 0);
	else if (equal(words[1], "marker") && parse(words[2], ~0ul, &number))
		concord_hint(CONCORD_HINT_MARKER, number);
	else if (equal(words[1], "fail") && parse(words[2], 255, &number))
		concord_hint(CONCORD_HINT_FAIL, number);
	else
		return usage();
	return 0;
}

/* The kernel puts argc at the stack pointer and argv after it. */
__attribute__((used)) void start(long *stack)
{
	system_call(SYS_exit_group, run(stack[0], (char **)(stack + 1)), 0, 0);
}

__asm__(".globl _start\n"
	"_start:\n"
	".option push\n"
	".option norelax\n"
	"	lla gp, __global_pointer$\n"
	".option pop\n"
	"	mv a0, sp\n"
	"	andi sp, sp, -16\n"
	"	call start\n");

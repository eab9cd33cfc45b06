/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Generated from sim/abi (CONCORD_UPDATE=1 cargo test -p concord-abi); do not edit. */
/*
 * Xmetatm, hardware transactional memory: docs/xmetatm.md is the specification. For C (GCC and Clang, C99 and
 * later, freestanding) and for assembler sources that pass the C preprocessor. RV64 only.
 */
#ifndef XMETATM_H
#define XMETATM_H

/* As the device tree's riscv,isa-extensions says it. */
#define XMETATM_EXTENSION "xmetatm"

/* Control and status registers. */
#define CSR_XPRIORITY 0x5c0
#define CSR_XRESTARTS 0x5c1
#define CSR_XBACKOFF 0x5c2
#define CSR_XCONTEXT 0x5c3
#define CSR_XTRAP 0x5c4
#define CSR_XENABLE 0x5c5
#define CSR_XSTATUS 0xcc0
#define CSR_XSIZE 0xcc1
#define CSR_XBEGINTIME 0xcc2
#define CSR_XSTACK 0xdc0
#define CSR_XFRAMES 0xdc1
#define CSR_XCONFLICT 0xdc2
#define CSR_XWINNER 0xdc3

/* Causes: bits 7 to 0 of the status word that xbegin returns, and of the operand of xrestart. */
#define XMETATM_CAUSE_NONE 0
#define XMETATM_CAUSE_CONFLICT 1
#define XMETATM_CAUSE_NONTRANSACTIONAL 2
#define XMETATM_CAUSE_EXPLICIT 3
#define XMETATM_CAUSE_NEED_EXCLUSIVE 4
#define XMETATM_CAUSE_CAPACITY 5
#define XMETATM_CAUSE_INTERRUPT 6
#define XMETATM_CAUSE_DEPTH 7

/* The status word: the cause, and above it eight bits of the program's own, which xrestart takes. */
#define XMETATM_CAUSE_MASK 0xff
#define XMETATM_CODE_SHIFT 8
#define XMETATM_CODE_MASK 0xff00

/* What xcas returns. */
#define XCAS_SWAPPED 0
#define XCAS_DIFFERED 1
#define XCAS_REFUSED 2

/* Fields of xstatus. */
#define XSTATUS_ACTIVE 1
#define XSTATUS_SUSPENDED 2
#define XSTATUS_STALLED 4
#define XSTATUS_OVERFLOWED 8
#define XSTATUS_DOOMED 16
#define XSTATUS_DEPTH_SHIFT 8
#define XSTATUS_DEPTH_MASK 0xff00
#define XSTATUS_STATUS_SHIFT 16
#define XSTATUS_STATUS_MASK 0xffff0000

/* Fields of xtrap and xenable. */
#define XTRAP_PT 1
#define XENABLE_U 1

/* Limits. */
#define XMETATM_DEPTH_MAX 255
#define XMETATM_FRAMES_MAX 64
#define XMETATM_FRAMES_USER_MAX 32
#define XMETATM_PRIORITY_MAX 255
#define XMETATM_RESTARTS_MAX 65535

#ifdef __ASSEMBLER__

/* xtest_d is the specification's xtest.d, and so on; rs1 holds the address. */
.macro xbegin rd
	.insn i 0x0b, 0, \rd, x0, 0
.endm
.macro xend
	.insn i 0x0b, 1, x0, x0, 0
.endm
.macro xrestart rs1
	.insn i 0x0b, 2, x0, \rs1, 0
.endm
.macro xgettxid rd
	.insn i 0x0b, 3, \rd, x0, 0
.endm
.macro xpush
	.insn i 0x0b, 4, x0, x0, 0
.endm
.macro xpop
	.insn i 0x0b, 5, x0, x0, 0
.endm
.macro xdrop
	.insn i 0x0b, 6, x0, x0, 0
.endm
.macro xtest_b rd, rs1, rs2
	.insn r 0x2b, 0, 0, \rd, \rs1, \rs2
.endm
.macro xtest_h rd, rs1, rs2
	.insn r 0x2b, 1, 0, \rd, \rs1, \rs2
.endm
.macro xtest_w rd, rs1, rs2
	.insn r 0x2b, 2, 0, \rd, \rs1, \rs2
.endm
.macro xtest_d rd, rs1, rs2
	.insn r 0x2b, 3, 0, \rd, \rs1, \rs2
.endm
.macro xcas_b rd, rs1, rs2, rs3
	.insn r4 0x5b, 0, 0, \rd, \rs1, \rs2, \rs3
.endm
.macro xcas_h rd, rs1, rs2, rs3
	.insn r4 0x5b, 1, 0, \rd, \rs1, \rs2, \rs3
.endm
.macro xcas_w rd, rs1, rs2, rs3
	.insn r4 0x5b, 2, 0, \rd, \rs1, \rs2, \rs3
.endm
.macro xcas_d rd, rs1, rs2, rs3
	.insn r4 0x5b, 3, 0, \rd, \rs1, \rs2, \rs3
.endm

#else /* C */

/*
 * xbegin returns once more at each restart. The compiler need not know: the hart restores every register and rolls memory
 * back, so for the program the returns before the last never happened. This holds for local variables in registers and on
 * the stack, hence no `volatile`, and a counter of tries in one does not count.
 *
 * It does not hold for what runs between xpush and xpop, because what is stored there stays, in stack frames as well. Only
 * call functions there, on another stack (docs/xmetatm.md has a routine for it).
 *
 * All are inlined even without optimization: a function that had executed xbegin and returned would leave its frame to be
 * overwritten.
 */
#define XMETATM_FUNCTION static __inline__ __attribute__((__always_inline__, __unused__))

/* Begins a transaction, or nests. 0, or after a restart the status word. */
XMETATM_FUNCTION unsigned long xbegin(void)
{
	unsigned long value;

	__asm__ volatile(".insn i 0x0b, 0, %0, x0, 0" : "=r"(value) : : "memory");
	return value;
}

/* Leaves one level; at the outermost, commits. */
XMETATM_FUNCTION void xend(void)
{
	__asm__ volatile(".insn i 0x0b, 1, x0, x0, 0" : : : "memory");
}

/* Restarts the transaction. The argument is a cause and a code: see xmetatm_status. */
XMETATM_FUNCTION __attribute__((__noreturn__)) void xrestart(unsigned long status)
{
	__asm__ volatile(".insn i 0x0b, 2, x0, %0, 0" : : "r"(status) : "memory");
	__builtin_unreachable();
}

/* The id of the active transaction, or 0. */
XMETATM_FUNCTION unsigned long xgettxid(void)
{
	unsigned long value;

	__asm__ volatile(".insn i 0x0b, 3, %0, x0, 0" : "=r"(value) : : "memory");
	return value;
}

/* Suspends the active transaction, or pushes an empty frame. */
XMETATM_FUNCTION void xpush(void)
{
	__asm__ volatile(".insn i 0x0b, 4, x0, x0, 0" : : : "memory");
}

/* Resumes what the matching xpush suspended; goes back to its xbegin if it has lost meanwhile. */
XMETATM_FUNCTION void xpop(void)
{
	__asm__ volatile(".insn i 0x0b, 5, x0, x0, 0" : : : "memory");
}

/* Ends what the matching xpush suspended: it is rolled back and does not restart. S-mode only. */
XMETATM_FUNCTION void xdrop(void)
{
	__asm__ volatile(".insn i 0x0b, 6, x0, x0, 0" : : : "memory");
}

/* 1 when memory at the address equals the low bits of the value, and only then it joins the read set. */
XMETATM_FUNCTION unsigned long xtest_b(const volatile void *address, unsigned long value)
{
	unsigned long equal;

	__asm__ volatile(".insn r 0x2b, 0, 0, %0, %1, %2"
			 : "=r"(equal) : "r"(address), "r"(value) : "memory");
	return equal;
}

XMETATM_FUNCTION unsigned long xtest_h(const volatile void *address, unsigned long value)
{
	unsigned long equal;

	__asm__ volatile(".insn r 0x2b, 1, 0, %0, %1, %2"
			 : "=r"(equal) : "r"(address), "r"(value) : "memory");
	return equal;
}

XMETATM_FUNCTION unsigned long xtest_w(const volatile void *address, unsigned long value)
{
	unsigned long equal;

	__asm__ volatile(".insn r 0x2b, 2, 0, %0, %1, %2"
			 : "=r"(equal) : "r"(address), "r"(value) : "memory");
	return equal;
}

XMETATM_FUNCTION unsigned long xtest_d(const volatile void *address, unsigned long value)
{
	unsigned long equal;

	__asm__ volatile(".insn r 0x2b, 3, 0, %0, %1, %2"
			 : "=r"(equal) : "r"(address), "r"(value) : "memory");
	return equal;
}

/* XCAS_SWAPPED, XCAS_DIFFERED, or outside a transaction XCAS_REFUSED. */
XMETATM_FUNCTION unsigned long xcas_b(volatile void *address, unsigned long expected,
				      unsigned long value)
{
	unsigned long result;

	__asm__ volatile(".insn r4 0x5b, 0, 0, %0, %1, %2, %3"
			 : "=r"(result) : "r"(address), "r"(expected), "r"(value) : "memory");
	return result;
}

XMETATM_FUNCTION unsigned long xcas_h(volatile void *address, unsigned long expected,
				      unsigned long value)
{
	unsigned long result;

	__asm__ volatile(".insn r4 0x5b, 1, 0, %0, %1, %2, %3"
			 : "=r"(result) : "r"(address), "r"(expected), "r"(value) : "memory");
	return result;
}

XMETATM_FUNCTION unsigned long xcas_w(volatile void *address, unsigned long expected,
				      unsigned long value)
{
	unsigned long result;

	__asm__ volatile(".insn r4 0x5b, 2, 0, %0, %1, %2, %3"
			 : "=r"(result) : "r"(address), "r"(expected), "r"(value) : "memory");
	return result;
}

XMETATM_FUNCTION unsigned long xcas_d(volatile void *address, unsigned long expected,
				      unsigned long value)
{
	unsigned long result;

	__asm__ volatile(".insn r4 0x5b, 3, 0, %0, %1, %2, %3"
			 : "=r"(result) : "r"(address), "r"(expected), "r"(value) : "memory");
	return result;
}

/* The cause in a status word. */
XMETATM_FUNCTION unsigned long xmetatm_cause(unsigned long status)
{
	return status & XMETATM_CAUSE_MASK;
}

/* The code that xrestart gave, in a status word. */
XMETATM_FUNCTION unsigned long xmetatm_code(unsigned long status)
{
	return (status & XMETATM_CODE_MASK) >> XMETATM_CODE_SHIFT;
}

/* What xrestart takes: XMETATM_CAUSE_EXPLICIT or XMETATM_CAUSE_NEED_EXCLUSIVE, and a code of 0 to 255. */
XMETATM_FUNCTION unsigned long xmetatm_status(unsigned long cause, unsigned long code)
{
	return (cause & XMETATM_CAUSE_MASK) | ((code << XMETATM_CODE_SHIFT) & XMETATM_CODE_MASK);
}

/* The depth in xstatus. */
XMETATM_FUNCTION unsigned long xmetatm_depth(unsigned long xstatus)
{
	return (xstatus & XSTATUS_DEPTH_MASK) >> XSTATUS_DEPTH_SHIFT;
}

/* The last status word in xstatus. */
XMETATM_FUNCTION unsigned long xmetatm_last_status(unsigned long xstatus)
{
	return (xstatus & XSTATUS_STATUS_MASK) >> XSTATUS_STATUS_SHIFT;
}

/* Registers by number: xmetatm_csr_read(CSR_XSTATUS). */
#define XMETATM_STRING_(text) #text
#define XMETATM_STRING(text) XMETATM_STRING_(text)
#define xmetatm_csr_read(csr) (__extension__ ({ \
	unsigned long xmetatm_value_; \
	__asm__ volatile("csrr %0, " XMETATM_STRING(csr) : "=r"(xmetatm_value_) : : "memory"); \
	xmetatm_value_; \
}))
#define xmetatm_csr_operation_(operation, csr, value) \
	__asm__ volatile(operation " " XMETATM_STRING(csr) ", %0" : : "rK"((unsigned long)(value)) : "memory")
#define xmetatm_csr_write(csr, value) xmetatm_csr_operation_("csrw", csr, value)
#define xmetatm_csr_set(csr, bits) xmetatm_csr_operation_("csrs", csr, bits)
#define xmetatm_csr_clear(csr, bits) xmetatm_csr_operation_("csrc", csr, bits)

#endif

#endif

/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Generated from sim/abi (CONCORD_UPDATE=1 cargo test -p concord-abi); do not edit. */
#ifndef CONCORD_H
#define CONCORD_H

/* Hint codes: slti x0, argument, code. */
#define CONCORD_HINT_GEAR_FUNCTIONAL 1
#define CONCORD_HINT_GEAR_TIMED 2
#define CONCORD_HINT_MARKER 3
#define CONCORD_HINT_REGION_BEGIN 4
#define CONCORD_HINT_REGION_END 5
#define CONCORD_HINT_FAIL 6
#define CONCORD_HINT_LOCK_SPIN_BEGIN 16
#define CONCORD_HINT_LOCK_TEST 19
#define CONCORD_HINT_LOCK_TEST_AND_SET 20
#define CONCORD_HINT_LOCK_SPIN_ABANDONED 21
#define CONCORD_HINT_SECTION_LOCKED 32
#define CONCORD_HINT_SECTION_TRANSACTIONAL 40
#define CONCORD_HINT_SECTION_END 48

/* Kinds of sections, to be added to the codes of their begins; ra is the call site there. */
#define CONCORD_SECTION_SPIN 0
#define CONCORD_SECTION_RAW 1
#define CONCORD_SECTION_READ 2
#define CONCORD_SECTION_WRITE 3
#define CONCORD_SECTION_SEQLOCK 4

#ifdef __ASSEMBLER__
.macro concord_hint code, argument=x0
	slti x0, \argument, \code
.endm
#else
#define concord_hint(code, argument) \
	__asm__ volatile("slti x0, %0, %1" : : "r"((unsigned long)(argument)), "i"(code) : "memory")
#endif

#endif

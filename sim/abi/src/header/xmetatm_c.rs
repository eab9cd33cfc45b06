//! `xmetatm.h`: Xmetatm for C and for the assembler, without any other header.

use super::xmetatm_constants::groups;
use crate::htm::{Control, EXTENSION, OPCODE_CUSTOM_0, OPCODE_CUSTOM_1, OPCODE_CUSTOM_2, Width};
use std::fmt::Write;

/// The text of `workloads/include/xmetatm.h`.
pub fn text() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n\
         /* Generated from sim/abi (CONCORD_UPDATE=1 cargo test -p concord-abi); do not edit. */\n\
         /*\n\
         \x20* Xmetatm, hardware transactional memory: docs/xmetatm.md is the specification. For C (GCC and Clang, C99 and\n\
         \x20* later, freestanding) and for assembler sources that pass the C preprocessor. RV64 only.\n\
         \x20*/\n\
         #ifndef XMETATM_H\n#define XMETATM_H\n\n",
    );
    let _ = writeln!(text, "/* As the device tree's riscv,isa-extensions says it. */");
    let _ = writeln!(text, "#define XMETATM_EXTENSION \"{EXTENSION}\"");
    for group in groups() {
        let _ = writeln!(text, "\n/* {} */", group.about);
        for (name, value) in group.constants {
            let _ = writeln!(text, "#define {name} {}", number(&name, value));
        }
    }
    text.push_str("\n#ifdef __ASSEMBLER__\n\n");
    text.push_str(&assembler());
    text.push_str("\n#else /* C */\n\n");
    text.push_str(&functions());
    text.push_str(STATUS_AND_REGISTERS);
    text.push_str("\n#endif\n\n#endif\n");
    text
}

/// Register numbers and masks are written in hexadecimal, other numbers in decimal.
fn number(name: &str, value: u64) -> String {
    let hexadecimal = name.starts_with("CSR_") || name.ends_with("_MASK");
    if hexadecimal { format!("{value:#x}") } else { value.to_string() }
}

/// The operands of a custom-0 instruction for `.insn i`. `rd` and `rs1` are the operands' texts.
fn control_operands(control: Control, rd: &str, rs1: &str) -> String {
    let rd = if control.has_destination() { rd } else { "x0" };
    let rs1 = if control.has_source() { rs1 } else { "x0" };
    format!("{OPCODE_CUSTOM_0:#04x}, {}, {rd}, {rs1}, 0", control as u32)
}

fn assembler() -> String {
    let mut text = String::from("/* xtest_d is the specification's xtest.d, and so on; rs1 holds the address. */\n");
    for (control, name) in Control::ALL {
        let parameter = match (control.has_destination(), control.has_source()) {
            (true, _) => " rd",
            (_, true) => " rs1",
            _ => "",
        };
        let operands = control_operands(control, "\\rd", "\\rs1");
        let _ = writeln!(text, ".macro {name}{parameter}\n\t.insn i {operands}\n.endm");
    }
    for (width, suffix) in Width::ALL {
        let _ = writeln!(
            text,
            ".macro xtest_{suffix} rd, rs1, rs2\n\t.insn r {OPCODE_CUSTOM_1:#04x}, {}, 0, \\rd, \\rs1, \\rs2\n.endm",
            width as u32
        );
    }
    for (width, suffix) in Width::ALL {
        let _ = writeln!(
            text,
            ".macro xcas_{suffix} rd, rs1, rs2, rs3\n\
             \t.insn r4 {OPCODE_CUSTOM_2:#04x}, {}, 0, \\rd, \\rs1, \\rs2, \\rs3\n.endm",
            width as u32
        );
    }
    text
}

/// The instructions as C functions.
fn functions() -> String {
    let mut text = String::from(PROMISES);
    for (control, name) in Control::ALL {
        let operands = control_operands(control, "%0", "%0");
        let body = match control {
            Control::Begin | Control::TransactionId => format!(
                "XMETATM_FUNCTION unsigned long {name}(void)\n{{\n\tunsigned long value;\n\n\
                 \t__asm__ volatile(\".insn i {operands}\" : \"=r\"(value) : : \"memory\");\n\treturn value;\n}}"
            ),
            Control::Restart => format!(
                "XMETATM_FUNCTION __attribute__((__noreturn__)) void {name}(unsigned long status)\n{{\n\
                 \t__asm__ volatile(\".insn i {operands}\" : : \"r\"(status) : \"memory\");\n\
                 \t__builtin_unreachable();\n}}"
            ),
            Control::End | Control::Push | Control::Pop | Control::Drop => format!(
                "XMETATM_FUNCTION void {name}(void)\n{{\n\
                 \t__asm__ volatile(\".insn i {operands}\" : : : \"memory\");\n}}"
            ),
        };
        let _ = writeln!(text, "\n/* {} */\n{body}", about(control));
    }
    text.push_str(
        "\n/* 1 when memory at the address equals the low bits of the value, and only then it joins the read set. */\n",
    );
    for (width, suffix) in Width::ALL {
        let _ = writeln!(
            text,
            "XMETATM_FUNCTION unsigned long xtest_{suffix}(const volatile void *address, unsigned long value)\n{{\n\
             \tunsigned long equal;\n\n\
             \t__asm__ volatile(\".insn r {OPCODE_CUSTOM_1:#04x}, {}, 0, %0, %1, %2\"\n\
             \t\t\t : \"=r\"(equal) : \"r\"(address), \"r\"(value) : \"memory\");\n\treturn equal;\n}}\n",
            width as u32
        );
    }
    text.push_str("/* XCAS_SWAPPED, XCAS_DIFFERED, or outside a transaction XCAS_REFUSED. */\n");
    for (width, suffix) in Width::ALL {
        let _ = writeln!(
            text,
            "XMETATM_FUNCTION unsigned long xcas_{suffix}(volatile void *address, unsigned long expected,\n\
             \t\t\t\t      unsigned long value)\n{{\n\tunsigned long result;\n\n\
             \t__asm__ volatile(\".insn r4 {OPCODE_CUSTOM_2:#04x}, {}, 0, %0, %1, %2, %3\"\n\
             \t\t\t : \"=r\"(result) : \"r\"(address), \"r\"(expected), \"r\"(value) : \"memory\");\n\
             \treturn result;\n}}\n",
            width as u32
        );
    }
    text
}

/// The text of a function's comment.
pub(super) fn about(control: Control) -> &'static str {
    match control {
        Control::Begin => "Begins a transaction, or nests. 0, or after a restart the status word.",
        Control::End => "Leaves one level; at the outermost, commits.",
        Control::Restart => "Restarts the transaction. The argument is a cause and a code: see xmetatm_status.",
        Control::TransactionId => "The id of the active transaction, or 0.",
        Control::Push => "Suspends the active transaction, or pushes an empty frame.",
        Control::Drop => "Ends what the matching xpush suspended: it is rolled back and does not restart. S-mode only.",
        Control::Pop => "Resumes what the matching xpush suspended; goes back to its xbegin if it has lost meanwhile.",
    }
}

/// The head of the C functions: why the compiler may treat them as ordinary functions, and where it may not.
const PROMISES: &str = "\
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
";

/// Accessors of the status word and of registers.
const STATUS_AND_REGISTERS: &str = "\
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
#define xmetatm_csr_read(csr) (__extension__ ({ \\
	unsigned long xmetatm_value_; \\
	__asm__ volatile(\"csrr %0, \" XMETATM_STRING(csr) : \"=r\"(xmetatm_value_) : : \"memory\"); \\
	xmetatm_value_; \\
}))
#define xmetatm_csr_operation_(operation, csr, value) \\
	__asm__ volatile(operation \" \" XMETATM_STRING(csr) \", %0\" : : \"rK\"((unsigned long)(value)) : \"memory\")
#define xmetatm_csr_write(csr, value) xmetatm_csr_operation_(\"csrw\", csr, value)
#define xmetatm_csr_set(csr, bits) xmetatm_csr_operation_(\"csrs\", csr, bits)
#define xmetatm_csr_clear(csr, bits) xmetatm_csr_operation_(\"csrc\", csr, bits)
";

//! `xmetatm.rs`: Xmetatm for guests in Rust, a module without dependencies.

use super::xmetatm_c::about;
use super::xmetatm_constants::{REGISTER_PREFIX, groups};
use crate::htm::{Control, EXTENSION, OPCODE_CUSTOM_0, OPCODE_CUSTOM_1, OPCODE_CUSTOM_2, Width};
use std::fmt::Write;

/// The text of `workloads/include/xmetatm.rs`.
pub fn text() -> String {
    let mut text = String::from(HEAD);
    let _ = writeln!(text, "/// As the device tree's `riscv,isa-extensions` says it.");
    let _ = writeln!(text, "pub const EXTENSION: &str = \"{EXTENSION}\";");
    for group in groups() {
        let _ = writeln!(text, "\n// {}", group.about);
        for (name, value) in group.constants {
            let _ = if name.starts_with(REGISTER_PREFIX) {
                writeln!(text, "pub const {name}: u16 = {value:#x};")
            } else {
                writeln!(text, "pub const {name}: u64 = {value:#x};")
            };
        }
    }
    text.push_str(STATUS);
    text.push_str("\n#[cfg(target_arch = \"riscv64\")]\nmod instructions {\n    use core::arch::asm;\n");
    for (control, name) in Control::ALL {
        text.push_str(&control_function(control, name));
    }
    for (width, suffix) in Width::ALL {
        text.push_str(&memory_functions(width, suffix));
    }
    text.push_str(REGISTERS);
    text.push_str("}\n#[cfg(target_arch = \"riscv64\")]\npub use instructions::*;\n");
    text
}

fn control_function(control: Control, name: &str) -> String {
    let rd = if control.has_destination() { "{0}" } else { "x0" };
    let rs1 = if control.has_source() { "{0}" } else { "x0" };
    let instruction = format!("\".insn i {OPCODE_CUSTOM_0:#04x}, {}, {rd}, {rs1}, 0\"", control as u32);
    let (signature, body) = match control {
        Control::Begin | Control::TransactionId => (
            "() -> u64",
            format!(
                "let value;\n        // SAFETY: as the caller says.\n        unsafe {{ asm!({instruction}, out(reg) value) }};\n        value"
            ),
        ),
        Control::Restart => (
            "(status: u64) -> !",
            format!(
                "// SAFETY: as the caller says.\n        unsafe {{ asm!({instruction}, in(reg) status, options(noreturn)) }}"
            ),
        ),
        Control::End | Control::Push | Control::Pop | Control::Drop => {
            ("()", format!("// SAFETY: as the caller says.\n        unsafe {{ asm!({instruction}) }};"))
        }
    };
    format!(
        "
    /// {}
    ///
    /// # Safety
    ///
    /// {}
    #[inline(always)]
    pub unsafe fn {name}{signature} {{
        {body}
    }}
",
        about(control),
        safety(control)
    )
}

fn safety(control: Control) -> &'static str {
    match control {
        Control::Begin => "What runs up to the matching [`xend`] may run again; see the module's documentation.",
        Control::End | Control::Restart => "A transaction is active; otherwise this is an illegal instruction.",
        Control::TransactionId => "The hart has the extension; otherwise this is an illegal instruction.",
        Control::Push => "What runs up to the matching [`xpop`] is not rolled back; see the module's documentation.",
        Control::Drop => "As for [`xpop`]; and nobody counts on the transaction any more.",
        Control::Pop => "No transaction is active, and a frame was pushed; otherwise this is an illegal instruction.",
    }
}

fn memory_functions(width: Width, suffix: &str) -> String {
    let funct3 = width as u32;
    let bits = 8 * width.size_bytes();
    let extended = |value: &str| if bits == 64 { value.to_owned() } else { format!("u64::from({value})") };
    let (expected, value) = (extended("expected"), extended("value"));
    format!(
        "
    /// Whether memory equals `value`, and only then it joins the read set.
    ///
    /// # Safety
    ///
    /// The address can be read and is aligned.
    #[inline(always)]
    pub unsafe fn xtest_{suffix}(address: *const u{bits}, value: u{bits}) -> bool {{
        let equal: u64;
        // SAFETY: as the caller says.
        unsafe {{
            asm!(\".insn r {OPCODE_CUSTOM_1:#04x}, {funct3}, 0, {{0}}, {{1}}, {{2}}\",
                lateout(reg) equal, in(reg) address, in(reg) {value})
        }};
        equal != 0
    }}

    /// [`XCAS_SWAPPED`](super::XCAS_SWAPPED), [`XCAS_DIFFERED`](super::XCAS_DIFFERED), or outside a transaction
    /// [`XCAS_REFUSED`](super::XCAS_REFUSED).
    ///
    /// # Safety
    ///
    /// The address can be read and written and is aligned.
    #[inline(always)]
    pub unsafe fn xcas_{suffix}(address: *mut u{bits}, expected: u{bits}, value: u{bits}) -> u64 {{
        let result;
        // SAFETY: as the caller says.
        unsafe {{
            asm!(\".insn r4 {OPCODE_CUSTOM_2:#04x}, {funct3}, 0, {{0}}, {{1}}, {{2}}, {{3}}\",
                lateout(reg) result, in(reg) address, in(reg) {expected}, in(reg) {value})
        }};
        result
    }}
"
    )
}

const HEAD: &str = "\
// SPDX-License-Identifier: GPL-2.0 OR MIT
// Generated from sim/abi (CONCORD_UPDATE=1 cargo test -p concord-abi); do not edit.
//! Xmetatm, hardware transactional memory: `docs/xmetatm.md` is the specification. A module for guests: `#[path]` it in.
//! The constants compile everywhere, the instructions for riscv64.
//!
//! [`xbegin`] returns once more at each restart. The compiler need not know: the hart restores every register and rolls
//! memory back, so for the program the returns before the last never happened; a local counter of tries does not count.
//! This does not hold for what runs between [`xpush`] and [`xpop`], because what is stored there stays, in stack frames as
//! well. Only call functions there, on another stack.
#![allow(dead_code)]

";

const STATUS: &str = "
/// The cause in a status word.
pub const fn cause(status: u64) -> u64 {
    status & XMETATM_CAUSE_MASK
}

/// The code that `xrestart` gave, in a status word.
pub const fn code(status: u64) -> u64 {
    (status & XMETATM_CODE_MASK) >> XMETATM_CODE_SHIFT
}

/// What `xrestart` takes: explicit or need-exclusive, and a code.
pub const fn status(cause: u64, code: u8) -> u64 {
    cause & XMETATM_CAUSE_MASK | (code as u64) << XMETATM_CODE_SHIFT
}

/// The depth in `xstatus`.
pub const fn depth(xstatus: u64) -> u64 {
    (xstatus & XSTATUS_DEPTH_MASK) >> XSTATUS_DEPTH_SHIFT
}

/// The last status word in `xstatus`.
pub const fn last_status(xstatus: u64) -> u64 {
    (xstatus & XSTATUS_STATUS_MASK) >> XSTATUS_STATUS_SHIFT
}
";

const REGISTERS: &str = "
    /// Reads a register: `csr_read::<CSR_XSTATUS>()`.
    ///
    /// # Safety
    ///
    /// The hart has the register, and is in a mode that may read it.
    #[inline(always)]
    pub unsafe fn csr_read<const CSR: u16>() -> u64 {
        let value;
        // SAFETY: as the caller says.
        unsafe { asm!(\"csrr {0}, {1}\", out(reg) value, const CSR) };
        value
    }

    /// Writes a register.
    ///
    /// # Safety
    ///
    /// The hart has the register, is in a mode that may write it, and the program expects what this does to transactions.
    #[inline(always)]
    pub unsafe fn csr_write<const CSR: u16>(value: u64) {
        // SAFETY: as the caller says.
        unsafe { asm!(\"csrw {1}, {0}\", in(reg) value, const CSR) };
    }
";

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

/// As the device tree's `riscv,isa-extensions` says it.
pub const EXTENSION: &str = "xmetatm";

// Control and status registers.
pub const CSR_XPRIORITY: u16 = 0x5c0;
pub const CSR_XRESTARTS: u16 = 0x5c1;
pub const CSR_XBACKOFF: u16 = 0x5c2;
pub const CSR_XCONTEXT: u16 = 0x5c3;
pub const CSR_XTRAP: u16 = 0x5c4;
pub const CSR_XENABLE: u16 = 0x5c5;
pub const CSR_XSTATUS: u16 = 0xcc0;
pub const CSR_XSIZE: u16 = 0xcc1;
pub const CSR_XBEGINTIME: u16 = 0xcc2;
pub const CSR_XSTACK: u16 = 0xdc0;
pub const CSR_XFRAMES: u16 = 0xdc1;
pub const CSR_XCONFLICT: u16 = 0xdc2;
pub const CSR_XWINNER: u16 = 0xdc3;

// Causes: bits 7 to 0 of the status word that xbegin returns, and of the operand of xrestart.
pub const XMETATM_CAUSE_NONE: u64 = 0x0;
pub const XMETATM_CAUSE_CONFLICT: u64 = 0x1;
pub const XMETATM_CAUSE_NONTRANSACTIONAL: u64 = 0x2;
pub const XMETATM_CAUSE_EXPLICIT: u64 = 0x3;
pub const XMETATM_CAUSE_NEED_EXCLUSIVE: u64 = 0x4;
pub const XMETATM_CAUSE_CAPACITY: u64 = 0x5;
pub const XMETATM_CAUSE_INTERRUPT: u64 = 0x6;
pub const XMETATM_CAUSE_DEPTH: u64 = 0x7;

// The status word: the cause, and above it eight bits of the program's own, which xrestart takes.
pub const XMETATM_CAUSE_MASK: u64 = 0xff;
pub const XMETATM_CODE_SHIFT: u64 = 0x8;
pub const XMETATM_CODE_MASK: u64 = 0xff00;

// What xcas returns.
pub const XCAS_SWAPPED: u64 = 0x0;
pub const XCAS_DIFFERED: u64 = 0x1;
pub const XCAS_REFUSED: u64 = 0x2;

// Fields of xstatus.
pub const XSTATUS_ACTIVE: u64 = 0x1;
pub const XSTATUS_SUSPENDED: u64 = 0x2;
pub const XSTATUS_STALLED: u64 = 0x4;
pub const XSTATUS_OVERFLOWED: u64 = 0x8;
pub const XSTATUS_DOOMED: u64 = 0x10;
pub const XSTATUS_DEPTH_SHIFT: u64 = 0x8;
pub const XSTATUS_DEPTH_MASK: u64 = 0xff00;
pub const XSTATUS_STATUS_SHIFT: u64 = 0x10;
pub const XSTATUS_STATUS_MASK: u64 = 0xffff0000;

// Fields of xtrap and xenable.
pub const XTRAP_PT: u64 = 0x1;
pub const XENABLE_U: u64 = 0x1;

// Limits.
pub const XMETATM_DEPTH_MAX: u64 = 0xff;
pub const XMETATM_FRAMES_MAX: u64 = 0x40;
pub const XMETATM_FRAMES_USER_MAX: u64 = 0x20;
pub const XMETATM_PRIORITY_MAX: u64 = 0xff;
pub const XMETATM_RESTARTS_MAX: u64 = 0xffff;

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

#[cfg(target_arch = "riscv64")]
mod instructions {
    use core::arch::asm;

    /// Begins a transaction, or nests. 0, or after a restart the status word.
    ///
    /// # Safety
    ///
    /// What runs up to the matching [`xend`] may run again; see the module's documentation.
    #[inline(always)]
    pub unsafe fn xbegin() -> u64 {
        let value;
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 0, {0}, x0, 0", out(reg) value) };
        value
    }

    /// Leaves one level; at the outermost, commits.
    ///
    /// # Safety
    ///
    /// A transaction is active; otherwise this is an illegal instruction.
    #[inline(always)]
    pub unsafe fn xend() {
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 1, x0, x0, 0") };
    }

    /// Restarts the transaction. The argument is a cause and a code: see xmetatm_status.
    ///
    /// # Safety
    ///
    /// A transaction is active; otherwise this is an illegal instruction.
    #[inline(always)]
    pub unsafe fn xrestart(status: u64) -> ! {
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 2, x0, {0}, 0", in(reg) status, options(noreturn)) }
    }

    /// The id of the active transaction, or 0.
    ///
    /// # Safety
    ///
    /// The hart has the extension; otherwise this is an illegal instruction.
    #[inline(always)]
    pub unsafe fn xgettxid() -> u64 {
        let value;
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 3, {0}, x0, 0", out(reg) value) };
        value
    }

    /// Suspends the active transaction, or pushes an empty frame.
    ///
    /// # Safety
    ///
    /// What runs up to the matching [`xpop`] is not rolled back; see the module's documentation.
    #[inline(always)]
    pub unsafe fn xpush() {
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 4, x0, x0, 0") };
    }

    /// Resumes what the matching xpush suspended; goes back to its xbegin if it has lost meanwhile.
    ///
    /// # Safety
    ///
    /// No transaction is active, and a frame was pushed; otherwise this is an illegal instruction.
    #[inline(always)]
    pub unsafe fn xpop() {
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 5, x0, x0, 0") };
    }

    /// Ends what the matching xpush suspended: it is rolled back and does not restart. S-mode only.
    ///
    /// # Safety
    ///
    /// As for [`xpop`]; and nobody counts on the transaction any more.
    #[inline(always)]
    pub unsafe fn xdrop() {
        // SAFETY: as the caller says.
        unsafe { asm!(".insn i 0x0b, 6, x0, x0, 0") };
    }

    /// Whether memory equals `value`, and only then it joins the read set.
    ///
    /// # Safety
    ///
    /// The address can be read and is aligned.
    #[inline(always)]
    pub unsafe fn xtest_b(address: *const u8, value: u8) -> bool {
        let equal: u64;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r 0x2b, 0, 0, {0}, {1}, {2}",
                lateout(reg) equal, in(reg) address, in(reg) u64::from(value))
        };
        equal != 0
    }

    /// [`XCAS_SWAPPED`](super::XCAS_SWAPPED), [`XCAS_DIFFERED`](super::XCAS_DIFFERED), or outside a transaction
    /// [`XCAS_REFUSED`](super::XCAS_REFUSED).
    ///
    /// # Safety
    ///
    /// The address can be read and written and is aligned.
    #[inline(always)]
    pub unsafe fn xcas_b(address: *mut u8, expected: u8, value: u8) -> u64 {
        let result;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r4 0x5b, 0, 0, {0}, {1}, {2}, {3}",
                lateout(reg) result, in(reg) address, in(reg) u64::from(expected), in(reg) u64::from(value))
        };
        result
    }

    /// Whether memory equals `value`, and only then it joins the read set.
    ///
    /// # Safety
    ///
    /// The address can be read and is aligned.
    #[inline(always)]
    pub unsafe fn xtest_h(address: *const u16, value: u16) -> bool {
        let equal: u64;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r 0x2b, 1, 0, {0}, {1}, {2}",
                lateout(reg) equal, in(reg) address, in(reg) u64::from(value))
        };
        equal != 0
    }

    /// [`XCAS_SWAPPED`](super::XCAS_SWAPPED), [`XCAS_DIFFERED`](super::XCAS_DIFFERED), or outside a transaction
    /// [`XCAS_REFUSED`](super::XCAS_REFUSED).
    ///
    /// # Safety
    ///
    /// The address can be read and written and is aligned.
    #[inline(always)]
    pub unsafe fn xcas_h(address: *mut u16, expected: u16, value: u16) -> u64 {
        let result;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r4 0x5b, 1, 0, {0}, {1}, {2}, {3}",
                lateout(reg) result, in(reg) address, in(reg) u64::from(expected), in(reg) u64::from(value))
        };
        result
    }

    /// Whether memory equals `value`, and only then it joins the read set.
    ///
    /// # Safety
    ///
    /// The address can be read and is aligned.
    #[inline(always)]
    pub unsafe fn xtest_w(address: *const u32, value: u32) -> bool {
        let equal: u64;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r 0x2b, 2, 0, {0}, {1}, {2}",
                lateout(reg) equal, in(reg) address, in(reg) u64::from(value))
        };
        equal != 0
    }

    /// [`XCAS_SWAPPED`](super::XCAS_SWAPPED), [`XCAS_DIFFERED`](super::XCAS_DIFFERED), or outside a transaction
    /// [`XCAS_REFUSED`](super::XCAS_REFUSED).
    ///
    /// # Safety
    ///
    /// The address can be read and written and is aligned.
    #[inline(always)]
    pub unsafe fn xcas_w(address: *mut u32, expected: u32, value: u32) -> u64 {
        let result;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r4 0x5b, 2, 0, {0}, {1}, {2}, {3}",
                lateout(reg) result, in(reg) address, in(reg) u64::from(expected), in(reg) u64::from(value))
        };
        result
    }

    /// Whether memory equals `value`, and only then it joins the read set.
    ///
    /// # Safety
    ///
    /// The address can be read and is aligned.
    #[inline(always)]
    pub unsafe fn xtest_d(address: *const u64, value: u64) -> bool {
        let equal: u64;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r 0x2b, 3, 0, {0}, {1}, {2}",
                lateout(reg) equal, in(reg) address, in(reg) value)
        };
        equal != 0
    }

    /// [`XCAS_SWAPPED`](super::XCAS_SWAPPED), [`XCAS_DIFFERED`](super::XCAS_DIFFERED), or outside a transaction
    /// [`XCAS_REFUSED`](super::XCAS_REFUSED).
    ///
    /// # Safety
    ///
    /// The address can be read and written and is aligned.
    #[inline(always)]
    pub unsafe fn xcas_d(address: *mut u64, expected: u64, value: u64) -> u64 {
        let result;
        // SAFETY: as the caller says.
        unsafe {
            asm!(".insn r4 0x5b, 3, 0, {0}, {1}, {2}, {3}",
                lateout(reg) result, in(reg) address, in(reg) expected, in(reg) value)
        };
        result
    }

    /// Reads a register: `csr_read::<CSR_XSTATUS>()`.
    ///
    /// # Safety
    ///
    /// The hart has the register, and is in a mode that may read it.
    #[inline(always)]
    pub unsafe fn csr_read<const CSR: u16>() -> u64 {
        let value;
        // SAFETY: as the caller says.
        unsafe { asm!("csrr {0}, {1}", out(reg) value, const CSR) };
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
        unsafe { asm!("csrw {1}, {0}", in(reg) value, const CSR) };
    }
}
#[cfg(target_arch = "riscv64")]
pub use instructions::*;

//! Watchpoints: which memory an instruction accesses, and whether the debugger watches it.
//!
//! While anything is watched, an instruction that accesses memory runs alone, and its operands say before it runs where it will
//! access. The interpreter and the caches take no part, so that watching changes no count and no cycle.
//!
//! Addresses are virtual, of whichever hart accesses them. Devices, page walks and rollbacks of transactions are not watched.

use super::Break;
use crate::execute::code::CodePage;
use crate::machine::Machine;
use concord_abi::htm::CompareAndSwap;
use concord_isa::decode::decode;
use concord_isa::op::{Kind, Op};

/// Which accesses a watchpoint stops at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchKind {
    Read,
    Write,
    Access,
}

/// Memory that the debugger watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watchpoint {
    pub address: u64,
    pub size_bytes: u64,
    pub kind: WatchKind,
}

/// The access that an instruction is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    address: u64,
    size_bytes: u64,
    reads: bool,
    writes: Writes,
}

/// Whether an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    Never,
    Always,
    /// When it leaves this value in this register.
    If {
        register: u8,
        value: u64,
    },
}

impl Watchpoint {
    /// The first watched byte of an access of `size_bytes` at `address`, if there is one.
    fn overlap(&self, address: u64, size_bytes: u64) -> Option<u64> {
        let into_watched = address.wrapping_sub(self.address);
        let into_access = self.address.wrapping_sub(address);
        if into_watched < self.size_bytes {
            Some(address)
        } else if into_access < size_bytes && self.size_bytes > 0 {
            Some(self.address)
        } else {
            None
        }
    }
}

impl Machine {
    /// Cuts a run from `page_offset` so that at most its first instruction accesses memory, and returns that access.
    pub(super) fn cut_at_access(&self, hart: usize, run: &mut CodePage, page_offset: u32) -> Option<Access> {
        let (op, offset) = run.find_first(|op| op.kind == Kind::Straddle || width(op).is_some())?;
        let ram = &self.memory.ram;
        if offset != page_offset {
            *run = CodePage::of_run(ram, run.address, page_offset, offset);
            return None;
        }
        *run = CodePage::of_run(ram, run.address, page_offset, page_offset + 1);
        let op = if op.kind == Kind::Straddle { self.straddling(hart)? } else { op };
        Some(self.access(hart, op, width(op)?))
    }

    /// The instruction at a hart's program counter, which lies in two pages.
    fn straddling(&self, hart: usize) -> Option<Op> {
        let pc = self.memory.hot[hart].pc;
        let half = |address| Some(self.memory.ram.read(self.peek_address(hart, address)?, 2) as u32);
        let instruction = half(pc)? | half(pc.wrapping_add(2))? << 16;
        Some(decode(instruction, 0, 4))
    }

    fn access(&self, hart: usize, op: Op, size_bytes: u64) -> Access {
        use Kind::*;
        let base = self.memory.hot[hart].x[usize::from(op.rs1)];
        let (reads, writes) = match op.kind {
            kind if kind.plain_access().is_some_and(|access| access.store) => (false, Writes::Always),
            AtomicWord | AtomicDouble => (true, Writes::Always),
            StoreConditionalWord | StoreConditionalDouble => (false, Writes::If { register: op.rd, value: 0 }),
            TransactionCompareAndSwap => (true, Writes::If { register: op.rd, value: CompareAndSwap::Swapped as u64 }),
            _ => (true, Writes::Never),
        };
        // The immediates of the others mean something else.
        let displacement = if op.kind.plain_access().is_some() { op.imm as i64 as u64 } else { 0 };
        let address = base.wrapping_add(displacement);
        Access { address, size_bytes, reads, writes }
    }

    /// Why to break after an access that was made.
    pub(super) fn watchpoint_of(&self, hart: usize, access: &Access) -> Option<Break> {
        let has_written = match access.writes {
            Writes::Never => false,
            Writes::Always => true,
            Writes::If { register, value } => self.memory.hot[hart].x[usize::from(register)] == value,
        };
        self.debug.watchpoints.iter().find_map(|watchpoint| {
            let counts = match watchpoint.kind {
                WatchKind::Read => access.reads,
                WatchKind::Write => has_written,
                WatchKind::Access => access.reads || has_written,
            };
            let address = watchpoint.overlap(access.address, access.size_bytes).filter(|_| counts)?;
            Some(Break::Watchpoint { hart, kind: watchpoint.kind, address })
        })
    }
}

/// The bytes that an op accesses, if it accesses memory.
fn width(op: Op) -> Option<u64> {
    use Kind::*;
    if let Some(access) = op.kind.plain_access() {
        return Some(access.size_bytes);
    }
    Some(match op.kind {
        LoadReservedWord | StoreConditionalWord | AtomicWord => 4,
        LoadReservedDouble | StoreConditionalDouble | AtomicDouble => 8,
        // funct3 is the binary logarithm of the bytes (`concord_abi::htm::Width`).
        TransactionTest | TransactionCompareAndSwap => 1 << (op.imm as u32 >> 12 & 3),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_meets_a_watchpoint_where_they_share_a_byte() {
        let watchpoint = Watchpoint { address: 0x1004, size_bytes: 4, kind: WatchKind::Access };
        for (address, size_bytes, expected) in [
            (0x1000, 4, None),
            (0x1000, 8, Some(0x1004)),
            (0x1003, 2, Some(0x1004)),
            (0x1004, 1, Some(0x1004)),
            (0x1007, 8, Some(0x1007)),
            (0x1008, 8, None),
        ] {
            assert_eq!(watchpoint.overlap(address, size_bytes), expected, "{address:#x}, {size_bytes} bytes");
        }
        let last = Watchpoint { address: u64::MAX, size_bytes: 1, kind: WatchKind::Access };
        assert_eq!(last.overlap(u64::MAX - 3, 4), Some(u64::MAX));
        assert_eq!(last.overlap(0, 8), None);
    }
}

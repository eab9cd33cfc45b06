//! The hot state of a hart: everything that each instruction reads or writes, in one piece of memory with a fixed
//! layout.
//!
//! The memory system owns it, because an access of one hart may remove entries from any hart's line table. While the
//! line table answers, an executor needs only the hot state of its hart, and neither the memory system nor the machine.

use crate::line_table::LineTable;
use serde::{Deserialize, Serialize};

/// `sstatus.FS`: not zero while floating-point instructions are enabled; they set it to dirty, all ones.
pub const SSTATUS_FS: u64 = 3 << 13;

/// The length of the register arrays. Decoded ops name registers below it (`concord_isa::op`).
pub const REGISTERS: usize = 64;

/// One hart's hot state.
///
/// Invariants between two instructions: `x[0]` is zero; `user` agrees with the core's translation context.
#[derive(Clone, Serialize, Deserialize)]
#[repr(C)]
pub struct HotState {
    /// Integer registers. Index 0 is always zero, and index 32 takes the writes to register 0.
    #[serde(with = "registers")]
    pub x: [u64; REGISTERS],
    /// Floating-point registers, with single-precision values NaN-boxed.
    #[serde(with = "registers")]
    pub f: [u64; REGISTERS],
    /// The address of the next instruction; inside a run of ops, the address of the run's first.
    pub pc: u64,
    /// The hart's clock.
    pub cycle: u64,
    /// The clock value at which the hart's turn ends.
    pub limit: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Cycles that accesses cost in addition to their instructions and that the clock does not contain yet.
    pub stall_cycles: u64,
    pub sstatus: u64,
    /// fflags in bits 0 to 4, frm in bits 5 to 7.
    pub fcsr: u64,
    /// [`crate::line_table::USER`] while the hart is in user mode, and 0 otherwise. Derived from the core's context.
    #[serde(skip)]
    pub user: u64,
    pub lines: LineTable,
}

impl Default for HotState {
    fn default() -> HotState {
        HotState {
            x: [0; REGISTERS],
            f: [0; REGISTERS],
            pc: 0,
            cycle: 0,
            limit: 0,
            instructions: 0,
            stall_cycles: 0,
            sstatus: 0,
            fcsr: 0,
            user: 0,
            lines: LineTable::default(),
        }
    }
}

impl HotState {
    /// Updates the clock and the instruction count when execution leaves a run of ops: `completed` ops of it are done,
    /// and `free` of them took no cycle. Accesses stall in the timed gear only.
    #[inline(always)]
    pub fn leave_run(&mut self, timed: bool, completed: u64, free: u64) {
        self.instructions += completed;
        self.cycle += completed - free;
        if timed {
            self.charge_stalls();
        }
    }

    /// Adds the cost of accesses since the last charge to the clock.
    #[inline(always)]
    pub fn charge_stalls(&mut self) {
        self.cycle += std::mem::take(&mut self.stall_cycles);
    }
}

/// Serialization of the architecture's registers. serde itself supports no arrays of more than 32 elements.
pub mod registers {
    use super::REGISTERS;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(registers: &[u64; REGISTERS], serializer: S) -> Result<S::Ok, S::Error> {
        let architectural: [u64; 32] = std::array::from_fn(|index| registers[index]);
        architectural.serialize(serializer)
    }

    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u64; REGISTERS], D::Error> {
        let architectural = <[u64; 32]>::deserialize(deserializer)?;
        let mut registers = [0; REGISTERS];
        registers[..32].copy_from_slice(&architectural);
        Ok(registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_table::{ENTRIES, Entry};
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_layout_is_fixed() {
        assert_eq!(offset_of!(HotState, x), 0);
        assert_eq!(offset_of!(HotState, f), 8 * REGISTERS);
        assert_eq!(offset_of!(HotState, pc), 16 * REGISTERS);
        assert_eq!(offset_of!(HotState, lines) % size_of::<Entry>(), 0);
        assert_eq!(size_of::<HotState>(), offset_of!(HotState, lines) + ENTRIES * size_of::<Entry>());
    }

    #[test]
    fn leaving_a_run_charges_its_ops_and_stalls_once() {
        let mut hot = HotState { cycle: 100, stall_cycles: 30, ..HotState::default() };
        hot.leave_run(true, 5, 2);
        assert_eq!((hot.instructions, hot.cycle, hot.stall_cycles), (5, 133, 0));
        hot.leave_run(true, 1, 0);
        assert_eq!((hot.instructions, hot.cycle), (6, 134));
    }
}

//! The position of a hart in a run of ops.

/// A hart between two runs of ops, or at an op during a run. Until the hart leaves the run, its clock, instruction
/// count and program counter are those of the run's beginning; the position contains what to add to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub hart: usize,
    /// Ops of the run before this one.
    pub completed: u32,
    /// Ops among these that take no cycle.
    pub free: u32,
}

impl Position {
    pub const fn between_runs(hart: usize) -> Position {
        Position { hart, completed: 0, free: 0 }
    }

    /// The cycles that the run's ops before this one took, without their stalls.
    #[inline(always)]
    pub fn cycles(self) -> u64 {
        u64::from(self.completed - self.free)
    }
}

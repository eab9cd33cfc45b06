//! Where a hart is.

/// A hart, between two runs of ops or at an op in the middle of a run. The hart's clock, instruction count and program counter
/// are those of the run's beginning until the run is left; a position says what to add to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub hart: usize,
    /// Ops of the run before this one.
    pub completed: u32,
    /// Those of them that take no cycle.
    pub free: u32,
}

impl Position {
    pub const fn between_runs(hart: usize) -> Position {
        Position { hart, completed: 0, free: 0 }
    }
}

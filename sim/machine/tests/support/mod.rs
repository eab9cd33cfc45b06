//! The parts of the differential test: generated programs, the guest-side harness that runs them, the two machines, and
//! the comparison.

pub mod assembler;
pub mod compare;
pub mod generator;
pub mod harness;
pub mod machines;
pub mod random;

//! Debugging: turns that are broken off without a trace in the run, and the protocol that gdb speaks.

pub(crate) mod debug;
pub mod debugger;

//! Snapshots of the whole machine, and what a resumed run has otherwise than the run that was saved.

pub mod changes;
mod digest;
pub mod snapshot;

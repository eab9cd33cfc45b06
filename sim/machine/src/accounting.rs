//! What a run counts: samples of program counters, critical sections, and what each hart was doing and when.

pub mod critical_sections;
pub mod statistics;
pub mod timeline;
pub(crate) mod trace;

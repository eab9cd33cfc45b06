//! RAM, address translation, caches, coherence and their timing.

mod aligned;
pub mod cache;
pub mod contention;
pub mod fault;
mod holders;
pub mod hot;
pub mod line_table;
mod prefetch;
pub mod ram;
pub mod system;
pub mod translation;

//! Real guests on the machine: our kernel and Debian's, from the first instruction to power-off.
//!
//! Guests that are not in the cache are built, which takes minutes once. A test that takes long is ignored unless it is asked
//! for: `cargo test -- --ignored`.

mod boot;
mod console;
mod counters;
mod determinism;
mod disk;
mod endings;
mod modules;
mod network;
mod support;
mod txlinux;
mod workloads;

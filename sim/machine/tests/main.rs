//! The machine as its guests and its users see it.

mod acquiring;
mod contention;
mod differential;
mod executors;
mod idle;
mod privileged;
mod results;
mod sections;
mod semantics_any_input;
mod sizes;
mod support;
mod transactions;

//! What the tests share: guests of a few instructions, generated programs with the harness that runs them, the two
//! machines, and a debugger's side of its protocol.

pub mod assembler;
pub mod bare;
pub mod compare;
#[allow(dead_code, reason = "shared with the command's tests, which need more of it")]
pub mod debugger_client;
pub mod generator;
pub mod harness;
pub mod machines;
pub mod random;

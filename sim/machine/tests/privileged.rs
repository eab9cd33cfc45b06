//! The privileged architecture as a supervisor sees it, and the SBI: directed guests of a few instructions, in both gears.

#[path = "support/assembler.rs"]
#[allow(dead_code, reason = "shared with the differential test, which needs more of it")]
mod assembler;
#[path = "support/bare.rs"]
#[allow(dead_code, reason = "shared with the transactions' tests, which need more of it")]
mod bare;
#[path = "privileged/harts.rs"]
mod harts;
#[path = "privileged/memory.rs"]
mod memory;
#[path = "privileged/registers.rs"]
mod registers;
#[path = "privileged/sbi.rs"]
mod sbi;
#[path = "privileged/traps.rs"]
mod traps;

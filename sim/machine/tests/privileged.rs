//! The privileged architecture as a supervisor sees it, and the SBI: directed guests of a few instructions, in both gears.

mod harts;
mod memory;
mod registers;
mod sbi;
mod traps;

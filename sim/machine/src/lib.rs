//! A board of harts: the order in which they step, the SBI, snapshots, statistics, the debugger.

mod access;
pub mod board;
mod changes;
mod code;
pub mod configuration;
mod console;
mod csr;
mod debug;
pub mod debugger;
pub mod device_tree;
mod error;
mod execute;
pub mod hart;
pub mod loader;
pub mod machine;
pub mod output;
pub mod planted;
pub mod result;
pub mod run;
mod sbi;
pub mod sections;
pub mod snapshot;
pub mod statistics;
pub mod symbols;
mod system;
pub mod timeline;
mod trace;
mod transaction;
mod trap;

pub use board::Board;
pub use changes::{Changed, Changes};
pub use configuration::{Configuration, DiskImage, Gear, Net, TransactionCosts};
pub use error::MachineError;
pub use machine::{End, Event, Machine};

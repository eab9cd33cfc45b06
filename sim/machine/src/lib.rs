//! A board of harts: the order in which they step, the SBI, snapshots, statistics, the debugger.

pub mod accounting;
pub mod board;
pub mod configuration;
mod console;
mod data;
mod debugging;
pub mod device_tree;
mod devices;
mod error;
mod events;
mod execute;
pub mod hart;
pub mod input;
pub mod loader;
mod loading;
pub mod machine;
mod order;
pub mod output;
pub mod planted;
pub mod result;
pub mod run;
pub mod saving;
pub mod symbols;
mod transaction;
mod types;

pub use board::Board;
pub use configuration::{Configuration, DiskImage, Gear, Net, TransactionCosts};
pub use debugging::debugger;
pub use error::MachineError;
pub use events::{End, Event};
pub use execute::translation::Executor;
pub use machine::Machine;
pub use saving::changes::{Changed, Changes};
pub use saving::snapshot;

//! Placeholder.

pub mod board;
pub mod device_tree;
pub mod loader;
pub mod symbols;

//! Placeholder.

pub mod board;
pub mod device_tree;
pub mod loader;
pub mod output;
pub mod symbols;
pub mod timeline;

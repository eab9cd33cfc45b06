//! Placeholder.

pub mod board;

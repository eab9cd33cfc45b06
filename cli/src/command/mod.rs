//! One command a file.

pub mod boot;
pub mod build;
pub mod compare;
pub mod completions;
pub mod doctor;
mod experiment;
pub mod locks;
mod programs;
pub mod resume;
pub mod stm;

use anyhow::anyhow;
use std::io::Write;

/// Writes a command's answer to standard output.
///
/// # Errors
/// If standard output is closed or full.
pub fn answer(text: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text).and_then(|()| output.flush()).map_err(|error| anyhow!("standard output: {error}"))
}

/// A JSON document as a command's answer.
///
/// # Errors
/// As [`answer`].
pub fn answer_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    answer(&text)
}

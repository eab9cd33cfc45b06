//! `concord doctor`: what this host lacks, and the command that installs it.

use concord_abi::exit::Exit;
use concord_lab::doctor::{Report, Requirement, check, install};
use std::fmt::Write;

/// Say what is missing on this machine and how to install it
///
/// Exit code 0 when nothing is missing, 1 when something is.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install what is missing with apt, through sudo where not root
    #[arg(long)]
    install: bool,
    /// Answer with a JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// If the installation fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let report = if arguments.install { install()? } else { check() };
    if arguments.json {
        super::answer_json(&document(&report))?;
    } else {
        super::answer(text(&report)?.as_bytes())?;
    }
    Ok(if report.missing.is_empty() { Exit::PoweredOff } else { Exit::Failed })
}

fn document(report: &Report) -> serde_json::Value {
    let list = |requirements: &[Requirement]| -> Vec<_> {
        let entry = |requirement: &Requirement| {
            serde_json::json!({
                "what": requirement.what(),
                "package": requirement.package,
                "purpose": requirement.purpose,
            })
        };
        requirements.iter().map(entry).collect()
    };
    serde_json::json!({
        "met": list(&report.met),
        "missing": list(&report.missing),
        "command": report.command(),
    })
}

fn text(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for requirement in &report.missing {
        writeln!(text, "missing: {} ({}), {}", requirement.what(), requirement.package, requirement.purpose)?;
    }
    match report.command() {
        Some(command) => writeln!(text, "install with: {command}")?,
        None => writeln!(text, "nothing is missing: all {} requirements are met", report.met.len())?,
    }
    Ok(text)
}

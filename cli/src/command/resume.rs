//! `concord resume`: goes on from a snapshot.

use crate::output::Inputs;
use crate::session::{self, SessionArguments};
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_machine::Machine;
use std::path::PathBuf;

/// Go on from a snapshot
///
/// Disk images must be where they were, and what they were.
#[derive(clap::Args)]
pub struct Arguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    snapshot_file: PathBuf,
    #[command(flatten)]
    session: SessionArguments,
}

/// Runs the command.
///
/// # Errors
/// If the snapshot or another input cannot be used, or the host fails.
pub fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let mut inputs = Inputs::default();
    inputs.add("snapshot", &arguments.snapshot_file);
    let mut machine = Machine::resume(&arguments.snapshot_file)?;
    if arguments.session.checks_isolation() {
        machine.check_isolation();
    }
    if machine.ended().is_some() {
        return Err(anyhow!("{}: the run had ended when it was taken", arguments.snapshot_file.display()));
    }
    inputs.add_configuration(machine.configuration());
    session::run(&arguments.session, &inputs, || Ok(machine))
}

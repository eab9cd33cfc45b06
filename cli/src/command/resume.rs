//! `concord resume`: goes on from a snapshot.

use crate::command::boot::manager_parser;
use crate::output::Inputs;
use crate::session::{self, SessionArguments};
use anyhow::anyhow;
use concord_abi::exit::Exit;
use concord_machine::board::Manager;
use concord_machine::{Changes, Machine};
use std::path::PathBuf;

/// Go on from a snapshot
///
/// Disk images must be where they were, and what they were. One snapshot starts any number of runs: with another seed or
/// contention manager each goes on in its own way, and without them it is the run that was not interrupted.
#[derive(clap::Args)]
pub struct Arguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    snapshot_file: PathBuf,
    /// From here on perturb miss latencies and feed the entropy device by this seed, instead of the run's own
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// From here on let this contention manager decide which party of a conflict goes on
    #[arg(long, value_name = "NAME", value_parser = manager_parser(), help_heading = "Transactions")]
    contention_manager: Option<Manager>,
    #[command(flatten)]
    session: SessionArguments,
}

/// Runs the command.
///
/// # Errors
/// If the snapshot or another input cannot be used, or the host fails.
pub fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let changes = Changes { seed: arguments.seed, contention_manager: arguments.contention_manager };
    let mut inputs = Inputs::default();
    inputs.add("snapshot", &arguments.snapshot_file);
    let mut machine = Machine::resume_with(&arguments.snapshot_file, changes)?;
    if arguments.session.checks_isolation() {
        machine.check_isolation();
    }
    if machine.ended().is_some() {
        return Err(anyhow!("{}: the run had ended when it was taken", arguments.snapshot_file.display()));
    }
    inputs.add_configuration(machine.configuration());
    session::run(&arguments.session, &inputs, || Ok(machine))
}

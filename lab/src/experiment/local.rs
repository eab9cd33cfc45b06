//! One boot, and one run from where it ended.

use super::Error;
use super::plan::{Group, Run};
use concord_machine::result::{self, ResultDocument};
use concord_machine::run::{self, Host, Limits, Options, SnapshotEvent};
use concord_machine::symbols::SymbolTable;
use concord_machine::{Changes, Machine};
use std::path::Path;
use std::time::Duration;

/// Whoever watches a run, and may stop it.
pub trait Watcher {
    /// Instructions of all harts so far.
    fn advanced(&mut self, instructions: u64);
    /// Whether the run is to be given up.
    fn wants_to_stop(&self) -> bool;
}

/// How a boot ended.
#[derive(Debug)]
pub enum Boot {
    /// There is a snapshot where the region of interest begins.
    Ready,
    /// The guest ended otherwise: why, and the last lines of its console.
    Failed(String, Vec<String>),
    Stopped,
}

/// A console that nobody sees: the machine keeps its last lines.
struct Unseen<'a>(&'a mut dyn Watcher);

impl Host for Unseen<'_> {
    fn print(&mut self, _bytes: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn input(&mut self, _wait: Duration) -> Option<Vec<u8>> {
        None
    }

    fn is_interactive(&self) -> bool {
        false
    }

    fn progress(&mut self, machine: &Machine) {
        self.0.advanced(machine.instructions());
    }

    fn wants_to_stop(&self) -> bool {
        self.0.wants_to_stop()
    }
}

fn options(group: &Group) -> Options {
    let limits = Limits { instructions: Some(group.instructions_max), cycles: None };
    Options { limits, timed_region: true, ..Options::default() }
}

/// Boots a group's kernel in the functional gear and takes a snapshot where its region of interest begins.
///
/// # Errors
/// If the machine cannot be built, or a file not be read or written.
pub fn boot(group: &Group, snapshot: &Path, watcher: &mut dyn Watcher) -> Result<Boot, Error> {
    let mut machine = Machine::new(group.configuration.clone())?;
    if let Some(path) = &group.symbols {
        let symbols = SymbolTable::from_file(path);
        machine.set_symbols(symbols.map_err(|error| Error::Request(error.to_string()))?);
    }
    let snapshot = Some((SnapshotEvent::RegionBegin, snapshot.to_owned()));
    let options = Options { snapshot, ends_at_snapshot: true, ..options(group) };
    let outcome = run::run(&mut machine, &options, &mut Unseen(watcher))?;
    if outcome.missed_snapshot.is_none() {
        return Ok(Boot::Ready);
    }
    if watcher.wants_to_stop() {
        return Ok(Boot::Stopped);
    }
    let how = match outcome.message {
        None => outcome.end.exit.name().to_owned(),
        Some(ref message) => message.clone(),
    };
    let document = result::document(&mut machine, &outcome, 0.0)?;
    Ok(Boot::Failed(format!("{how}, before the workload's region of interest began"), document.console))
}

/// Makes a run from its group's snapshot; none when it was given up.
///
/// # Errors
/// If the snapshot cannot be used, or the host fails.
pub fn run(
    group: &Group,
    run: &Run,
    snapshot: &Path,
    watcher: &mut dyn Watcher,
) -> Result<Option<ResultDocument>, Error> {
    let changes = Changes { seed: Some(run.seed), ..Changes::default() };
    let mut machine = Machine::resume_with(snapshot, changes)?;
    let outcome = run::run(&mut machine, &options(group), &mut Unseen(watcher))?;
    if watcher.wants_to_stop() {
        return Ok(None);
    }
    Ok(Some(result::document(&mut machine, &outcome, 0.0)?))
}

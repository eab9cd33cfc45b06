//! The executor of this process.

use super::Error;
use super::cell::{BeginsAt, Cell, CellFile};
use super::executor::{BootEnd, Executor, Folders, RunEnd, Watcher};
use super::store;
use crate::guest::symbols_of;
use concord_machine::result;
use concord_machine::run::{self, Host, Limits, Options, SnapshotEvent};
use concord_machine::symbols::SymbolTable;
use concord_machine::{Changes, Machine};

/// Most that is kept of a guest's console; check programs print some kilobytes.
const CONSOLE_BYTES_MAX: usize = 1 << 20;

/// Boots and runs in the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// What executes the guests' instructions; one that this host can run.
    pub instructions: concord_machine::Executor,
}

impl Local {
    /// A machine at its reset.
    fn machine(&self, cell: &Cell) -> Result<Machine, Error> {
        let mut machine = Machine::new(cell.start.configuration.clone())?;
        if let Some(path) = &cell.start.symbols {
            let symbols = SymbolTable::from_file(path);
            machine.set_symbols(symbols.map_err(|error| Error::Request(error.to_string()))?);
            let is_kept = symbols_of(&cell.start.configuration.kernel).as_ref() == Some(path);
            machine.set_types_file(path, is_kept);
        }
        self.choose_executor(&mut machine)?;
        Ok(machine)
    }

    fn choose_executor(&self, machine: &mut Machine) -> Result<(), Error> {
        machine.set_executor(self.instructions).map_err(|error| Error::Request(error.to_string()))
    }
}

/// A console that nobody types at, whose text is kept.
struct Console<'a> {
    watcher: &'a mut dyn Watcher,
    bytes: Vec<u8>,
}

impl<'a> Console<'a> {
    fn new(watcher: &'a mut dyn Watcher) -> Console<'a> {
        Console { watcher, bytes: Vec::new() }
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.bytes).lines().map(str::to_owned).collect()
    }
}

impl Host for Console<'_> {
    fn print(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let room = CONSOLE_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }

    fn progress(&mut self, machine: &Machine) {
        self.watcher.advanced(machine.instructions());
    }

    fn wants_to_stop(&self) -> bool {
        self.watcher.wants_to_stop()
    }
}

fn options(cell: &Cell) -> Options {
    let limits = Limits { instructions: Some(cell.start.instructions_max), cycles: None };
    Options { limits, timed_region: cell.start.begins_at == BeginsAt::Region, ..Options::default() }
}

impl Executor for Local {
    fn boot(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<BootEnd, Error> {
        let mut machine = self.machine(cell)?;
        let snapshot = Some((SnapshotEvent::RegionBegin, folders.boots.join(snapshot_name)));
        let options = Options { snapshot, ends_at_snapshot: true, ..options(cell) };
        let mut console = Console::new(watcher);
        let outcome = run::run(&mut machine, &options, &mut console)?;
        if outcome.missed_snapshot.is_none() {
            return Ok(BootEnd::Ready);
        }
        if console.wants_to_stop() {
            return Ok(BootEnd::Stopped);
        }
        let how = match outcome.message {
            None => outcome.end.exit.name().to_owned(),
            Some(ref message) => message.clone(),
        };
        let console = result::document(&mut machine, &outcome, 0.0)?.console;
        Ok(BootEnd::Failed { why: format!("{how}, before the workload's region of interest began"), console })
    }

    fn run(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<RunEnd, Error> {
        let mut machine = match cell.start.begins_at {
            BeginsAt::Reset => self.machine(cell)?,
            BeginsAt::Region => {
                let changes = Changes { seed: Some(cell.seed), ..Changes::default() };
                let mut machine = Machine::resume_with(&folders.boots.join(snapshot_name), changes)?;
                self.choose_executor(&mut machine)?;
                machine
            }
        };
        let mut console = Console::new(watcher);
        let outcome = run::run(&mut machine, &options(cell), &mut console)?;
        if console.wants_to_stop() {
            return Ok(RunEnd::Stopped);
        }
        let lines = cell.start.keeps_console.then(|| console.lines());
        let document = result::document(&mut machine, &outcome, 0.0)?;
        store::keep(&folders.runs.join(&cell.file_name), &CellFile::new(cell, lines, document))?;
        Ok(RunEnd::Made)
    }
}

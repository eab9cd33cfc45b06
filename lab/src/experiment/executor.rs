//! The seam between the schedule, which decides what runs, and whoever runs it: here, or on another machine.

use super::Error;
use super::cell::Cell;
use std::path::PathBuf;

/// An observer of a boot or run, who may stop it.
pub trait Watcher {
    /// Instructions of all harts so far.
    fn advanced(&mut self, instructions: u64);
    /// Whether the run is to be given up.
    fn wants_to_stop(&self) -> bool;
}

/// The folders that boots and runs are kept in. An executor elsewhere needs both to be shared, or brings their files back.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Snapshots, for as long as the schedule needs them.
    pub boots: PathBuf,
    /// Finished runs, under their cells' names.
    pub runs: PathBuf,
}

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootEnd {
    /// There is a snapshot where the region of interest begins.
    Ready,
    /// The guest ended before: the reason, and the last lines of its console.
    Failed {
        why: String,
        console: Vec<String>,
    },
    Stopped,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its file is in the folder of runs.
    Made,
    /// The watcher stopped it, and there is no file.
    Stopped,
}

/// Carries out boots and runs. A cell says everything about them and can be sent elsewhere as it stands: it is plain data.
pub trait Executor: Sync {
    /// Boots a cell's machine up to the region of interest and leaves the snapshot in the folder of boots, under this name. Every cell
    /// of a group gives the same boot.
    ///
    /// # Errors
    /// If the machine cannot be built, or a file not be read or written. A guest that fails is no error.
    fn boot(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<BootEnd, Error>;

    /// Makes a cell's run, from its group's snapshot where it begins at the region, and leaves its file in the folder of runs, whole or
    /// not at all.
    ///
    /// # Errors
    /// As [`Executor::boot`].
    fn run(
        &self,
        cell: &Cell,
        snapshot_name: &str,
        folders: &Folders,
        watcher: &mut dyn Watcher,
    ) -> Result<RunEnd, Error>;
}

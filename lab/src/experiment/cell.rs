//! Cells: one combination of coordinates, everything that decides its run, and the file that keeps the result.

use super::coordinate::CoordinateMap;
use super::files::Input;
use super::store::Identified;
use concord_machine::result::ResultDocument;
use concord_machine::{Board, Configuration, Gear, Net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeginsAt {
    /// The machine's reset.
    Reset,
    /// The region of interest, timed, of a boot in the configuration's gear that all seeds share.
    Region,
}

/// How a cell starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub configuration: Configuration,
    /// The file that functions are named by, instead of the kernel's own symbols.
    pub symbols: Option<PathBuf>,
    /// Every file of the configuration, and the symbols, by the names that the key gives them.
    pub files: BTreeMap<String, Input>,
    pub begins_at: BeginsAt,
    pub instructions_max: u64,
    /// Whether the run's file keeps everything that the guest printed, and not its last lines alone.
    pub keeps_console: bool,
}

impl Start {
    /// Invariant: the key knows the content of every file that the machine reads.
    pub(super) fn assert_files_are_known(&self) {
        let configuration = &self.configuration;
        let disks = configuration.disks.iter().map(|disk| &disk.path);
        let paths = [&configuration.kernel].into_iter().chain(&configuration.initrd).chain(disks).chain(&self.symbols);
        for path in paths {
            let is_known = self.files.values().any(|input| input.path == *path);
            assert!(is_known, "the key of a cell lacks {}", path.display());
        }
    }
}

/// Everything that decides one run, and nothing of where its files lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellKey {
    pub format: u32,
    /// The digest of the simulator's source code.
    pub machine: String,
    /// Digests of the files.
    #[serde(flatten)]
    pub files: BTreeMap<String, String>,
    pub command_line: String,
    pub board: Board,
    pub gear: Gear,
    pub net: Net,
    pub begins_at: BeginsAt,
    /// The seed of the boot that all seeds of a group share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_seed: Option<u64>,
    pub seed: u64,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

/// One run. An executor needs nothing else but a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The first digits of the digest of the key.
    pub id: String,
    /// The name of its file in the folder of runs.
    pub file_name: String,
    pub title: String,
    pub coordinates: CoordinateMap,
    pub seed: u64,
    pub key: CellKey,
    pub start: Start,
}

/// The file of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellFile {
    pub id: String,
    #[serde(flatten)]
    pub coordinates: CoordinateMap,
    pub seed: u64,
    pub key: CellKey,
    /// Everything that the guest printed, where the system keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<Vec<String>>,
    pub result: ResultDocument,
}

impl CellFile {
    /// The file of a cell's run, without the one field that two equal runs do not share.
    pub fn new(cell: &Cell, console: Option<Vec<String>>, result: ResultDocument) -> CellFile {
        let Cell { id, coordinates, seed, key, .. } = cell.clone();
        CellFile { id, coordinates, seed, key, console, result: ResultDocument { host_seconds: None, ..result } }
    }

    /// The lines of the console that the file has: all of them, or the last ones.
    pub fn console(&self) -> &[String] {
        self.console.as_deref().unwrap_or(&self.result.console)
    }

    /// Why the guest's end lets nothing be concluded from this run; none of a guest that powered off.
    pub fn end_failure(&self) -> Option<String> {
        (self.result.exit_code != 0).then(|| self.result.ending())
    }
}

impl Identified for CellFile {
    fn id(&self) -> &str {
        &self.id
    }
}

//! The workloads that can be compared, and in what sizes.

use super::Error;
use concord_machine::Board;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// One workload of the root file system (`workloads/linux/workloads`) that marks a region of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    pub name: &'static str,
    /// The guest whose root file system has it.
    pub guest: &'static str,
    /// "Its performance with disk latency is highly dependent on block layout" ("TxLinux", section 6.1).
    has_instant_disk: bool,
}

const fn workload(name: &'static str, guest: &'static str) -> Workload {
    Workload { name, guest, has_instant_disk: false }
}

/// The small root file system, and the one with compilers and sources.
const SMALL: &str = "rootfs";
const LARGE: &str = "benchmarks";

/// Every workload: those of the paper's Table 5, then ours.
const WORKLOADS: [Workload; 7] = [
    workload("pmake", LARGE),
    Workload { has_instant_disk: true, ..workload("bonnie++", SMALL) },
    workload("mab", LARGE),
    workload("configure", LARGE),
    workload("find", LARGE),
    workload("dpunish", SMALL),
    workload("files", SMALL),
];

impl Workload {
    /// Every workload there is.
    pub fn all() -> &'static [Workload] {
        &WORKLOADS
    }

    /// The workload of this name.
    ///
    /// # Errors
    /// Names every workload there is.
    pub fn named(name: &str) -> Result<Workload, Error> {
        WORKLOADS.iter().find(|workload| workload.name == name).copied().ok_or_else(|| {
            let known = WORKLOADS.map(|workload| workload.name).join(", ");
            Error::Request(format!("no workload is called {name:?}; there are {known}"))
        })
    }

    /// The board as this workload wants it.
    pub fn board(&self, mut board: Board) -> Board {
        if self.has_instant_disk {
            board.disk.latency_cycles = 0;
        }
        board
    }
}

/// How much a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Seconds, for tests.
    Tiny,
    /// A minute or two on a host core with 8 harts.
    Quick,
    /// What the paper ran.
    Paper,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Size; 3] = [Size::Tiny, Size::Quick, Size::Paper];

    /// Its name, as on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Size::Tiny => "tiny",
            Size::Quick => "quick",
            Size::Paper => "paper",
        }
    }

    /// Instructions of all harts together after which a run is taken to be stuck: some ten times what the longest workload of the
    /// size needs.
    pub fn instructions_max(self) -> u64 {
        match self {
            Size::Tiny => 40_000_000_000,
            Size::Quick => 400_000_000_000,
            Size::Paper => 8_000_000_000_000,
        }
    }
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Size, Error> {
        Size::ALL.into_iter().find(|size| size.name() == text).ok_or_else(|| {
            let known = Size::ALL.map(Size::name).join(", ");
            Error::Request(format!("no size is called {text:?}; there are {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bonnie_has_a_disk_without_latency() {
        let board = Board::preset("metatm-2007").unwrap();
        for workload in Workload::all() {
            let latency = workload.board(board.clone()).disk.latency_cycles;
            assert_eq!(latency == 0, workload.name == "bonnie++", "{}", workload.name);
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = Workload::named("dbench").unwrap_err().to_string();
        assert!(error.starts_with("no workload is called \"dbench\"; there are pmake, bonnie++, "), "{error}");
        assert!("huge".parse::<Size>().is_err());
        assert_eq!("quick".parse::<Size>().unwrap(), Size::Quick);
    }
}

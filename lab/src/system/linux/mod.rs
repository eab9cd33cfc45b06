//! Linux: workloads of a root file system, on kernels that differ in their command line or their Image.
//!
//! Workloads, kernels and sizes are data: `linux.toml`.

use super::{Nouns, System, data};
use crate::experiment::Error;
use crate::experiment::cell::{BeginsAt, CellFile, Start};
use crate::experiment::files::{Files, GuestFile, Input};
use crate::experiment::measurement::Reading;
use crate::experiment::plan::Point;
use crate::experiment::request::{Experiment, MEMBER, SystemOptions};
use crate::experiment::variant::Variant;
use concord_dev::DiskMode;
use concord_machine::{Board, Configuration, DiskImage, Gear, Net};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Roles of a kernel's files in definitions and keys.
const IMAGE: &str = "image";
const SYMBOLS: &str = "symbols";
/// The root file system in keys.
const ROOT: &str = "root";

/// The role of a root file system's file in its guest.
const ROOT_ROLE: &str = "rootfs";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Linux {
    nouns: Nouns,
    /// Words of every command line, with `{case}` and `{size}`.
    words: String,
    /// The guest of kernels that name no other.
    kernel_guest: KernelGuest,
    sizes: Vec<Size>,
    kernels: Vec<Kernel>,
    workloads: Vec<Workload>,
}

/// A guest with a kernel, and the roles of its files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct KernelGuest {
    guest: String,
    image: String,
    symbols: Option<String>,
}

/// The work that a workload does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Size {
    name: String,
    /// Instructions of all harts together after which a run is taken to be stuck.
    instructions_max: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Kernel {
    name: String,
    words: String,
    /// Instead of the guest of all others.
    guest: Option<KernelGuest>,
    /// It is compared also where no kernel is named.
    #[serde(default = "yes")]
    is_default: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Workload {
    name: String,
    /// The guest whose root file system has the workload.
    root: String,
    /// What the workload does one of, `NAME:CASE`; empty for a workload that does one thing.
    #[serde(default)]
    cases: Vec<String>,
    /// Values of the board that the workload wants otherwise.
    #[serde(default)]
    board: toml::Table,
}

static LINUX: LazyLock<Linux> = LazyLock::new(|| data("linux", include_str!("linux.toml")));

/// The system.
pub fn system() -> &'static dyn System {
    &*LINUX
}

/// Puts the values of one table into another, table by table.
fn merge(into: &mut toml::Table, values: &toml::Table) {
    for (key, value) in values {
        match (into.get_mut(key), value) {
            (Some(toml::Value::Table(table)), toml::Value::Table(values)) => merge(table, values),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

impl Workload {
    /// The names by which the workload is chosen.
    fn full_names(&self) -> Vec<String> {
        if self.cases.is_empty() {
            return vec![self.name.clone()];
        }
        self.cases.iter().map(|case| format!("{}{MEMBER}{case}", self.name)).collect()
    }

    /// The board as the workload wants it.
    fn board(&self, board: &Board) -> Result<Board, Error> {
        if self.board.is_empty() {
            return Ok(board.clone());
        }
        let wrong =
            |why: String| Error::Request(format!("board of workload {}: {}", self.name, why.replace('\n', " ")));
        let mut table = toml::Table::try_from(board).map_err(|error| wrong(error.to_string()))?;
        merge(&mut table, &self.board);
        table.try_into().map_err(|error| wrong(error.to_string()))
    }
}

impl Linux {
    fn workload(&self, name: &str) -> Result<&Workload, Error> {
        let found = self.workloads.iter().find(|workload| workload.full_names().iter().any(|known| known == name));
        found.ok_or_else(|| Error::Request(format!("no workload is called {name:?}")))
    }

    fn guest_of(&self, kernel: &str) -> &KernelGuest {
        let found = self.kernels.iter().find(|known| known.name == kernel);
        found.and_then(|kernel| kernel.guest.as_ref()).unwrap_or(&self.kernel_guest)
    }

    /// Image and symbols of a kernel: the user's own, or the guest's.
    fn kernel_files(&self, kernel: &Variant, files: &Files) -> Result<BTreeMap<String, Input>, Error> {
        let mut inputs = BTreeMap::new();
        for role in [IMAGE, SYMBOLS] {
            if let Some(input) = files.given(&kernel.name, role) {
                inputs.insert(role.to_owned(), input.clone());
            }
        }
        if !inputs.contains_key(IMAGE) {
            let guest = self.guest_of(&kernel.name);
            let of_guest = |role: &str| files.of_guest(&GuestFile::new(&guest.guest, role)).cloned();
            inputs.insert(IMAGE.to_owned(), of_guest(&guest.image)?);
            if let Some(symbols) = guest.symbols.as_ref().filter(|_| !inputs.contains_key(SYMBOLS)) {
                inputs.insert(SYMBOLS.to_owned(), of_guest(symbols)?);
            }
        }
        Ok(inputs)
    }
}

impl System for Linux {
    fn name(&self) -> &str {
        "linux"
    }

    fn nouns(&self) -> &Nouns {
        &self.nouns
    }

    fn cases(&self, _options: &SystemOptions) -> Vec<String> {
        self.workloads.iter().flat_map(Workload::full_names).collect()
    }

    fn variants(&self, _options: &SystemOptions) -> Vec<Variant> {
        self.kernels.iter().map(|kernel| Variant::new(&kernel.name, &kernel.words)).collect()
    }

    fn default_variants(&self, _options: &SystemOptions) -> Vec<Variant> {
        let defaults = self.kernels.iter().filter(|kernel| kernel.is_default);
        defaults.map(|kernel| Variant::new(&kernel.name, &kernel.words)).collect()
    }

    fn sizes(&self) -> Vec<String> {
        self.sizes.iter().map(|size| size.name.clone()).collect()
    }

    fn definition_files(&self) -> Option<&[&str]> {
        Some(&[IMAGE, SYMBOLS])
    }

    fn guest_files(&self, experiment: &Experiment) -> Result<Vec<GuestFile>, Error> {
        let mut files = Vec::new();
        for case in &experiment.cases {
            files.push(GuestFile::new(&self.workload(case)?.root, ROOT_ROLE));
        }
        for kernel in experiment.variants.iter().filter(|kernel| !kernel.files.contains_key(IMAGE)) {
            let guest = self.guest_of(&kernel.name);
            files.extend(
                [&guest.image].into_iter().chain(&guest.symbols).map(|role| GuestFile::new(&guest.guest, role)),
            );
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    fn start(&self, point: &Point, files: &Files) -> Result<Start, Error> {
        let workload = self.workload(point.case)?;
        let size = self.sizes.iter().find(|size| Some(size.name.as_str()) == point.size);
        let size = size.ok_or_else(|| Error::Request("at least one size is wanted".to_owned()))?;
        let root = files.of_guest(&GuestFile::new(&workload.root, ROOT_ROLE))?.clone();
        let mut inputs = self.kernel_files(point.variant, files)?;
        let kernel = inputs[IMAGE].path.clone();
        let symbols = inputs.get(SYMBOLS).map(|symbols| symbols.path.clone());
        let disk = DiskImage { path: root.path.clone(), mode: DiskMode::Overlay };
        inputs.insert(ROOT.to_owned(), root);
        let fixed = self.words.replace("{case}", point.case).replace("{size}", &size.name);
        Ok(Start {
            configuration: Configuration {
                board: workload.board(&point.board)?,
                seed: point.seed,
                gear: Gear::Functional,
                kernel,
                initrd: None,
                append: point.command_line(&[&fixed, &point.variant.words]),
                disks: vec![disk],
                net: Net::None,
                check_isolation: point.experiment.check_isolation,
            },
            symbols,
            files: inputs,
            begins_at: BeginsAt::Region,
            instructions_max: point.experiment.instructions_max.unwrap_or(size.instructions_max),
            keeps_console: false,
        })
    }

    fn read(&self, file: &CellFile) -> Result<Reading, String> {
        match file.end_failure() {
            Some(why) => Err(why),
            None if !file.result.region => Err("the workload marked no region of interest".to_owned()),
            None => Ok(Reading::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn only_bonnie_has_a_disk_without_latency() {
        let board = Board::preset("metatm-2007").unwrap();
        for workload in &LINUX.workloads {
            let own = workload.board(&board).unwrap();
            assert_eq!(own.disk.latency_cycles == 0, workload.name == "bonnie++", "{}", workload.name);
            own.validate().unwrap();
        }
    }

    #[test]
    fn every_workload_has_its_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/linux/workloads");
        for workload in &LINUX.workloads {
            assert!(folder.join(&workload.name).exists(), "{}", workload.name);
        }
    }

    #[test]
    fn the_cases_of_contend_are_those_of_its_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/linux/programs");
        let mut of_program = Vec::new();
        for file in ["contend_tasks.c", "contend_memory.c", "contend_files.c"] {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            of_program.extend(text.split("{.name = \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
        let mut known = LINUX.workload("contend:futex").unwrap().cases.clone();
        known.sort();
        of_program.sort();
        assert_eq!(known, of_program);
    }

    #[test]
    fn every_guest_is_known() {
        let known: Vec<&str> = crate::guest::list().unwrap().iter().map(|guest| guest.name).collect();
        let roots = LINUX.workloads.iter().map(|workload| &workload.root);
        let kernels = LINUX.kernels.iter().map(|kernel| &LINUX.guest_of(&kernel.name).guest);
        for guest in roots.chain(kernels) {
            assert!(known.contains(&guest.as_str()), "{guest}");
        }
    }
}

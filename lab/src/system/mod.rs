//! Systems: what can be compared. Each is a folder with its data; docs/how-to/system.md says how to add one.

pub mod check_lines;
pub mod check_programs;
pub mod linux;
pub mod locks;
pub mod native;
pub mod stm;

use crate::experiment::Error;
use crate::experiment::cell::{CellFile, Start};
use crate::experiment::coordinate::Coordinate;
use crate::experiment::files::{Files, GuestFile};
use crate::experiment::measurement::Reading;
use crate::experiment::plan::Point;
use crate::experiment::request::{Experiment, SystemOptions};
use crate::experiment::variant::Variant;
use serde::Deserialize;
use std::fmt::Debug;

/// Every system. A new one is its module above, and a line here.
pub const REGISTRY: &[fn() -> &'static dyn System] = &[linux::system, locks::system, stm::system];

/// The system of this name.
///
/// # Errors
/// Names every system there is.
pub fn named(name: &str) -> Result<&'static dyn System, Error> {
    let all = || REGISTRY.iter().map(|system| system());
    all().find(|system| system.name() == name).ok_or_else(|| {
        let known = all().map(System::name).collect::<Vec<_>>().join(", ");
        Error::Request(format!("no system is called {name:?}; there are {known}"))
    })
}

/// Words by which a system calls its parts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Nouns {
    /// The system in the title of a report.
    pub title: String,
    /// The command, with which the folders of results begin.
    pub command: String,
    /// One thing that every variant does.
    pub case: String,
    /// One of the things that are compared.
    pub variant: String,
    /// Between a case and a variant.
    pub preposition: String,
    /// Their members in run files.
    pub case_field: String,
    pub variant_field: String,
    /// Whether charts of measurements have harts on their axis, and one chart a case; otherwise they have cases there.
    #[serde(default)]
    pub plots_harts: bool,
}

/// A family of guests: what they are, how a run of one begins, and how its result is read.
pub trait System: Debug + Send + Sync {
    /// The name by which declarations choose the system.
    fn name(&self) -> &str;

    fn nouns(&self) -> &Nouns;

    /// Names of all cases.
    fn cases(&self, options: &SystemOptions) -> Vec<String>;

    /// The system's own variants, in the order in which they are compared unless the user says otherwise.
    fn variants(&self, options: &SystemOptions) -> Vec<Variant>;

    /// Those of the system's own variants that are compared where none is named.
    fn default_variants(&self, options: &SystemOptions) -> Vec<Variant> {
        self.variants(options)
    }

    /// How a cell starts.
    ///
    /// # Errors
    /// If a file is missing.
    fn start(&self, point: &Point, files: &Files) -> Result<Start, Error>;

    /// Names of the sizes, smallest first; empty where a case has one size.
    fn sizes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of the options that the system knows.
    fn options(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Checks the values of options.
    ///
    /// # Errors
    /// Names the first value that is not allowed.
    fn check_options(&self, _options: &SystemOptions) -> Result<(), Error> {
        Ok(())
    }

    /// Roles of the files that a definition of a variant may give; none where there are no definitions.
    fn definition_files(&self) -> Option<&[&str]> {
        None
    }

    /// The numbers of harts that a case is run on.
    fn harts(&self, _case: &str, experiment: &Experiment) -> Vec<usize> {
        experiment.harts.clone()
    }

    /// Combinations of coordinates on axes of the system's own.
    fn further(&self, _case: &str, _experiment: &Experiment) -> Vec<Vec<Coordinate>> {
        vec![Vec::new()]
    }

    /// The files of guests that an experiment needs.
    ///
    /// # Errors
    /// If the experiment names what the system does not have.
    fn guest_files(&self, _experiment: &Experiment) -> Result<Vec<GuestFile>, Error> {
        Ok(Vec::new())
    }

    /// Whether a guest takes seconds to build and is built where it is missing.
    fn builds_on_demand(&self, _guest: &str) -> bool {
        false
    }

    /// Reads the result of a run.
    ///
    /// # Errors
    /// Says why nothing may be concluded from the run.
    fn read(&self, file: &CellFile) -> Result<Reading, String> {
        file.end_failure().map_or_else(|| Ok(Reading::default()), Err)
    }
}

/// The names of some variants, for a sentence.
pub fn join_names(variants: &[Variant]) -> String {
    variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The data of a built-in system.
///
/// # Panics
/// If the text is unsound, which a test finds.
fn data<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| panic!("the data of system {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::request::MEMBER;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_folder_is_in_the_registry() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/system");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let folders: BTreeSet<String> = entries
            .filter(|path| path.is_dir())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        let registered: BTreeSet<String> = REGISTRY.iter().map(|system| system().name().to_owned()).collect();
        assert_eq!(registered, folders);
        assert_eq!(registered.len(), REGISTRY.len(), "a name is registered twice");
    }

    #[test]
    fn an_unknown_system_is_told_the_known_ones() {
        let error = named("xinu").unwrap_err().to_string();
        assert_eq!(error, "no system is called \"xinu\"; there are linux, locks, stm");
    }

    #[test]
    fn names_are_sound() {
        for system in REGISTRY.iter().map(|system| system()) {
            let options = SystemOptions::new();
            let cases = system.cases(&options);
            let variants: Vec<String> = system.variants(&options).into_iter().map(|variant| variant.name).collect();
            for names in [&cases, &variants] {
                let distinct: BTreeSet<&String> = names.iter().collect();
                assert_eq!(distinct.len(), names.len(), "{}: {names:?}", system.name());
                let mut parts = names.iter().flat_map(|name| name.splitn(2, MEMBER));
                assert!(!names.is_empty() && parts.all(crate::experiment::variant::is_name));
            }
        }
    }
}

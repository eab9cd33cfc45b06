//! Files that cells are made of: those of guests, and those of the user's own. Each is known by the digest of its content.

use super::{Error, Experiment};
use crate::guest;
use crate::guest::progress::Progress;
use crate::system::System;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file and the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub path: PathBuf,
    pub blake3: String,
}

impl Input {
    /// A file of the user's own.
    ///
    /// # Errors
    /// If it cannot be read, or is no regular file, whose end may never come.
    pub fn of_file(path: &Path) -> Result<Input, Error> {
        let hash = || {
            let file = File::open(path)?;
            if !file.metadata()?.is_file() {
                return Err(std::io::Error::other("it is no regular file"));
            }
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file)?;
            Ok(hasher.finalize().to_hex().to_string())
        };
        // Snapshots and results name it, wherever the command is next given.
        let absolute = std::path::absolute(path).map_err(Error::file("find", path))?;
        Ok(Input { path: absolute, blake3: hash().map_err(Error::file("read", path))? })
    }
}

/// A file of a guest: the guest's name, and the file's role in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestFile {
    pub guest: String,
    pub role: String,
}

impl GuestFile {
    pub fn new(guest: &str, role: &str) -> GuestFile {
        GuestFile { guest: guest.to_owned(), role: role.to_owned() }
    }
}

/// Every file that the cells of an experiment are made of.
#[derive(Clone, Debug, Default)]
pub struct Files {
    of_guests: BTreeMap<GuestFile, Input>,
    /// By the variant's name and the file's role.
    given: BTreeMap<(String, String), Input>,
}

impl Files {
    /// Finds the files of an experiment. A guest that its system builds on demand is built where it is missing.
    ///
    /// # Errors
    /// If the experiment cannot be had, a guest is not built, or a file cannot be read.
    pub fn open(
        system: &dyn System,
        experiment: &Experiment,
        progress: impl Fn() -> Box<dyn Progress>,
    ) -> Result<Files, Error> {
        experiment.check(system)?;
        let mut files = Files::default();
        let mut guests = BTreeMap::new();
        for wanted in system.guest_files(experiment)? {
            let name = &wanted.guest;
            if !guests.contains_key(name) {
                let opened = match guest::open(name) {
                    Err(guest::Error::NotBuilt { .. }) if system.builds_on_demand(name) => {
                        guest::build(std::slice::from_ref(name), &guest::Options::default(), progress().as_ref())?
                            .swap_remove(0)
                    }
                    opened => opened?,
                };
                guests.insert(name.clone(), opened);
            }
            let guest = &guests[name];
            let artifact = guest.manifest.artifacts.get(&wanted.role).zip(guest.artifact(&wanted.role));
            if let Some((artifact, path)) = artifact {
                files = files.with(wanted, Input { path, blake3: artifact.blake3.clone() });
            }
        }
        files.with_given(experiment)
    }

    /// The same with a guest's file.
    #[must_use]
    pub fn with(mut self, file: GuestFile, input: Input) -> Files {
        self.of_guests.insert(file, input);
        self
    }

    /// The same with the files that the user has given to variants.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn with_given(mut self, experiment: &Experiment) -> Result<Files, Error> {
        for variant in &experiment.variants {
            for (role, path) in &variant.files {
                self.given.insert((variant.name.clone(), role.clone()), Input::of_file(path)?);
            }
        }
        Ok(self)
    }

    /// The file of a guest.
    ///
    /// # Errors
    /// If the guest has none in this role.
    pub fn of_guest(&self, file: &GuestFile) -> Result<&Input, Error> {
        let missing = || Error::Request(format!("guest {} has no file {:?}", file.guest, file.role));
        self.of_guests.get(file).ok_or_else(missing)
    }

    /// The file that the user has given to a variant in this role.
    pub fn given(&self, variant: &str, role: &str) -> Option<&Input> {
        self.given.get(&(variant.to_owned(), role.to_owned()))
    }
}

/// Reads a text of at most `bytes_max` bytes, so that a device without an end is refused and not read for ever.
///
/// # Errors
/// If it cannot be read, is longer, or is no UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    let mut text = String::new();
    let reader = File::open(path).map_err(Error::file("read", path))?;
    let count = reader.take(bytes_max + 1).read_to_string(&mut text).map_err(Error::file("read", path))?;
    if count as u64 > bytes_max {
        let allowed = bytes_max >> 20;
        return Err(Error::Request(format!("{}: longer than the {allowed} MiB that are read", path.display())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: longer than the 1 MiB that are read");
        let error = Input::of_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "cannot read /dev/zero: it is no regular file");
    }

    #[test]
    fn a_text_of_the_greatest_length_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert!(read_text(&path, 3).is_err());
        assert!(read_text(&folder.path().join("missing"), 4).is_err());
    }
}

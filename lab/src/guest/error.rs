//! What can go wrong while a guest is built: each value is one line that says what and where.

use std::io;
use std::path::{Path, PathBuf};

/// Why a guest could not be listed, opened or built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A guest was asked for that no recipe makes.
    #[error("no guest is called {name:?}; there are {known}")]
    UnknownGuest {
        /// The name as it was given.
        name: String,
        /// Every name there is.
        known: String,
    },
    /// A guest was asked for that is not in the cache.
    #[error("guest {name} is not built; `concord build {name}` builds it")]
    NotBuilt {
        /// The guest's name.
        name: &'static str,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where caches go.
    #[error("no place for built guests: neither XDG_CACHE_HOME nor HOME is set to an absolute path")]
    NoCacheFolder,
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A host program could not be started.
    #[error("cannot start {program}: {source}; `concord doctor` says which package holds it")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A host program ran and failed.
    #[error("{program} failed ({status}) to {purpose}: {telling_line}; everything it said is in {log}", log = log.display())]
    Command {
        /// The program.
        program: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// What it was to do, as a verb.
        purpose: String,
        /// The first error it reported, or else its last line.
        telling_line: String,
        /// The file with its whole output.
        log: PathBuf,
    },
    /// No entry of the machine's apt sources is a Debian mirror.
    #[error(
        "no Debian mirror in this machine's apt sources ({looked_at}); guests are made of Debian packages and need one"
    )]
    NoMirror {
        /// The files that were read.
        looked_at: String,
    },
    /// The machine's Debian keyring lacks the key of the suite that guests come from.
    #[error("{path} is missing, so packages of {suite} cannot be verified; install the current debian-archive-keyring", path = path.display())]
    NoKey {
        /// The key file.
        path: PathBuf,
        /// The suite it signs.
        suite: &'static str,
    },
    /// No index of packages has been fetched yet.
    #[error("no package index has been fetched yet; `concord build` fetches it")]
    NoIndex,
    /// A Debian package that a guest is made of is not installed on this machine.
    #[error("package {package} is not installed; `concord doctor` says how to install it")]
    MissingInput {
        /// The package.
        package: String,
    },
    /// A recipe or configuration asks for something that the tools did not deliver.
    #[error("guest {guest}: {what}")]
    Recipe {
        /// The guest's name.
        guest: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The folder of a built guest does not hold what the builder left there.
    #[error("{path}: guest {name} is damaged ({reason}); `concord build {name}` builds it again", path = path.display())]
    Damaged {
        /// The guest's name.
        name: String,
        /// Its folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: a file operation's error with its verb and path.
    pub(super) fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
        move |source| Error::File { action, path: path.to_owned(), source }
    }
}

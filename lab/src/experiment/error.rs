//! Why an experiment could not be made. A guest that fails is no error of this kind: it is a failed run.

use concord_machine::MachineError;
use concord_machine::output::OutputError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment could not be made; each value is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the user asked for cannot be had; the text says what and what can.
    #[error("{0}")]
    Request(String),
    /// A guest is missing or damaged.
    #[error(transparent)]
    Guest(#[from] crate::guest::Error),
    /// The machine could not be built or run on.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Another file operation failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The output folder belongs to another experiment.
    #[error("{folder} holds another comparison: {difference}; choose another folder with --output", folder = folder.display())]
    OtherComparison {
        /// The output folder.
        folder: PathBuf,
        /// What differs.
        difference: String,
    },
    /// The output folder has files, and none of them says that it is an experiment's.
    #[error("{folder} is not empty and holds no comparison; choose another folder with --output", folder = folder.display())]
    ForeignFolder {
        /// The folder.
        folder: PathBuf,
    },
}

impl Error {
    /// For `map_err`: a file operation's error with its verb and path.
    pub(crate) fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
        move |source| Error::File { action, path: path.to_owned(), source }
    }
}

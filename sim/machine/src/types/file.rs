//! Where types come from: a file that is read when they are first needed.

use super::Types;
use crate::data::wanted_types;
use crate::input;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file with types, as that of [`crate::symbols`].
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The types of the guest's data, or where they are. To read those of a kernel takes half a second, which a run without a conflict
/// need not spend.
#[derive(Debug)]
pub(crate) enum TypeFile {
    Unread(PathBuf),
    /// None if the file has none, or cannot be read.
    Read(Option<Types>),
}

impl TypeFile {
    /// The types, if they have been read.
    pub fn types(&self) -> Option<&Types> {
        match self {
            TypeFile::Unread(_) | TypeFile::Read(None) => None,
            TypeFile::Read(Some(types)) => Some(types),
        }
    }

    /// Reads the types unless that has been done.
    pub fn read(&mut self) {
        if let TypeFile::Unread(path) = self {
            *self = TypeFile::Read(read(path));
        }
    }
}

fn read(path: &Path) -> Option<Types> {
    // Names of data are not worth the failure of a run that has ended well, so every error means that there are no types.
    let bytes = is_elf(path).ok()?.then(|| input::read(path, FILE_BYTES_MAX).ok())??;
    Types::from_elf(&bytes, &wanted_types()).ok()?
}

/// Whether a file begins as ELF files do. A pipe, which can be read once only, is none.
fn is_elf(path: &Path) -> std::io::Result<bool> {
    let mut magic = [0; 4];
    Ok(path.metadata()?.is_file() && File::open(path)?.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF")
}

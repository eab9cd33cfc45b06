//! Where types come from: a file that is read when they are first needed.

use super::Types;
use crate::data::wanted_types;
use crate::input;
use crate::output::write_atomically;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file with types, as that of [`crate::symbols`].
const FILE_BYTES_MAX: u64 = 4 << 30;
/// The longest file with kept types: far more than those of a kernel take.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// The form of kept types. It changes with [`Types`], and with what is read of a file.
const KEPT_FORMAT: u32 = 1;

/// The types of the guest's data, or where they are. To read those of a kernel takes half a second, which a run without a conflict
/// need not spend.
#[derive(Debug)]
pub(crate) enum TypeFile {
    Unread {
        path: PathBuf,
        /// The file never changes, so what was read of it is kept beside it.
        is_kept: bool,
    },
    /// None if the file has none, or cannot be read.
    Read(Option<Types>),
}

impl TypeFile {
    /// The types, if they have been read.
    pub fn types(&self) -> Option<&Types> {
        match self {
            TypeFile::Unread { .. } | TypeFile::Read(None) => None,
            TypeFile::Read(Some(types)) => Some(types),
        }
    }

    /// Reads the types unless that has been done.
    pub fn read(&mut self) {
        if let TypeFile::Unread { path, is_kept } = self {
            *self = TypeFile::Read(if *is_kept { read_kept(path) } else { read(path) });
        }
    }
}

/// What [`read`] says of a file that never changes, if need be from a file beside it, which is written if it is not there. It
/// begins with a digest of what this version of the program keeps; another version reads and writes it anew.
fn read_kept(path: &Path) -> Option<Types> {
    let version = kept_version();
    let kept_path = path.with_extension("types");
    let kept = input::read(&kept_path, KEPT_BYTES_MAX).ok();
    if let Some(kept) = kept.as_deref().and_then(|bytes| bytes.strip_prefix(&version))
        && let Ok(types) = postcard::from_bytes(kept)
    {
        return Some(types);
    }
    let types = read(path)?;
    // A folder that cannot be written to costs the next run the same half a second.
    let _ = postcard::to_stdvec(&types).map(|bytes| write_atomically(&kept_path, &[&version[..], &bytes].concat()));
    Some(types)
}

fn kept_version() -> [u8; 32] {
    let wanted = wanted_types();
    let mut digest = blake3::Hasher::new();
    for names in [wanted.structures, wanted.enumerations, wanted.roots] {
        names.iter().for_each(|name| _ = digest.update(name.as_bytes()).update(b"\0"));
    }
    *digest.update(&KEPT_FORMAT.to_le_bytes()).finalize().as_bytes()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_types_replace_the_file_unless_another_version_kept_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vmlinux");
        let kept = folder.path().join("vmlinux.types");
        let constants = [("PGTY_slab".to_owned(), 245)].into();
        let types = Types { constants, ..Types::default() };
        let encoded = postcard::to_stdvec(&types).expect("types");
        std::fs::write(&kept, [&kept_version()[..], &encoded].concat()).expect("a file");
        let read = |is_kept| {
            let mut file = TypeFile::Unread { path: path.clone(), is_kept };
            file.read();
            file.types().cloned()
        };
        assert_eq!(read(true), Some(types));
        assert_eq!(read(false), None, "the file itself is not there");
        std::fs::write(&kept, [&[0; 32][..], &encoded].concat()).expect("a file");
        assert_eq!(read(true), None, "of another version");
        std::fs::write(&kept, [&kept_version()[..], &[255; 9]].concat()).expect("a file");
        assert_eq!(read(true), None, "damaged");
    }
}

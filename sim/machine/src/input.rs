//! Reads whole input files of a bounded size, so that no file that a user names fills the host's memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The most that is read from a pipe or a device, which does not say where it ends. A choice: a distribution kernel's
/// `System.map` has 10 MiB.
const ENDLESS_BYTES_MAX: u64 = 64 << 20;

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// If the file cannot be read, or is longer. A regular file that is too long is refused before any of it is read; of
/// any other kind of file at most 64 MiB are read.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let bytes_max = if metadata.is_file() { bytes_max } else { bytes_max.min(ENDLESS_BYTES_MAX) };
    if metadata.len() > bytes_max {
        return Err(too_long(bytes_max));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long(bytes_max)) } else { Ok(bytes) }
}

/// Reads a text file in the same way.
///
/// # Errors
/// As [`read`], and if the file is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let not_text = |_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, bytes_max)?).map_err(not_text)
}

fn too_long(bytes_max: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it is longer than {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_as_long_as_its_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, b"four").expect("written");
        assert_eq!(read(&path, 4).expect("fits"), b"four");
        assert_eq!(read_text(&path, 5).expect("fits"), "four");
        assert_eq!(read(&path, 3).expect_err("too long").to_string(), "it is longer than 3 bytes");
    }

    #[test]
    fn a_device_without_an_end_is_too_long() {
        let error = read(Path::new("/dev/zero"), u64::MAX).expect_err("endless");
        assert_eq!(error.to_string(), "it is longer than 67108864 bytes");
        assert_eq!(read(Path::new("/dev/null"), 0).expect("empty"), b"");
    }

    #[test]
    fn a_text_is_text() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, [0xff, 0xfe]).expect("written");
        assert_eq!(read_text(&path, 9).expect_err("no text").to_string(), "it is not UTF-8 text");
    }
}

//! Files that appear whole or not at all: results, snapshots, timelines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Temporary names that are tried before giving up.
const ATTEMPTS: u32 = 100;

/// Why an output file is not there.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}: {source}", path.display())]
pub struct OutputError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// A file under a temporary name beside its own until [`AtomicFile::commit`] renames it, so that a
/// failure leaves an existing file as it was. Dropping it uncommitted removes the temporary file.
///
/// A terminal, pipe or device, which cannot be renamed over, is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    /// Taken by `commit`.
    writer: Option<BufWriter<File>>,
    path: PathBuf,
    /// None for a file that is written directly.
    temporary: Option<PathBuf>,
}

impl AtomicFile {
    /// Starts a file that will have the name `path`. A file of this name may exist; it is replaced
    /// at the end.
    ///
    /// # Errors
    /// [`OutputError`] if the directory does not exist or cannot be written to, or if `path` is a
    /// directory. That is found here, before a long run, rather than at its end.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let fail = |source| OutputError { path: path.to_owned(), action: "create it", source };
        if is_descriptor(path) {
            let file = OpenOptions::new().append(true).open(path).map_err(fail)?;
            return Ok(Self { writer: Some(BufWriter::new(file)), path: path.to_owned(), temporary: None });
        }
        // Follows a symbolic link, so that the file it points to is replaced and not the link.
        let target = match std::fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(fail(error)),
        };
        match std::fs::metadata(&target) {
            Ok(existing) if existing.is_dir() => return Err(fail(io::ErrorKind::IsADirectory.into())),
            Ok(existing) if !existing.is_file() => {
                let file = OpenOptions::new().write(true).open(&target).map_err(fail)?;
                return Ok(Self { writer: Some(BufWriter::new(file)), path: target, temporary: None });
            }
            _ => {}
        }
        let name = target.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidFilename.into()))?;
        for attempt in 0..ATTEMPTS {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}.{attempt}.partial", std::process::id()));
            let temporary = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let writer = Some(BufWriter::new(file));
                    return Ok(Self { writer, path: target, temporary: Some(temporary) });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fail(error)),
            }
        }
        Err(fail(io::ErrorKind::AlreadyExists.into()))
    }

    /// The name that the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the buffered bytes, asks the host to keep it, and gives the file its name.
    ///
    /// # Errors
    /// [`OutputError`], for instance if the host's disk is full; an existing file is untouched.
    pub fn commit(mut self) -> Result<(), OutputError> {
        let path = self.path.clone();
        let fail = |action| {
            let path = path.clone();
            move |source| OutputError { path, action, source }
        };
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(|error| fail("write to it")(error.into_error()))?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        // Some file systems report a full disk only here.
        file.sync_all().map_err(fail("write to it"))?;
        std::fs::rename(temporary, &self.path).map_err(fail("rename the finished file to it"))?;
        self.temporary = None;
        Ok(())
    }

    /// Turns an error of [`Write`] into one that names the file.
    pub fn error(&self, source: io::Error) -> OutputError {
        OutputError { path: self.path.clone(), action: "write to it", source }
    }

    fn writer(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.writer.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The buffered bytes are of no use either.
            if let Some(writer) = self.writer.take() {
                drop(writer.into_parts());
            }
            // A hidden partial file does no harm, and a destructor has no way to report it.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Whether a path names an open file of this process. Even where a shell has redirected it to a
/// regular file, the file must stay the one that is open.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"].iter().any(|known| path.starts_with(known))
}

/// Writes a whole file, or leaves the existing one unchanged.
///
/// # Errors
/// As [`AtomicFile::create`] and [`AtomicFile::commit`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|source| file.error(source))?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_only_when_it_is_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("result.json");
        std::fs::write(&path, "old").expect("written");
        let mut file = AtomicFile::create(&path).expect("created");
        // More than the buffer holds, so that some of it reaches the disk.
        file.write_all(&[b'x'; 100_000]).expect("written");
        assert_eq!(std::fs::read(&path).expect("readable"), b"old");
        assert_eq!(names(directory.path()).len(), 2);
        drop(file);
        assert_eq!(std::fs::read(&path).expect("readable"), b"old");
        assert_eq!(names(directory.path()), ["result.json"]);

        write_atomically(&path, b"new").expect("written");
        assert_eq!(std::fs::read(&path).expect("readable"), b"new");
        assert_eq!(names(directory.path()), ["result.json"]);
    }

    #[test]
    fn two_writers_of_one_name_do_not_meet() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("result.json");
        let mut first = AtomicFile::create(&path).expect("created");
        let mut second = AtomicFile::create(&path).expect("created");
        first.write_all(b"first").expect("written");
        second.write_all(b"second").expect("written");
        first.commit().expect("named");
        assert_eq!(std::fs::read(&path).expect("readable"), b"first");
        second.commit().expect("named");
        assert_eq!(std::fs::read(&path).expect("readable"), b"second");
        assert_eq!(names(directory.path()), ["result.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        std::fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        write_atomically(&link, b"new").expect("written");
        assert_eq!(std::fs::read(&target).expect("readable"), b"new");
        assert!(link.is_symlink());
    }

    #[test]
    fn a_device_is_written_and_stays() {
        write_atomically(Path::new("/dev/null"), b"gone").expect("written");
        assert!(!std::fs::metadata("/dev/null").expect("there").is_file());
    }

    #[test]
    fn an_open_file_is_added_to() {
        use std::os::fd::AsRawFd;
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"console\n").expect("written");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        write_atomically(Path::new(&path), b"result").expect("written");
        assert_eq!(std::fs::read(&path).expect("readable"), b"console\nresult");
    }

    #[test]
    fn what_cannot_be_written_says_so() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), "").expect("written");
        let mut lines = String::new();
        for path in ["", "missing/result.json", "file/result.json"] {
            let error = write_atomically(&directory.path().join(path), b"x").expect_err("refused");
            lines.push_str(&format!("{error}\n"));
        }
        // Always full (full(4)).
        let error = write_atomically(Path::new("/dev/full"), b"x").expect_err("full");
        lines.push_str(&format!("{error}\n"));
        let lines = lines.replace(&directory.path().display().to_string(), "DIR");
        insta::assert_snapshot!(lines);
    }
}

//! Writes the "newc" cpio archive that the Linux kernel unpacks as its initial RAM file system.
//!
//! The format is the kernel's Documentation/driver-api/early-userspace/buffer-format.rst: a header of "070701" and 13 fields of
//! eight hexadecimal digits, the name with its NUL, the data, header and data each padded to four bytes. Owner, time and
//! inode numbers are the same for the same entries, so the archive is a function of what is put into it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// File type bits of a mode (`stat(2)`).
const TYPE_REGULAR: u32 = 0o100_000;
const TYPE_DIRECTORY: u32 = 0o040_000;
const TYPE_CHARACTER: u32 = 0o020_000;

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries_count: u32,
}

impl Archive {
    /// Appends a folder with permission bits `permissions`. A folder comes before what is in it.
    pub fn directory(&mut self, path: &str, permissions: u32) {
        self.entry(path, TYPE_DIRECTORY | permissions, (0, 0), &[]);
    }

    /// Appends a regular file.
    pub fn file(&mut self, path: &str, permissions: u32, data: &[u8]) {
        self.entry(path, TYPE_REGULAR | permissions, (0, 0), data);
    }

    /// Appends a character device node, which no file on an ordinary user's disk could stand for.
    pub fn character_device(&mut self, path: &str, permissions: u32, major: u32, minor: u32) {
        self.entry(path, TYPE_CHARACTER | permissions, (major, minor), &[]);
    }

    /// The archive with its trailer.
    pub fn finish(mut self) -> Vec<u8> {
        self.entries_count = u32::MAX; // the trailer's inode number becomes 0
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    /// Writes the archive with its trailer to a file, compressed as the kernel takes it.
    pub fn write_compressed(self, path: &Path) -> io::Result<()> {
        // The header of this compressor holds neither a name nor a time.
        let mut encoder = flate2::write::GzEncoder::new(fs::File::create(path)?, flate2::Compression::default());
        encoder.write_all(&self.finish())?;
        encoder.finish()?.flush()
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.entries_count = self.entries_count.wrapping_add(1);
        // A file of 4 GiB does not fit a RAM disk and cannot be expressed; the recipes' files are far below that.
        let data_bytes = u32::try_from(data.len()).expect("initial RAM disk file below 4 GiB");
        let name_bytes = path.len() as u32 + 1;
        let links_count = if mode & TYPE_DIRECTORY != 0 && mode & TYPE_REGULAR == 0 { 2 } else { 1 };
        let fields = [
            self.entries_count,
            mode,
            0, // user
            0, // group
            links_count,
            0, // modification time
            data_bytes,
            0, // device of the file system, major and minor
            0,
            device.0,
            device.1,
            name_bytes,
            0, // checksum, unused by newc
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// A reader written from the format's description: name, mode and data of each entry up to the trailer.
    fn read(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut offset = 0;
        loop {
            assert_eq!(&bytes[offset..offset + 6], b"070701");
            let field = |index: usize| {
                let at = offset + 6 + 8 * index;
                u32::from_str_radix(std::str::from_utf8(&bytes[at..at + 8]).unwrap(), 16).unwrap()
            };
            let (mode, data_bytes, name_bytes) = (field(1), field(6) as usize, field(11) as usize);
            let name_at = offset + 110;
            assert_eq!(bytes[name_at + name_bytes - 1], 0);
            let name = String::from_utf8(bytes[name_at..name_at + name_bytes - 1].to_vec()).unwrap();
            let data_at = (name_at + name_bytes).next_multiple_of(4);
            let data = bytes[data_at..data_at + data_bytes].to_vec();
            offset = (data_at + data_bytes).next_multiple_of(4);
            if name == "TRAILER!!!" {
                assert_eq!(offset, bytes.len());
                return entries;
            }
            entries.push((name, mode, data));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(files in prop::collection::vec(
            ("[a-z/._-]{1,40}", 0u32..0o1000, prop::collection::vec(any::<u8>(), 0..200)), 0..20))
        {
            let mut archive = Archive::default();
            for (name, permissions, data) in &files {
                archive.file(name, *permissions, data);
            }
            let expected: Vec<_> =
                files.into_iter().map(|(name, permissions, data)| (name, TYPE_REGULAR | permissions, data)).collect();
            prop_assert_eq!(read(&archive.finish()), expected);
        }
    }

    #[test]
    fn cpio_lists_every_kind_of_entry() {
        let mut archive = Archive::default();
        archive.directory("dev", 0o755);
        archive.character_device("dev/console", 0o600, 5, 1);
        archive.file("init", 0o755, b"#!/bin/sh\n");
        let mut cpio = match Command::new("cpio")
            .args(["--list", "--verbose", "--numeric-uid-gid", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        {
            Ok(child) => child,
            Err(error) => panic!("cpio is needed for this test (`concord doctor`): {error}"),
        };
        cpio.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        let output = cpio.wait_with_output().unwrap();
        assert!(output.status.success());
        let listing = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<(&str, &str)> =
            listing.lines().map(|line| (&line[..10], line.split("1970 ").nth(1).unwrap())).collect();
        assert_eq!(lines, [("drwxr-xr-x", "dev"), ("crw-------", "dev/console"), ("-rwxr-xr-x", "init")]);
    }
}

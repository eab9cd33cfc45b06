//! Makes an ext4 image of a folder, the same bytes for the same files whoever builds it and when.
//!
//! `mke2fs -d` copies owners and the time of the last status change from the host's file system, and no option of the versions
//! in use stops it. So the inodes get their owner and times from debugfs afterwards.

use super::error::Error;
use super::files::tree;
use super::process::{Runner, system_path, tool};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds since 1970 that every inode and the superblock carry: the first second of 2026.
const TIME_SECONDS: u64 = 1_767_225_600;
/// The identity of every image, and the seed of its directories' hashes.
const IDENTITY: &str = "c0c0c0de-0000-4000-8000-636f6e636f72";
/// The features of every image.
pub const CONFIGURATION: &str = include_str!("../../../workloads/linux/mke2fs.conf");
const BLOCK_BYTES: u64 = 4096;

/// Writes the files below `root` into a fresh ext4 image at `image`, with `free_bytes` of room beside them, and checks it.
/// All files belong to the superuser. `label` is the volume's (16 bytes at most), `work` a folder for intermediate files.
pub fn make(
    runner: &Runner,
    root: &Path,
    image: &Path,
    label: &str,
    free_bytes: u64,
    work: &Path,
) -> Result<(), Error> {
    let paths = tree(root)?;
    let mut used_bytes = 0;
    for path in &paths {
        let metadata = fs::symlink_metadata(path).map_err(Error::file("read", path))?;
        // Each file takes whole blocks, and an inode of a sixteenth of a block.
        used_bytes += metadata.len().next_multiple_of(BLOCK_BYTES) + BLOCK_BYTES / 16;
    }
    // Inode tables, bitmaps and journal take a twelfth or less; whole mebibytes look better.
    let size_kibibytes = ((used_bytes + free_bytes) / 11 * 12).next_multiple_of(1 << 20) >> 10;

    let configuration = work.join("mke2fs.conf");
    fs::write(&configuration, CONFIGURATION).map_err(Error::file("write", &configuration))?;
    let mut make = ext4_tool("mke2fs", work);
    make.args(["-q", "-F", "-t", "ext4", "-L", label, "-U", IDENTITY]);
    make.arg("-E").arg(format!("root_owner=0:0,hash_seed={IDENTITY},lazy_itable_init=0,lazy_journal_init=0"));
    make.arg("-d").arg(root).arg(image).arg(format!("{size_kibibytes}k"));
    runner.run(&mut make, "make the file system")?;

    let script = work.join("debugfs.script");
    fs::write(&script, inode_script(root, &paths)?).map_err(Error::file("write", &script))?;
    let mut fix = ext4_tool("debugfs", work);
    runner.run(fix.arg("-w").arg("-f").arg(&script).arg(image), "set owners and times in the file system")?;

    let mut check = ext4_tool("e2fsck", work);
    runner.run(check.args(["-f", "-n"]).arg(image), "check the file system")
}

fn ext4_tool(program: &str, work: &Path) -> Command {
    let mut command = tool(program);
    command
        .env("PATH", system_path())
        .env("MKE2FS_CONFIG", work.join("mke2fs.conf"))
        .env("E2FSPROGS_FAKE_TIME", TIME_SECONDS.to_string())
        .env("SOURCE_DATE_EPOCH", TIME_SECONDS.to_string());
    command
}

/// The debugfs commands that make every inode belong to the superuser and to one moment.
fn inode_script(root: &Path, paths: &[PathBuf]) -> Result<String, Error> {
    let mut script = String::new();
    let inside = paths.iter().map(|path| path.strip_prefix(root).unwrap_or(path));
    for path in inside.chain([Path::new("lost+found")]) {
        let name = path.to_str().filter(|name| !name.contains(['"', '\n']));
        let Some(name) = name else {
            let source = std::io::Error::other("its name cannot be given to debugfs");
            return Err(Error::File { action: "take", path: path.to_owned(), source });
        };
        for (field, value) in [("uid", "0".to_owned()), ("gid", "0".to_owned())]
            .into_iter()
            .chain(["atime", "ctime", "mtime", "crtime"].map(|field| (field, format!("@{TIME_SECONDS}"))))
        {
            let _ = writeln!(script, "set_inode_field \"/{name}\" {field} {value}");
        }
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::progress::Silent;
    use std::os::unix::fs::symlink;

    fn populate(root: &Path) {
        fs::create_dir_all(root.join("bin")).unwrap();
        for index in 0..40 {
            fs::write(root.join(format!("bin/program {index}")), vec![index; 3000 * usize::from(index)]).unwrap();
        }
        fs::hard_link(root.join("bin/program 1"), root.join("bin/twin")).unwrap();
        symlink("bin/program 2", root.join("link")).unwrap();
    }

    #[test]
    fn the_same_files_give_the_same_image() {
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner::new(folder.path().join("log"), &Silent).unwrap();
        let digest = |name: &str| {
            let work = folder.path().join(name);
            fs::create_dir(&work).unwrap();
            populate(&work.join("root"));
            let image = work.join("image");
            make(&runner, &work.join("root"), &image, "test", 1 << 20, &work).unwrap();
            blake3::hash(&fs::read(image).unwrap())
        };
        let first = digest("first");
        // The second's inodes carry another second of the host's clock, unless they are made to forget it.
        let started = std::time::SystemTime::now();
        while started.elapsed().unwrap() < std::time::Duration::from_millis(1100) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert_eq!(digest("second"), first);
    }

    #[test]
    fn a_name_that_debugfs_would_misread_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner::new(folder.path().join("log"), &Silent).unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a\"b"), b"").unwrap();
        let error = make(&runner, &root, &folder.path().join("image"), "test", 1 << 20, folder.path()).unwrap_err();
        assert!(error.to_string().contains("a\"b: its name cannot be given to debugfs"), "{error}");
    }
}

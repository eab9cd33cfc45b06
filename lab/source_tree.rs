//! Finds source files by walking folders, so that a new file or folder is never left out. The build script and a test use it.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the simulator's crates.
pub const SIMULATOR: &str = "sim";

/// What decides, beside the crates, how the simulator is compiled.
const WORKSPACE_FILES: [&str; 2] = ["Cargo.lock", "Cargo.toml"];

/// Folders of a crate that are not compiled into it, and so cannot change a run.
const TEST_FOLDERS: [&str; 4] = ["benches", "examples", "target", "tests"];

/// A file, or every file below a folder, in the order of their names. Leaves out what editors and patch programs leave behind.
pub fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    folder(path).iter().flat_map(|entry| files(entry)).collect()
}

/// Every file that decides what the simulator computes: everything below `sim` but the crates' tests, and the workspace's own files.
pub fn simulator(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for room in folder(&root.join(SIMULATOR)) {
        if room.is_file() {
            found.push(room);
            continue;
        }
        let is_test = |path: &Path| path.file_name().is_some_and(|name| TEST_FOLDERS.iter().any(|test| name == *test));
        found.extend(folder(&room).iter().filter(|path| path.is_file() || !is_test(path)).flat_map(|path| files(path)));
    }
    found.extend(WORKSPACE_FILES.map(|name| root.join(name)).into_iter().filter(|path| path.exists()));
    found
}

/// The entries of a folder in the order of their names.
fn folder(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    entries.retain(|entry| entry.file_name().and_then(|name| name.to_str()).is_some_and(|name| !is_left_over(name)));
    entries.sort();
    entries
}

/// Whether a name is hidden, or that of a backup.
fn is_left_over(name: &str) -> bool {
    name.starts_with('.') || [".orig", ".rej", "~"].iter().any(|end| name.ends_with(end))
}

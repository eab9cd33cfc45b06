//! Gives the machine's source code a name, so that results can tell whether the program that made them would make them again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms that decide what a run does, and what they are compiled with.
const SOURCES: [&str; 7] =
    ["sim/abi/src", "sim/isa/src", "sim/htm/src", "sim/mem/src", "sim/dev/src", "sim/machine/src", "Cargo.lock"];

fn main() {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let root = PathBuf::from(manifest).join("..");
    let mut hasher = blake3::Hasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        for file in files(&root.join(source)) {
            let name = file.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            let content = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            for part in [name.as_bytes(), content.as_slice()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
    }
    println!("cargo::rustc-env=CONCORD_MACHINE_DIGEST={}", hasher.finalize().to_hex());
}

/// A file, or every file below a folder, in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}

//! Gives the machine's source code a name, so that results can tell whether the program that made them would make them again; and puts
//! the sources of `tm`'s check programs into the program, which builds them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms that decide what a run does, and what they are compiled with.
const SOURCES: [&str; 7] =
    ["sim/abi/src", "sim/isa/src", "sim/htm/src", "sim/mem/src", "sim/dev/src", "sim/machine/src", "Cargo.lock"];

/// What the check programs for the machine are built from.
const TM_SOURCES: [&str; 9] = [
    "tm/Makefile",
    "tm/arch",
    "tm/check",
    "tm/htm",
    "tm/include",
    "tm/install.mk",
    "tm/lock",
    "tm/port/bare",
    "tm/stm",
];

/// What its modules for Linux are built from.
const TM_MODULE_SOURCES: [&str; 6] = ["tm/arch", "tm/htm", "tm/include", "tm/lock", "tm/port/linux", "tm/stm"];

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
    embed(&root, &TM_SOURCES, "tm_sources.rs");
    embed(&root, &TM_MODULE_SOURCES, "tm_module_sources.rs");
}

/// Writes a list of the names and contents of sources, as a slice.
fn embed(root: &Path, sources: &[&str], list_name: &str) {
    let root = fs::canonicalize(root).expect("the repository is there");
    let mut list = String::from("&[\n");
    for source in sources {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        for file in files(&root.join(source)) {
            let name = file.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            if is_tm_source(&name) {
                list.push_str(&format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string()));
            }
        }
    }
    list.push_str("]\n");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where output goes"));
    fs::write(folder.join(list_name), list).expect("the folder can be written");
}

/// Whether a file is one that people write for the compiler, the linker or make.
fn is_tm_source(name: &str) -> bool {
    let is_output = name.split('/').any(|part| part == "build");
    !is_output && [".c", ".h", ".S", ".ld", ".mk", "/Makefile", "/Kbuild"].iter().any(|end| name.ends_with(end))
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

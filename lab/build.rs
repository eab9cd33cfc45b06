//! Computes the digest of the simulator's sources, so that results can tell whether the program that made them would make them again; and puts
//! the sources of guests into the program, which builds them.

mod source_tree;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The lists of embedded files: the name of the list, the folders that are walked, and the folders and files in them that are left out
/// because they are compilers' output, or no guest is made of them.
const EMBEDDED: [(&str, &[&str], &[&str]); 3] = [
    ("linux_sources.rs", &["linux"], &["linux/model"]),
    ("rootfs_sources.rs", &["workloads/linux"], &[]),
    ("tm_sources.rs", &["tm"], &["tm/README.md", "tm/build", "tm/check/broken", "tm/man", "tm/model", "tm/rust"]),
];

fn main() {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let root = fs::canonicalize(PathBuf::from(manifest).join("..")).expect("the repository is there");
    let mut hasher = blake3::Hasher::new();
    for file in source_tree::simulator(&root) {
        let content = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for part in [name_below(&root, &file).as_bytes(), content.as_slice()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    println!("cargo::rustc-env=CONCORD_MACHINE_DIGEST={}", hasher.finalize().to_hex());
    for folder in [source_tree::SIMULATOR, "Cargo.lock", "Cargo.toml", "lab/build.rs", "lab/source_tree.rs"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    for (list_name, folders, left_out) in EMBEDDED {
        embed(&root, folders, left_out, list_name);
    }
}

/// Writes a list of the names and contents of the files in `folders`, as a slice.
fn embed(root: &Path, folders: &[&str], left_out: &[&str], list_name: &str) {
    let mut list = String::from("&[\n");
    for folder in folders {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        for file in source_tree::files(&root.join(folder)) {
            let name = name_below(root, &file);
            if !left_out.iter().any(|folder| Path::new(&name).starts_with(folder)) {
                list.push_str(&format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string()));
            }
        }
    }
    list.push_str("]\n");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where output goes"));
    fs::write(output.join(list_name), list).expect("the folder can be written");
}

fn name_below(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).expect("the file is below the root").to_string_lossy().into_owned()
}

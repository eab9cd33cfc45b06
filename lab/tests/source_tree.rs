//! The digest of the simulator's sources covers all of `sim`: a new crate, folder or file cannot be forgotten.

#[path = "../source_tree.rs"]
mod source_tree;

use std::fs;
use std::path::{Path, PathBuf};

/// Writes a tree of files and returns what the walk finds in it, below its root.
fn found(files: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
    }
    let names = source_tree::simulator(folder.path()).into_iter();
    names.map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_new_crate_folder_and_file_are_found() {
    let tree = [
        "Cargo.lock",
        "Cargo.toml",
        "lab/src/lib.rs",
        "sim/htm/Cargo.toml",
        "sim/htm/src/lib.rs",
        "sim/htm/tests/oracle/main.rs",
        "sim/machine/Cargo.toml",
        "sim/machine/boards/new/board.toml",
        "sim/machine/build.rs",
        "sim/machine/src/.lib.rs.swp",
        "sim/machine/src/execute/tests/mod.rs",
        "sim/machine/src/lib.rs~",
        "sim/translate/Cargo.toml",
        "sim/translate/src/host/x86_64.rs",
    ];
    let expected = [
        "sim/htm/Cargo.toml",
        "sim/htm/src/lib.rs",
        "sim/machine/Cargo.toml",
        "sim/machine/boards/new/board.toml",
        "sim/machine/build.rs",
        "sim/machine/src/execute/tests/mod.rs",
        "sim/translate/Cargo.toml",
        "sim/translate/src/host/x86_64.rs",
        "Cargo.lock",
        "Cargo.toml",
    ];
    assert_eq!(found(&tree), expected);
}

#[test]
fn every_crate_of_the_simulator_is_in_the_digest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = source_tree::simulator(&root);
    let rooms: Vec<PathBuf> = fs::read_dir(root.join("sim")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(rooms.len() >= 6, "{rooms:?}");
    for room in rooms {
        for part in [room.join("Cargo.toml"), room.join("src/lib.rs")] {
            assert!(sources.contains(&part), "{} is not in the digest", part.display());
        }
    }
    for file in ["Cargo.lock", "Cargo.toml"] {
        assert!(sources.contains(&root.join(file)), "{file} is not in the digest");
    }
}

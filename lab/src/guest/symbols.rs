//! The symbols of a kernel that was built here.

use super::cache::{MANIFEST, Manifest};
use std::fs;
use std::path::{Path, PathBuf};

/// The role of a kernel's file with symbols.
const SYMBOLS: &str = "vmlinux";

/// The `vmlinux` beside a kernel in the folder of its guest; none for any other kernel, and for one that is not as it was built.
pub fn symbols_of(kernel: &Path) -> Option<PathBuf> {
    let kernel = fs::canonicalize(kernel).ok()?;
    let folder = kernel.parent()?;
    let manifest: Manifest = serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()?;
    let is_whole = |path: &Path, size_bytes| fs::metadata(path).is_ok_and(|metadata| metadata.len() == size_bytes);
    let is_kernel = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == kernel);
    let known = manifest.artifacts.values().find(|artifact| is_kernel(&folder.join(&artifact.file)))?;
    let symbols = manifest.artifacts.get(SYMBOLS)?;
    let path = folder.join(&symbols.file);
    (is_whole(&kernel, known.size_bytes) && is_whole(&path, symbols.size_bytes)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::super::cache::Cache;
    use super::super::digest::Inputs;
    use super::*;

    #[test]
    fn a_kernel_has_the_symbols_that_it_was_built_with() {
        let root = tempfile::tempdir().unwrap();
        let staging = Cache::at(root.path()).stage("kernel").unwrap();
        for name in ["Image", "vmlinux"] {
            fs::write(staging.out().join(name), name).unwrap();
        }
        let artifacts = [("Image", String::from("Image")), ("vmlinux", String::from("vmlinux"))];
        let guest = staging.complete(&Cache::at(root.path()), "kernel", &Inputs::default(), &artifacts).unwrap();
        let (image, vmlinux) = (guest.directory.join("Image"), guest.directory.join("vmlinux"));

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&image, &link).unwrap();
        for kernel in [&image, &vmlinux, &link] {
            assert_eq!(symbols_of(kernel).unwrap().canonicalize().unwrap(), vmlinux.canonicalize().unwrap());
        }
        let stranger = guest.directory.join("other");
        fs::write(&stranger, "Image").unwrap();
        assert_eq!(symbols_of(&stranger), None);
        assert_eq!(symbols_of(&root.path().join("missing")), None);
        fs::write(&image, "another Image").unwrap();
        assert_eq!(symbols_of(&image), None);
    }
}

//! The `rootfs` and `benchmarks` guests: ext4 root file systems of Debian's riscv64 packages, with our init and workloads.

use super::cache::Staging;
use super::digest::Inputs;
use super::elf;
use super::error::Error;
use super::ext4;
use super::files::{put, set_permissions, tree};
use super::kernel::package_version;
use super::own_files;
use super::process::{tool, version};
use super::{Artifacts, Kitchen, Recipe};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The descriptions of root file systems in `workloads/linux`.
const DESCRIPTIONS: [&str; 2] = ["rootfs.toml", "benchmarks.toml"];

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "3";

/// The folder of shared libraries, where libraries that nothing needs are removed.
const LIBRARIES: &str = "usr/lib/riscv64-linux-gnu";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Description {
    packages: Vec<String>,
    /// The workloads that only a root file system with this description can run.
    workloads: BTreeSet<String>,
    /// Paths in the image, with everything below them.
    remove: BTreeSet<String>,
    /// What stays although the base removes it.
    keep: BTreeSet<String>,
    keep_libraries: BTreeSet<String>,
    links: Vec<(String, String)>,
    /// Empty folders.
    folders: Vec<String>,
    sources: Vec<SourceTree>,
    free_mebibytes: u64,
}

/// A part of a source archive that goes into the image.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceTree {
    /// The archive: a file of the host when absolute, else of the unpacked packages.
    archive: String,
    /// The Debian package of the host that brings the archive; without it a package of the guest does.
    #[serde(default)]
    host_package: Option<String>,
    /// The folder in the archive that the members are in.
    prefix: String,
    members: Vec<String>,
    /// The folder in the image that becomes `prefix`.
    to: String,
}

/// A root file system.
pub(super) struct Rootfs {
    name: &'static str,
    description: &'static str,
    /// The files that describe it: each adds to those before it.
    descriptions: &'static [&'static str],
}

/// The small one, which most tests boot.
pub(super) const ROOTFS: Rootfs = Rootfs {
    name: "rootfs",
    description: "ext4 root of Debian trixie's riscv64 packages (glibc) with stress-ng, bonnie++, iperf3 and our workloads",
    descriptions: &["rootfs.toml"],
};

/// The one with everything.
pub(super) const BENCHMARKS_ROOTFS: Rootfs = Rootfs {
    name: "benchmarks",
    description: "the rootfs and, for the workloads of the TxLinux paper, gcc, a part of a kernel's source and other sources",
    descriptions: &["rootfs.toml", "benchmarks.toml"],
};

impl Recipe for Rootfs {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn steps_count(&self) -> usize {
        5
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let description = self.description_files()?;
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        for name in self.descriptions {
            inputs.add(*name, own_files::text(name));
        }
        inputs.add("mke2fs.conf", ext4::CONFIGURATION);
        inputs.add("mke2fs", version(kitchen.runner, "mke2fs", "-V")?);
        own_files::inputs(kitchen, &self.left_out_workloads()?, &mut inputs)?;
        for package in description.sources.iter().filter_map(|source| source.host_package.as_deref()) {
            inputs.add(package, package_version(kitchen.runner, package)?);
        }
        for package in kitchen.archive()?.closure(&description.packages)? {
            inputs.add(package.name, format!("{} {}", package.version, package.hash));
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let description = self.description_files()?;
        let work = staging.work();
        let root = work.join("root");

        kitchen.step("download the packages");
        let archive = kitchen.archive()?;
        let mut packages = archive.closure(&description.packages)?;
        // base-files brings the links from /bin and /lib into /usr that the others' files must find.
        packages.sort_by_key(|package| package.name != "base-files");
        let files = archive.download(&packages)?;

        kitchen.step("unpack the packages");
        for file in files {
            let mut unpack = tool("dpkg-deb");
            kitchen.runner.run(unpack.arg("--extract").arg(&file).arg(&root), "unpack a package")?;
        }
        for source in &description.sources {
            source.unpack(kitchen, &root)?;
        }

        kitchen.step("add our own files and take away what nothing needs");
        for path in description.remove.difference(&description.keep) {
            self.remove(&root.join(path), path)?;
        }
        own_files::install(kitchen, &self.left_out_workloads()?, &root, &work.join("own"))?;
        for (path, target) in &description.links {
            let link = root.join(path);
            symlink(target, &link).map_err(Error::file("link", &link))?;
        }
        for path in &description.folders {
            let folder = root.join(path);
            fs::create_dir(&folder).map_err(Error::file("create", &folder))?;
        }
        self.remove_needless_libraries(&root, &description.keep_libraries)?;
        set_permissions(&root)?;

        kitchen.step("make and check the file system");
        let image = staging.out().join("rootfs.ext4");
        ext4::make(kitchen.runner, &root, &image, "concord", description.free_mebibytes << 20, &work)?;

        kitchen.step("list the packages");
        let list: String = packages.iter().map(|package| format!("{} {}\n", package.name, package.version)).collect();
        put(&staging.out().join("packages"), &list, false)?;
        Ok(vec![("rootfs", String::from("rootfs.ext4")), ("packages", String::from("packages"))])
    }
}

impl SourceTree {
    fn unpack(&self, kitchen: &Kitchen, root: &Path) -> Result<(), Error> {
        let folder = root.join(&self.to);
        fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
        let mut unpack = tool("tar");
        // A path that is absolute replaces what it is joined to.
        unpack.args(["--extract", "--strip-components=1", "--file"]).arg(root.join(&self.archive));
        unpack.arg("--directory").arg(&folder);
        unpack.args(self.members.iter().map(|member| format!("{}/{member}", self.prefix)));
        kitchen.runner.run(&mut unpack, "unpack sources")
    }
}

impl Rootfs {
    fn description_file(&self, name: &'static str) -> Result<Description, Error> {
        toml::from_str(own_files::text(name)).map_err(|error| self.wrong(format!("workloads/linux/{name}: {error}")))
    }

    /// The workloads that need what another root file system has.
    fn left_out_workloads(&self) -> Result<BTreeSet<String>, Error> {
        let mut left_out = BTreeSet::new();
        for name in DESCRIPTIONS.iter().filter(|name| !self.descriptions.contains(name)) {
            left_out.extend(self.description_file(name)?.workloads);
        }
        Ok(left_out)
    }

    fn description_files(&self) -> Result<Description, Error> {
        let mut whole = Description::default();
        for name in self.descriptions {
            let part = self.description_file(name)?;
            whole.packages.extend(part.packages);
            whole.workloads.extend(part.workloads);
            whole.remove.extend(part.remove);
            whole.keep.extend(part.keep);
            whole.keep_libraries.extend(part.keep_libraries);
            whole.links.extend(part.links);
            whole.folders.extend(part.folders);
            whole.sources.extend(part.sources);
            whole.free_mebibytes += part.free_mebibytes;
        }
        Ok(whole)
    }

    fn wrong(&self, what: String) -> Error {
        Error::Recipe { guest: self.name, what }
    }

    fn remove(&self, path: &Path, name: &str) -> Result<(), Error> {
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).map_err(Error::file("remove", path))
        } else if path.is_symlink() || path.exists() {
            fs::remove_file(path).map_err(Error::file("remove", path))
        } else {
            // A line that removes nothing is a misspelling, or a package has moved what it was to remove.
            Err(self.wrong(format!("no package has {name}, which a description in workloads/linux removes")))
        }
    }

    /// Removes the shared libraries that no program needs, and checks that the rest has all it needs.
    fn remove_needless_libraries(&self, root: &Path, keep: &BTreeSet<String>) -> Result<(), Error> {
        let libraries = root.join(LIBRARIES);
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut roots = keep.clone();
        let mut removable: Vec<(PathBuf, String)> = Vec::new();
        for path in tree(root)? {
            let is_link = path.is_symlink();
            if path.is_dir() || !path.exists() && !is_link {
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_in_libraries = path.parent() == Some(libraries.as_path());
            if is_in_libraries && !name.contains(".so") {
                // An object that the linker takes.
                continue;
            }
            if is_link && !is_in_libraries {
                continue;
            }
            // A link's own target may be missing (development links); then nothing can load it.
            let Ok(bytes) = fs::read(&path) else { continue };
            let Some(needed) = elf::needed_libraries(&bytes) else { continue };
            if is_in_libraries {
                let target = fs::canonicalize(&path).map_err(Error::file("read", &path))?;
                let target = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                // A link stands for its file: who needs the link needs the file.
                needs.insert(name.clone(), if is_link { vec![target] } else { needed });
                removable.push((path, name));
            } else {
                roots.extend(needed);
            }
        }
        let needed =
            elf::reachable(&roots, &needs).map_err(|name| self.wrong(format!("no package has the library {name}")))?;
        for (path, name) in removable {
            if !needed.contains(&name) {
                fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptions_are_well_formed() {
        for rootfs in [ROOTFS, BENCHMARKS_ROOTFS] {
            let description = rootfs.description_files().unwrap();
            assert!(description.packages.contains(&String::from("base-files")));
            let is_inside = |path: &String| !path.starts_with('/') && !path.contains("..");
            assert!(description.remove.iter().all(is_inside));
            assert!(description.links.iter().all(|(path, _)| is_inside(path)));
            assert!(description.folders.iter().all(is_inside));
            assert!(description.keep.is_subset(&description.remove), "{:?} is not removed anyway", description.keep);
            let others = rootfs.left_out_workloads().unwrap();
            assert!(description.workloads.is_disjoint(&others));
            assert!(description.workloads.union(&others).all(|name| own_files::has_workload(name)));
            assert!(description.sources.iter().all(|source| is_inside(&source.to) && !source.members.is_empty()));
        }
    }
}

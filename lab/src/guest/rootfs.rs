//! The `rootfs` guest: an ext4 root file system of Debian's riscv64 packages, with our init and workloads.

use super::cache::Staging;
use super::digest::Inputs;
use super::elf;
use super::error::Error;
use super::ext4;
use super::process::tool;
use super::{Artifacts, Kitchen, Recipe};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const RECIPE: &str = include_str!("../../../workloads/linux/rootfs.toml");
const HINT_SOURCE: &str = include_str!("../../../workloads/linux/concord-hint.c");
const FILE_SYSTEM_CONFIGURATION: &str = include_str!("../../../workloads/linux/mke2fs.conf");

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "1";

/// The folder of shared libraries, where libraries that nothing needs are removed.
const LIBRARIES: &str = "usr/lib/riscv64-linux-gnu";

macro_rules! overlay {
    ($($from:literal => $to:literal),* $(,)?) => {
        [$(($from, $to, include_str!(concat!("../../../workloads/linux/", $from)))),*]
    };
}

/// Our own files: name below `workloads/linux`, path in the image, content. A test holds the list complete.
const OVERLAY: [(&str, &str, &str); 12] = overlay! {
    "init" => "usr/sbin/init",
    "workloads/check" => "concord/workloads/check",
    "workloads/files" => "concord/workloads/files",
    "workloads/hello" => "concord/workloads/hello",
    "workloads/network" => "concord/workloads/network",
    "etc/fstab" => "etc/fstab",
    "etc/group" => "etc/group",
    "etc/hostname" => "etc/hostname",
    "etc/hosts" => "etc/hosts",
    "etc/nsswitch.conf" => "etc/nsswitch.conf",
    "etc/passwd" => "etc/passwd",
    "etc/profile" => "etc/profile",
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    packages: Vec<String>,
    remove: Vec<String>,
    keep_libraries: BTreeSet<String>,
    links: Vec<(String, String)>,
    free_mebibytes: u64,
}

pub(super) struct Rootfs;

impl Recipe for Rootfs {
    fn name(&self) -> &'static str {
        "rootfs"
    }

    fn description(&self) -> &'static str {
        "ext4 root of Debian trixie's riscv64 packages (glibc) with stress-ng, bonnie++, iperf3 and our workloads"
    }

    fn steps_count(&self) -> usize {
        5
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        inputs.add("rootfs.toml", RECIPE);
        inputs.add("mke2fs.conf", FILE_SYSTEM_CONFIGURATION);
        inputs.add("concord-hint.c", HINT_SOURCE);
        inputs.add("concord.h", concord_abi::header::text());
        for (name, to, content) in OVERLAY {
            inputs.add(format!("{name} as {to}"), content);
        }
        for (label, program, argument) in [("mke2fs", "mke2fs", "-V"), ("gcc", "riscv64-linux-gnu-gcc", "--version")] {
            let mut command = tool("sh");
            // mke2fs tells its version on standard error.
            command.env("PATH", super::system_path()).args(["-c", &format!("{program} {argument} 2>&1")]);
            let text =
                kitchen.runner.output(&mut command, "ask for a tool's version").map_err(|error| match error {
                    Error::Command { .. } => {
                        Error::Start { program: program.to_owned(), source: std::io::ErrorKind::NotFound.into() }
                    }
                    error => error,
                })?;
            inputs.add(label, text.lines().next().unwrap_or_default());
        }
        for package in kitchen.archive()?.closure(&self.description_file()?.packages)? {
            inputs.add(package.name, format!("{} {}", package.version, package.hash));
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let description = self.description_file()?;
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

        kitchen.step("add our own files and take away what nothing needs");
        self.compile_hint(kitchen, &work, &root.join("usr/bin/concord-hint"))?;
        for (_, to, content) in OVERLAY {
            put(&root.join(to), content, is_program(content))?;
        }
        for (path, target) in &description.links {
            let link = root.join(path);
            symlink(target, &link).map_err(Error::file("link", &link))?;
        }
        for path in &description.remove {
            self.remove(&root.join(path), path)?;
        }
        self.remove_needless_libraries(&root, &description.keep_libraries)?;
        set_permissions(&root)?;

        kitchen.step("make and check the file system");
        let image = staging.out().join("rootfs.ext4");
        ext4::make(kitchen.runner, &root, &image, description.free_mebibytes << 20, &work)?;

        kitchen.step("list the packages");
        let list: String = packages.iter().map(|package| format!("{} {}\n", package.name, package.version)).collect();
        put(&staging.out().join("packages"), &list, false)?;
        Ok(vec![("rootfs", String::from("rootfs.ext4")), ("packages", String::from("packages"))])
    }
}

impl Rootfs {
    fn description_file(&self) -> Result<Description, Error> {
        toml::from_str(RECIPE).map_err(|error| self.wrong(format!("workloads/linux/rootfs.toml: {error}")))
    }

    fn wrong(&self, what: String) -> Error {
        Error::Recipe { guest: self.name(), what }
    }

    fn compile_hint(&self, kitchen: &Kitchen, work: &Path, to: &Path) -> Result<(), Error> {
        let source = work.join("concord-hint.c");
        put(&source, HINT_SOURCE, false)?;
        put(&work.join("concord.h"), &concord_abi::header::text(), false)?;
        let mut compile = tool("riscv64-linux-gnu-gcc");
        compile.args([
            "-Os",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-march=rv64gc",
            "-mabi=lp64d",
            "-ffreestanding",
            "-fno-pie",
        ]);
        compile.args(["-fno-stack-protector", "-nostdlib", "-static", "-no-pie", "-s", "-Wl,--build-id=none", "-I"]);
        compile.arg(work).arg("-o").arg(to).arg(&source);
        kitchen.runner.run(&mut compile, "compile concord-hint")
    }

    fn remove(&self, path: &Path, name: &str) -> Result<(), Error> {
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).map_err(Error::file("remove", path))
        } else if path.is_symlink() || path.exists() {
            fs::remove_file(path).map_err(Error::file("remove", path))
        } else {
            // A line that removes nothing is a misspelling, or a package has moved what it was to remove.
            Err(self.wrong(format!("no package has {name}, which workloads/linux/rootfs.toml removes")))
        }
    }

    /// Removes the shared libraries that no program needs, and checks that the rest has all it needs.
    fn remove_needless_libraries(&self, root: &Path, keep: &BTreeSet<String>) -> Result<(), Error> {
        let libraries = root.join(LIBRARIES);
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut roots = keep.clone();
        let mut removable: Vec<(PathBuf, String)> = Vec::new();
        for path in ext4::tree(root)? {
            let is_link = path.is_symlink();
            if path.is_dir() || !path.exists() && !is_link {
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_in_libraries = path.parent() == Some(libraries.as_path());
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

fn is_program(content: &str) -> bool {
    content.starts_with("#!")
}

/// Writes a file and the folders above it. A symbolic link in its place is replaced, not followed.
fn put(path: &Path, content: &str, is_program: bool) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
    }
    if path.is_symlink() {
        fs::remove_file(path).map_err(Error::file("remove", path))?;
    }
    fs::write(path, content).map_err(Error::file("write", path))?;
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(Error::file("set the permissions of", path))
}

/// Permissions that do not depend on the builder's umask or on set-user-ID bits, which only a privileged builder could keep.
fn set_permissions(root: &Path) -> Result<(), Error> {
    for path in ext4::tree(root)? {
        let metadata = fs::symlink_metadata(&path).map_err(Error::file("read", &path))?;
        let inside = path.strip_prefix(root).unwrap_or(&path);
        let mode = match inside.to_str() {
            _ if metadata.is_symlink() => continue,
            Some("tmp" | "var/tmp") => 0o1777,
            Some("root") => 0o700,
            _ if metadata.is_dir() || metadata.permissions().mode() & 0o111 != 0 => 0o755,
            _ => 0o644,
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(Error::file("set the permissions of", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_well_formed() {
        let description = Rootfs.description_file().unwrap();
        assert!(description.packages.contains(&String::from("base-files")));
        let is_inside = |path: &String| !path.starts_with('/') && !path.contains("..");
        assert!(description.remove.iter().all(is_inside));
        assert!(description.links.iter().all(|(path, _)| is_inside(path)));
    }

    #[test]
    fn every_file_of_ours_is_in_the_image() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/linux");
        for part in ["workloads", "etc"] {
            let mut files: Vec<String> = fs::read_dir(folder.join(part))
                .unwrap()
                .map(|entry| format!("{part}/{}", entry.unwrap().file_name().to_str().unwrap()))
                .collect();
            files.sort();
            let listed: Vec<&str> =
                OVERLAY.iter().map(|(from, _, _)| *from).filter(|from| from.starts_with(&format!("{part}/"))).collect();
            assert_eq!(files, listed);
        }
    }
}

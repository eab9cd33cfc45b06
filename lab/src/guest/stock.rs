//! The `stock` guest: Debian's own riscv64 kernel, unmodified, and an initial RAM disk with the modules that a disk needs.
//!
//! Until trixie one package holds the kernel and its modules. Later releases split it: `linux-image-VERSION` holds neither and depends on
//! `linux-binary-VERSION` and `linux-modules-VERSION`. Both layouts are taken, and the unpacked files say which one it was.

use super::apt::{Archive, Package};
use super::cache::Staging;
use super::cpio;
use super::digest::Inputs;
use super::error::Error;
use super::modules::Modules;
use super::process::{system_path, tool};
use super::{Artifacts, Kitchen, Recipe};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

const RECIPE: &str = include_str!("../../../workloads/linux/stock.toml");
const INIT: &str = include_str!("../../../workloads/linux/initrd-init");

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    kernel_meta_package: String,
    busybox_package: String,
    modules: Vec<String>,
}

pub(super) struct Stock;

impl Recipe for Stock {
    fn name(&self) -> &'static str {
        "stock"
    }

    fn description(&self) -> &'static str {
        "Debian trixie's riscv64 kernel package, unmodified, with an initial RAM disk that mounts a disk or gives a shell"
    }

    fn steps_count(&self) -> usize {
        4
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        inputs.add("stock.toml", RECIPE);
        inputs.add("init", INIT);
        for package in self.packages(&self.description_file()?, &kitchen.archive()?)? {
            inputs.add(package.name, format!("{} {}", package.version, package.hash));
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let description = self.description_file()?;
        let (work, out) = (staging.work(), staging.out());

        kitchen.step("download the packages");
        let archive = kitchen.archive()?;
        let packages = self.packages(&description, &archive)?;
        let root = work.join("root");
        for file in archive.download(&packages)? {
            let mut unpack = tool("dpkg-deb");
            kitchen.runner.run(unpack.arg("--extract").arg(&file).arg(&root), "unpack a package")?;
        }
        let kernel = Unpacked::find(&root).map_err(|what| Error::Recipe { guest: self.name(), what })?;

        kitchen.step("order the modules");
        let mut depmod = tool("depmod");
        depmod.env("PATH", system_path()).arg("--basedir").arg(&kernel.base).arg(&kernel.version);
        kitchen.runner.run(&mut depmod, "find the modules' dependencies")?;

        kitchen.step("write the initial RAM disk");
        let path = out.join("initrd.cpio.gz");
        let initrd = self.initrd(kitchen, &description, &root, &kernel)?;
        initrd.write_compressed(&path).map_err(Error::file("write", &path))?;

        kitchen.step("copy the kernel");
        let boot = root.join("boot");
        for (from, to) in [("vmlinux", "Image"), ("config", "config")] {
            let from = boot.join(format!("{from}-{}", kernel.version));
            fs::copy(&from, out.join(to)).map_err(Error::file("copy", &from))?;
        }
        let image = out.join("Image");
        let bytes = fs::read(&image).map_err(Error::file("read", &image))?;
        // Documentation/arch/riscv/boot-image-header.rst: magic2 at byte 56.
        if bytes.get(56..60) != Some(b"RSC\x05") {
            let what = format!("Debian's kernel {} is not a RISC-V Image", kernel.version);
            return Err(Error::Recipe { guest: self.name(), what });
        }
        let artifact = |role: &'static str| (role, role.to_owned());
        Ok(vec![artifact("Image"), artifact("config"), ("initrd", String::from("initrd.cpio.gz"))])
    }
}

impl Stock {
    fn description_file(&self) -> Result<Description, Error> {
        let wrong = |error| Error::Recipe { guest: self.name(), what: format!("workloads/linux/stock.toml: {error}") };
        toml::from_str(RECIPE).map_err(wrong)
    }

    /// The packages of the kernel and of busybox, as the index names them now.
    fn packages(&self, description: &Description, archive: &Archive) -> Result<Vec<Package>, Error> {
        let names = [description.kernel_meta_package.clone(), description.busybox_package.clone()];
        select(archive.closure(&names)?, description).map_err(|what| Error::Recipe { guest: self.name(), what })
    }

    fn initrd(
        &self,
        kitchen: &Kitchen,
        description: &Description,
        root: &Path,
        kernel: &Unpacked,
    ) -> Result<cpio::Archive, Error> {
        let version = &kernel.version;
        let folder = kernel.base.join("lib/modules").join(version);
        let read = |path: &Path| fs::read_to_string(path).map_err(Error::file("read", path));
        let dependencies = read(&folder.join("modules.dep"))?;
        let builtin = read(&folder.join("modules.builtin"))?;
        let order = Modules::parse(&dependencies, &builtin).load_order(&description.modules).map_err(|module| {
            let what = format!("kernel {version} has no module {module}, which workloads/linux/stock.toml asks for");
            Error::Recipe { guest: self.name(), what }
        })?;

        let mut archive = cpio::Archive::default();
        for name in ["bin", "dev", "modules", "proc", "root", "sys", "tmp"] {
            archive.directory(name, 0o755);
        }
        // The kernel opens the first program's console before that program can mount anything.
        archive.character_device("dev/console", 0o600, 5, 1);
        archive.character_device("dev/null", 0o666, 1, 3);
        let busybox = root.join("usr/bin/busybox");
        archive.file("bin/busybox", 0o755, &fs::read(&busybox).map_err(Error::file("read", &busybox))?);
        archive.file("init", 0o755, INIT.as_bytes());
        let mut names = String::new();
        for path in order {
            let compressed = folder.join(path);
            let plain = if path.ends_with(".xz") {
                kitchen.runner.run(tool("xz").arg("--decompress").arg(&compressed), "unpack a module")?;
                compressed.with_extension("")
            } else {
                compressed
            };
            let name = plain.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            archive.file(&format!("modules/{name}"), 0o644, &fs::read(&plain).map_err(Error::file("read", &plain))?);
            names.push_str(&name);
            names.push('\n');
        }
        archive.file("modules/order", 0o644, names.as_bytes());
        Ok(archive)
    }
}

/// What the packages are called, before the version, that can hold the kernel or its modules.
const KERNEL_PACKAGES: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// Takes, of what installing the two packages of a description brings, those that hold the kernel, its modules and busybox: the kernel's
/// first, busybox last.
fn select(closure: Vec<Package>, description: &Description) -> Result<Vec<Package>, String> {
    let Description { kernel_meta_package, busybox_package, .. } = description;
    let place = |name: &str| {
        let place = KERNEL_PACKAGES.iter().position(|start| name.starts_with(start));
        let place = place.filter(|_| name != kernel_meta_package);
        place.or_else(|| (name == busybox_package).then_some(KERNEL_PACKAGES.len()))
    };
    let mut chosen: Vec<(usize, Package)> =
        closure.into_iter().filter_map(|package| Some((place(&package.name)?, package))).collect();
    chosen.sort_by_key(|(place, _)| *place);
    let lacks = |what: &str| Err(format!("installing {kernel_meta_package} and {busybox_package} brings no {what}"));
    if chosen.iter().all(|(place, _)| *place == KERNEL_PACKAGES.len()) {
        return lacks("kernel");
    }
    if chosen.iter().all(|(place, _)| *place != KERNEL_PACKAGES.len()) {
        return lacks("busybox");
    }
    Ok(chosen.into_iter().map(|(_, package)| package).collect())
}

/// Where the unpacked packages have the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Unpacked {
    /// What follows `vmlinux-` in the kernel's name.
    version: String,
    /// The folder that `lib/modules/VERSION` is in.
    base: PathBuf,
}

impl Unpacked {
    /// Looks for one kernel in `boot` and for its modules in `usr/lib/modules` or `lib/modules`. An error says what is missing.
    fn find(root: &Path) -> Result<Unpacked, String> {
        let boot =
            fs::read_dir(root.join("boot")).map_err(|error| format!("Debian's kernel packages: boot: {error}"))?;
        let names = boot.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut versions: Vec<String> =
            names.filter_map(|name| name.strip_prefix("vmlinux-").map(str::to_owned)).collect();
        let [version] = versions.as_mut_slice() else {
            return Err(format!("Debian's kernel packages have {} kernels boot/vmlinux-*, not one", versions.len()));
        };
        let version = std::mem::take(version);
        let bases = [root.join("usr"), root.to_owned()];
        let base = bases.into_iter().find(|base| base.join("lib/modules").join(&version).is_dir());
        let missing = || format!("Debian's kernel packages have no modules of kernel {version} in lib/modules");
        let base = base.ok_or_else(missing)?;
        Ok(Unpacked { version, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the packages that are taken from a made-up closure.
    fn selected(closure: &[&str]) -> Result<Vec<String>, String> {
        let package = |name: &&str| Package {
            name: (*name).to_owned(),
            version: String::from("1"),
            file_name: format!("{name}.deb"),
            hash: String::from("SHA256:0"),
        };
        let packages = select(closure.iter().map(package).collect(), &Stock.description_file().unwrap())?;
        Ok(packages.into_iter().map(|package| package.name).collect())
    }

    #[test]
    fn a_kernel_in_one_package_is_taken() {
        let closure =
            ["busybox-static", "kmod", "linux-base", "linux-image-6.12.57+deb13-riscv64", "linux-image-riscv64"];
        assert_eq!(selected(&closure).unwrap(), ["linux-image-6.12.57+deb13-riscv64", "busybox-static"]);
    }

    #[test]
    fn a_kernel_in_several_packages_is_taken() {
        let closure = [
            "busybox-static",
            "linux-base-6.19+deb14-riscv64",
            "linux-modules-6.19+deb14-riscv64",
            "linux-binary-6.19+deb14-riscv64",
            "linux-image-6.19+deb14-riscv64",
            "linux-image-riscv64",
        ];
        let expected = [
            "linux-image-6.19+deb14-riscv64",
            "linux-binary-6.19+deb14-riscv64",
            "linux-modules-6.19+deb14-riscv64",
            "busybox-static",
        ];
        assert_eq!(selected(&closure).unwrap(), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let message = |closure: &[&str]| selected(closure).unwrap_err();
        assert!(message(&["busybox-static", "linux-image-riscv64"]).ends_with("brings no kernel"));
        assert!(message(&["linux-image-6.12-riscv64"]).ends_with("brings no busybox"));
    }

    #[test]
    fn the_unpacked_files_say_where_the_kernel_is() {
        for (modules, base) in [("usr/lib/modules/6.12-riscv64", "usr"), ("lib/modules/6.12-riscv64", "")] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            assert!(Unpacked::find(root).unwrap_err().contains("boot"));
            fs::create_dir_all(root.join("boot")).unwrap();
            fs::write(root.join("boot/config-6.12-riscv64"), "").unwrap();
            assert!(Unpacked::find(root).unwrap_err().contains("0 kernels"));
            fs::write(root.join("boot/vmlinux-6.12-riscv64"), "").unwrap();
            assert!(Unpacked::find(root).unwrap_err().contains("no modules of kernel 6.12-riscv64"));
            fs::create_dir_all(root.join(modules)).unwrap();
            let expected = Unpacked { version: String::from("6.12-riscv64"), base: root.join(base) };
            assert_eq!(Unpacked::find(root).unwrap(), expected);
            fs::write(root.join("boot/vmlinux-7.0-riscv64"), "").unwrap();
            assert!(Unpacked::find(root).unwrap_err().contains("2 kernels"));
        }
    }

    #[test]
    fn the_description_is_well_formed() {
        let description = Stock.description_file().unwrap();
        assert!(description.modules.contains(&String::from("virtio_blk")));
    }
}

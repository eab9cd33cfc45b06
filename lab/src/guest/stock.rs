//! The `stock` guest: Debian's own riscv64 kernel, unmodified, and an initial RAM disk with the modules that a disk needs.

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
use std::path::Path;

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
        let [kernel, _] = &packages;
        let version = kernel.name.trim_start_matches("linux-image-");

        kitchen.step("order the modules");
        let mut depmod = tool("depmod");
        depmod.env("PATH", system_path()).arg("--basedir").arg(root.join("usr")).arg(version);
        kitchen.runner.run(&mut depmod, "find the modules' dependencies")?;

        kitchen.step("write the initial RAM disk");
        let path = out.join("initrd.cpio.gz");
        let initrd = self.initrd(kitchen, &description, &root, version)?;
        initrd.write_compressed(&path).map_err(Error::file("write", &path))?;

        kitchen.step("copy the kernel");
        let boot = root.join("boot");
        for (from, to) in [("vmlinux", "Image"), ("config", "config")] {
            let from = boot.join(format!("{from}-{version}"));
            fs::copy(&from, out.join(to)).map_err(Error::file("copy", &from))?;
        }
        let image = out.join("Image");
        let bytes = fs::read(&image).map_err(Error::file("read", &image))?;
        // Documentation/arch/riscv/boot-image-header.rst: magic2 at byte 56.
        if bytes.get(56..60) != Some(b"RSC\x05") {
            let what = format!("the kernel of {} {} is not a RISC-V Image", kernel.name, kernel.version);
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

    /// The kernel's package and busybox's, as the index names them now.
    fn packages(&self, description: &Description, archive: &Archive) -> Result<[Package; 2], Error> {
        let names = [description.kernel_meta_package.clone(), description.busybox_package.clone()];
        let closure = archive.closure(&names)?;
        let find = |what: &str, is_it: &dyn Fn(&str) -> bool| {
            closure.iter().find(|package| is_it(&package.name)).cloned().ok_or_else(|| {
                let what = format!("installing {} brings no {what}", names.join(" and "));
                Error::Recipe { guest: self.name(), what }
            })
        };
        let is_kernel = |name: &str| name.starts_with("linux-image-") && name != description.kernel_meta_package;
        Ok([find("kernel", &is_kernel)?, find("busybox", &|name| name == description.busybox_package)?])
    }

    fn initrd(
        &self,
        kitchen: &Kitchen,
        description: &Description,
        root: &Path,
        version: &str,
    ) -> Result<cpio::Archive, Error> {
        let folder = root.join("usr/lib/modules").join(version);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_well_formed() {
        let description = Stock.description_file().unwrap();
        assert!(description.modules.contains(&String::from("virtio_blk")));
    }
}

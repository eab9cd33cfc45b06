//! The `stock-amd64` guest: Debian's own kernel for ordinary PCs, unmodified, and the headers for its modules. An ordinary virtual machine boots it.

use super::apt::{self, Archive, Package};
use super::cache::Staging;
use super::digest::Inputs;
use super::error::Error;
use super::kernel_headers::HEADERS;
use super::process::tool;
use super::{Artifacts, Kitchen, Recipe};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const META_PACKAGES: [&str; 2] = ["linux-image-amd64", "linux-headers-amd64"];

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "1";

pub(super) struct StockAmd64;

impl Recipe for StockAmd64 {
    fn name(&self) -> &'static str {
        "stock-amd64"
    }

    fn description(&self) -> &'static str {
        "Debian bookworm's amd64 kernel package, unmodified, with the headers that its modules are built against"
    }

    fn steps_count(&self) -> usize {
        2
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        for package in self.packages(&kitchen.archive_of(&apt::AMD64)?)? {
            inputs.add(package.name, format!("{} {}", package.version, package.hash));
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let (work, out) = (staging.work(), staging.out());

        kitchen.step("download the packages");
        let archive = kitchen.archive_of(&apt::AMD64)?;
        let packages = self.packages(&archive)?;
        let [image, headers] = [work.join("image"), out.join("packages")];
        for (package, file) in packages.iter().zip(archive.download(&packages)?) {
            let root = if is_image(&package.name) { &image } else { &headers };
            let mut unpack = tool("dpkg-deb");
            kitchen.runner.run(unpack.arg("--extract").arg(&file).arg(root), "unpack a package")?;
        }

        kitchen.step("copy the kernel");
        let version = packages.iter().find_map(|package| package.name.strip_prefix("linux-image-")).unwrap_or_default();
        for (from, to) in [("vmlinuz", "vmlinuz"), ("config", "config"), ("System.map", "System.map")] {
            let from = image.join("boot").join(format!("{from}-{version}"));
            fs::copy(&from, out.join(to)).map_err(Error::file("copy", &from))?;
        }
        let folder = format!("packages/usr/src/linux-headers-{version}");
        relocate(&out.join(&folder).join("Makefile"))?;
        symlink(&folder, out.join(HEADERS)).map_err(Error::file("make a link in", &out))?;
        let symbols = ("Module.symvers", format!("{HEADERS}/Module.symvers"));
        let artifact = |role: &'static str| (role, role.to_owned());
        Ok(vec![artifact("vmlinuz"), artifact("config"), artifact("System.map"), symbols])
    }
}

impl StockAmd64 {
    /// Of what installing the kernel and its headers brings: the kernel, and what the headers are made of.
    fn packages(&self, archive: &Archive) -> Result<Vec<Package>, Error> {
        let mut packages = archive.closure(&META_PACKAGES.map(str::to_owned))?;
        packages.retain(|package| is_wanted(&package.name));
        let images = packages.iter().filter(|package| is_image(&package.name)).count();
        if packages.len() != 4 || images != 1 {
            let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
            let what = format!(
                "installing {} brings {}, not a kernel and its headers",
                META_PACKAGES.join(" and "),
                names.join(", ")
            );
            return Err(Error::Recipe { guest: self.name(), what });
        }
        Ok(packages)
    }
}

fn is_image(name: &str) -> bool {
    name.starts_with("linux-image-")
}

fn is_wanted(name: &str) -> bool {
    !META_PACKAGES.contains(&name)
        && ["linux-image-", "linux-headers-", "linux-kbuild-"].iter().any(|start| name.starts_with(start))
}

/// The headers' Makefile includes another one by its path on a machine where the packages are installed; make starts beside it.
fn relocate(makefile: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(makefile).map_err(Error::file("read", makefile))?;
    fs::write(makefile, text.replace("/usr/src/", "../")).map_err(Error::file("write", makefile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_and_the_parts_of_its_headers_are_wanted() {
        let names = [
            "linux-image-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-headers-amd64",
            "linux-headers-6.1.0-56-amd64",
            "linux-headers-6.1.0-56-common",
            "linux-kbuild-6.1",
            "linux-base",
            "linux-compiler-gcc-12-x86",
        ];
        let wanted: Vec<&str> = names.into_iter().filter(|name| is_wanted(name)).collect();
        assert_eq!(wanted, [names[1], names[3], names[4], names[5]]);
    }
}

//! The project's own files in the root file systems: configuration, workloads, and C programs compiled for them.
//!
//! What a file becomes follows from its folder in `workloads/linux`: `etc` becomes `/etc`, `workloads` becomes `/concord/workloads`, and the
//! makefile in `programs` compiles for `/usr/bin`.

use super::Kitchen;
use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::process::{tool, version};
use super::texts::{ROOTFS, below, machine_headers};
use std::collections::BTreeSet;
use std::path::Path;

/// The folder of the C programs' sources.
const PROGRAMS: &str = "workloads/linux/programs";

/// A file of ours in the image: its path in the repository, its path in the image, its content.
type Placed = (String, String, &'static str);

/// Our files in a root file system that lacks the workloads called `left_out`.
fn placed(left_out: &BTreeSet<String>) -> Vec<Placed> {
    let mut placed = Vec::new();
    for (from, to) in [("etc", "etc"), ("workloads", "concord/workloads")] {
        for (name, content) in below(ROOTFS, &format!("workloads/linux/{from}")) {
            if from != "workloads" || !left_out.contains(name) {
                placed.push((format!("{from}/{name}"), format!("{to}/{name}"), content));
            }
        }
    }
    placed.push((String::from("init"), String::from("usr/sbin/init"), text("init")));
    placed
}

/// The text of a file directly in `workloads/linux`.
pub fn text(name: &'static str) -> &'static str {
    let found = below(ROOTFS, "workloads/linux").find(|(path, _)| *path == name);
    found.unwrap_or_else(|| panic!("workloads/linux/{name} is not in the program")).1
}

/// Whether there is a workload of this name.
#[cfg(test)]
pub fn has_workload(name: &str) -> bool {
    below(ROOTFS, "workloads/linux/workloads").any(|(path, _)| path == name)
}

/// Adds everything of ours that decides what a root file system will be.
pub fn inputs(kitchen: &Kitchen, left_out: &BTreeSet<String>, inputs: &mut Inputs) -> Result<(), Error> {
    for (from, to, content) in placed(left_out) {
        inputs.add(format!("{from} as {to}"), content);
    }
    for (name, content) in below(ROOTFS, PROGRAMS) {
        inputs.add(format!("programs/{name}"), content);
    }
    for (name, content) in machine_headers() {
        inputs.add(name, content);
    }
    inputs.add("gcc", version(kitchen.runner, "riscv64-linux-gnu-gcc", "--version")?);
    let library = super::kernel::package_version(kitchen.runner, "libc6-dev-riscv64-cross")?;
    inputs.add("libc6-dev-riscv64-cross", library);
    Ok(())
}

/// Puts everything of ours into `root`. `work` is a folder for sources.
pub fn install(kitchen: &Kitchen, left_out: &BTreeSet<String>, root: &Path, work: &Path) -> Result<(), Error> {
    for (_, to, content) in placed(left_out) {
        put(&root.join(to), content, content.starts_with("#!"))?;
    }
    let (headers, programs) = (work.join("include"), work.join("programs"));
    for (name, content) in machine_headers() {
        put(&headers.join(name), &content, false)?;
        put(&root.join("usr/include").join(name), &content, false)?;
    }
    for (name, content) in below(ROOTFS, PROGRAMS) {
        put(&programs.join(name), content, false)?;
    }
    let mut compile = tool("make");
    compile.arg("--directory").arg(&programs);
    compile.arg(format!("OUT={}", root.join("usr/bin").display()));
    compile.arg(format!("INCLUDE={}", headers.display()));
    kitchen.runner.run(&mut compile, "compile our programs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_ours_is_used() {
        let placed = placed(&BTreeSet::new());
        for (path, _) in below(ROOTFS, "workloads/linux") {
            let is_recipe = path.ends_with(".toml") || ["initrd-init", "mke2fs.conf"].contains(&path);
            let is_used = is_recipe || path.starts_with("programs/") || placed.iter().any(|(from, _, _)| from == path);
            assert!(is_used, "workloads/linux/{path}: no guest is made of it");
        }
    }

    #[test]
    fn a_left_out_workload_is_not_placed() {
        let left_out = BTreeSet::from([String::from("pmake")]);
        let names = |left_out| placed(left_out).into_iter().map(|(_, to, _)| to).collect::<BTreeSet<_>>();
        let difference = &names(&BTreeSet::new()) - &names(&left_out);
        assert_eq!(difference, BTreeSet::from([String::from("concord/workloads/pmake")]));
    }
}

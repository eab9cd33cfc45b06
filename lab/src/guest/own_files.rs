//! What the root file systems have of ours: configuration, workloads, and C programs compiled for them.

use super::Kitchen;
use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::process::{tool, version};
use std::path::Path;

macro_rules! texts {
    ($($from:literal => $to:literal),* $(,)?) => {
        &[$(($from, $to, include_str!(concat!("../../../workloads/linux/", $from)))),*]
    };
}

/// A text: name below `workloads/linux`, path in the image (or nothing, for a source), content.
type Text = (&'static str, &'static str, &'static str);

/// In every root file system. A test holds the lists complete.
const EVERYWHERE: &[Text] = texts! {
    "init" => "usr/sbin/init",
    "workloads/bonnie++" => "concord/workloads/bonnie++",
    "workloads/check" => "concord/workloads/check",
    "workloads/costs" => "concord/workloads/costs",
    "workloads/dpunish" => "concord/workloads/dpunish",
    "workloads/files" => "concord/workloads/files",
    "workloads/hello" => "concord/workloads/hello",
    "workloads/locks" => "concord/workloads/locks",
    "workloads/network" => "concord/workloads/network",
    "workloads/stress" => "concord/workloads/stress",
    "workloads/torture" => "concord/workloads/torture",
    "etc/fstab" => "etc/fstab",
    "etc/group" => "etc/group",
    "etc/hostname" => "etc/hostname",
    "etc/hosts" => "etc/hosts",
    "etc/nsswitch.conf" => "etc/nsswitch.conf",
    "etc/passwd" => "etc/passwd",
    "etc/profile" => "etc/profile",
};

/// The workloads that need what only the `benchmarks` guest has.
const BENCHMARKS: &[Text] = texts! {
    "workloads/configure" => "concord/workloads/configure",
    "workloads/find" => "concord/workloads/find",
    "workloads/mab" => "concord/workloads/mab",
    "workloads/pmake" => "concord/workloads/pmake",
};

/// What the C programs are compiled from, beside the headers of the machine.
const SOURCES: &[Text] = texts! {
    "concord-hint.c" => "",
    "programs/concord-instances.c" => "",
    "programs/dpunish.c" => "",
    "programs/instances.c" => "",
    "programs/instances.h" => "",
};

/// A program for `usr/bin`: its name, its sources, and whether it does without a C library.
const PROGRAMS: [(&str, &[&str], bool); 3] = [
    ("concord-hint", &["concord-hint.c"], true),
    ("concord-instances", &["programs/concord-instances.c", "programs/instances.c"], false),
    ("dpunish", &["programs/dpunish.c", "programs/instances.c"], false),
];

/// The headers for programs that speak to the machine: name, content.
fn headers() -> [(&'static str, String); 2] {
    [("concord.h", concord_abi::header::text()), ("xmetatm.h", concord_abi::header::xmetatm_c::text())]
}

/// Our texts in a root file system, with those of the benchmarks or without.
fn texts(has_benchmarks: bool) -> impl Iterator<Item = &'static Text> {
    EVERYWHERE.iter().chain(BENCHMARKS.iter().filter(move |_| has_benchmarks))
}

/// Adds everything of ours that decides what a root file system will be.
pub fn inputs(kitchen: &Kitchen, has_benchmarks: bool, inputs: &mut Inputs) -> Result<(), Error> {
    for (name, to, content) in texts(has_benchmarks).chain(SOURCES) {
        inputs.add(format!("{name} as {to}"), content);
    }
    for (name, content) in headers() {
        inputs.add(name, content);
    }
    inputs.add("gcc", version(kitchen.runner, "riscv64-linux-gnu-gcc", "--version")?);
    let library = super::kernel::package_version(kitchen.runner, "libc6-dev-riscv64-cross")?;
    inputs.add("libc6-dev-riscv64-cross", library);
    Ok(())
}

/// Puts everything of ours into `root`. `work` is a folder for sources.
pub fn install(kitchen: &Kitchen, has_benchmarks: bool, root: &Path, work: &Path) -> Result<(), Error> {
    for (_, to, content) in texts(has_benchmarks) {
        put(&root.join(to), content, content.starts_with("#!"))?;
    }
    for (name, content) in headers() {
        put(&work.join(name), &content, false)?;
        put(&root.join("usr/include").join(name), &content, false)?;
    }
    for (name, _, content) in SOURCES {
        put(&work.join(name), content, false)?;
    }
    for (name, sources, is_freestanding) in PROGRAMS {
        let mut compile = tool("riscv64-linux-gnu-gcc");
        compile.args(["-Os", "-Wall", "-Wextra", "-Werror", "-march=rv64gc", "-mabi=lp64d"]);
        compile.args(["-static", "-no-pie", "-fno-pie", "-s", "-Wl,--build-id=none"]);
        if is_freestanding {
            compile.args(["-ffreestanding", "-fno-stack-protector", "-nostdlib"]);
        }
        compile.arg("-I").arg(work).arg("-o").arg(root.join("usr/bin").join(name));
        compile.args(sources.iter().map(|source| work.join(source)));
        kitchen.runner.run(&mut compile, &format!("compile {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_file_of_ours_is_in_an_image() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/linux");
        for part in ["workloads", "etc", "programs"] {
            let mut files: Vec<String> = fs::read_dir(folder.join(part))
                .unwrap()
                .map(|entry| format!("{part}/{}", entry.unwrap().file_name().to_str().unwrap()))
                .collect();
            files.sort();
            let mut listed: Vec<&str> = texts(true)
                .chain(SOURCES)
                .map(|(from, _, _)| *from)
                .filter(|from| from.starts_with(&format!("{part}/")))
                .collect();
            listed.sort_unstable();
            assert_eq!(files, listed);
        }
    }

    #[test]
    fn every_program_is_made_of_listed_sources() {
        for (_, sources, _) in PROGRAMS {
            assert!(sources.iter().all(|source| SOURCES.iter().any(|(from, _, _)| from == source)), "{sources:?}");
        }
    }
}

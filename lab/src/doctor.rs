//! What the host needs to build and run guests, what of it is missing, and the command that installs it.

use crate::guest::{AMD64_KEY, SUITE_KEY};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a requirement shows that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A program in one of the folders of programs.
    Program(&'static str),
    /// A file.
    File(&'static str),
}

/// One thing the host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    sign: Sign,
    /// The Debian package that brings it.
    pub package: &'static str,
    /// What it is for.
    pub purpose: &'static str,
}

impl Requirement {
    /// The program or file that is looked for.
    pub fn what(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) | Sign::File(name) => name,
        }
    }

    fn is_met(&self, folders: &[PathBuf]) -> bool {
        match self.sign {
            Sign::Program(name) => folders.iter().any(|folder| folder.join(name).is_file()),
            Sign::File(path) => Path::new(path).exists(),
        }
    }
}

const fn program(name: &'static str, package: &'static str, purpose: &'static str) -> Requirement {
    Requirement { sign: Sign::Program(name), package, purpose }
}

const fn file(path: &'static str, package: &'static str, purpose: &'static str) -> Requirement {
    Requirement { sign: Sign::File(path), package, purpose }
}

const KERNEL: &str = "to build the kernel";
const PACKAGES: &str = "to fetch and unpack packages for guests";
const FILE_SYSTEM: &str = "to make and check file systems";
const LIBRARY: &str = "to check the library of locks and transactions as it is installed";
const COMPARE: &str = "to compare with another simulator in tests and benchmarks";

const REQUIREMENTS: [Requirement; 40] = [
    program("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu", "to compile for riscv64"),
    program("riscv64-linux-gnu-ld", "binutils-riscv64-linux-gnu", "to link for riscv64"),
    file("/usr/riscv64-linux-gnu/lib/libc.a", "libc6-dev-riscv64-cross", "to link guest programs"),
    file("/usr/src/linux-source-6.12.tar.xz", "linux-source-6.12", KERNEL),
    program("make", "make", KERNEL),
    program("gcc", "gcc", KERNEL),
    program("flex", "flex", KERNEL),
    program("bison", "bison", KERNEL),
    program("bc", "bc", KERNEL),
    program("perl", "perl", KERNEL),
    program("patch", "patch", KERNEL),
    program("ccache", "ccache", KERNEL),
    file("/usr/include/libelf.h", "libelf-dev", KERNEL),
    file("/usr/include/openssl/ssl.h", "libssl-dev", KERNEL),
    program("xz", "xz-utils", "to unpack the kernel's source and modules"),
    program("tar", "tar", "to unpack the kernel's source"),
    program("depmod", "kmod", "to order kernel modules"),
    program("apt-get", "apt", PACKAGES),
    program("dpkg-deb", "dpkg", PACKAGES),
    program("flock", "util-linux", PACKAGES),
    file(SUITE_KEY, "debian-archive-keyring", "to verify packages"),
    file(AMD64_KEY, "debian-archive-keyring", "to verify packages"),
    program("mke2fs", "e2fsprogs", FILE_SYSTEM),
    program("debugfs", "e2fsprogs", FILE_SYSTEM),
    program("e2fsck", "e2fsprogs", FILE_SYSTEM),
    program("cpio", "cpio", "to test initial RAM disks"),
    program("spin", "spin", "to check models of locks and transactions"),
    file("/usr/include/ck_spinlock.h", "libck-dev", "to measure locks beside another library's"),
    program("mandoc", "mandoc", LIBRARY),
    program("groff", "groff-base", LIBRARY),
    program("pkg-config", "pkgconf", LIBRARY),
    program("clang", "clang", LIBRARY),
    program("g++", "g++", LIBRARY),
    program("gcc-12", "gcc-12", "to build modules for Debian's amd64 kernel"),
    file("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev", "to link guest programs"),
    program("qemu-system-x86_64", "qemu-system-x86", "to test modules for Debian's amd64 kernel"),
    program("qemu-system-riscv64", "qemu-system-misc", COMPARE),
    program("chromium", "chromium", "to test the reports of comparisons"),
    program("cc", "gcc", "to link Rust programs"),
    program("cmake", "cmake", "to compile the floating-point library"),
];

/// The state of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is there.
    pub met: Vec<Requirement>,
    /// What is not.
    pub missing: Vec<Requirement>,
    /// The packages to install, each once, sorted; empty when nothing is missing.
    pub packages: Vec<&'static str>,
    is_superuser: bool,
}

impl Report {
    /// The one shell command that installs what is missing; `None` when nothing is.
    pub fn command(&self) -> Option<String> {
        let sudo = if self.is_superuser { "" } else { "sudo " };
        let packages = self.packages.join(" ");
        let commands =
            format!("{sudo}apt-get update && {sudo}apt-get install --yes --no-install-recommends {packages}");
        (!self.packages.is_empty()).then_some(commands)
    }
}

/// Why the missing packages could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command could not be started.
    #[error("cannot start {program}: {source}; install by hand: {command}")]
    Start {
        /// The program.
        program: &'static str,
        /// The system's reason.
        source: std::io::Error,
        /// The command to give by hand.
        command: String,
    },
    /// The command failed.
    #[error("`{command}` failed ({status})")]
    Command {
        /// The command.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
    },
    /// The command succeeded and something is missing still.
    #[error("still missing after the installation: {what}")]
    StillMissing {
        /// What.
        what: String,
    },
}

/// Looks at the host. Changes nothing.
pub fn check() -> Report {
    let path = crate::guest::system_path();
    report(&std::env::split_paths(&path).collect::<Vec<_>>(), is_superuser())
}

/// Installs what is missing with apt, with sudo where the user is not the superuser, and looks again. Does nothing when nothing is
/// missing. apt's own words go to standard error.
pub fn install() -> Result<Report, Error> {
    let report = check();
    let Some(command) = report.command() else { return Ok(report) };
    let start = |source| Error::Start { program: "sh", source, command: command.clone() };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {command}; }} >&2")]).env("DEBIAN_FRONTEND", "noninteractive");
    let status = shell.status().map_err(start)?;
    if !status.success() {
        return Err(Error::Command { command, status });
    }
    let report = check();
    if report.missing.is_empty() {
        return Ok(report);
    }
    let name = |requirement: &Requirement| format!("{} of {}", requirement.what(), requirement.package);
    Err(Error::StillMissing { what: report.missing.iter().map(name).collect::<Vec<_>>().join(", ") })
}

fn report(folders: &[PathBuf], is_superuser: bool) -> Report {
    let (met, missing): (Vec<_>, Vec<_>) =
        REQUIREMENTS.into_iter().partition(|requirement| requirement.is_met(folders));
    let mut packages: Vec<&str> = missing.iter().map(|requirement| requirement.package).collect();
    packages.sort_unstable();
    packages.dedup();
    Report { met, missing, packages, is_superuser }
}

/// The owner of this process's entry in /proc is its effective user.
fn is_superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_where_no_programs_are() {
        let report = report(&[PathBuf::from("/nonexistent")], false);
        assert!(report.missing.iter().any(|requirement| requirement.what() == "mke2fs"));
        assert_eq!(report.packages.iter().filter(|package| **package == "e2fsprogs").count(), 1);
        assert!(report.packages.is_sorted());
        let command = report.command().unwrap();
        assert!(command.starts_with("sudo apt-get update && sudo apt-get install --yes "), "{command}");
        assert!(command.contains(" e2fsprogs "), "{command}");
    }

    #[test]
    fn a_program_counts_only_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mke2fs"), b"").unwrap();
        let report = report(&[folder.path().to_owned()], true);
        assert!(report.met.iter().any(|requirement| requirement.what() == "mke2fs"));
        assert!(report.missing.iter().any(|requirement| requirement.what() == "e2fsck"));
        assert!(report.command().unwrap().starts_with("apt-get update && apt-get install "));
    }

    #[test]
    fn nothing_missing_needs_no_command() {
        let report = Report { met: Vec::new(), missing: Vec::new(), packages: Vec::new(), is_superuser: false };
        assert_eq!(report.command(), None);
    }
}

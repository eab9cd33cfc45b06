//! The `tm` guest: the check programs of locks and software transactions, for bare harts.

use super::cache::Staging;
use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::process::{tool, version};
use super::texts::{TM, Text};
use super::{Artifacts, Kitchen, Recipe};
use std::fs;

/// Raised when the commands below change in a way that changes the programs.
const RECIPE_VERSION: &str = "3";

/// The port's constants: for the largest machine, and sets that grow.
const LARGE: [&str; 3] = ["HARTS_MAX=64", "ARENA_BYTES=67108864", "ORECS_LOG2=14"];

/// The folder that debug information names instead of the work folder, whose name is another one each time.
const DEBUG_FOLDER: &str = "/usr/src/concord";

/// The sources: all but the port for Linux.
fn sources() -> impl Iterator<Item = Text> {
    TM.iter().copied().filter(|(path, _)| !path.starts_with("tm/port/linux/"))
}

/// A program: its role, its place in make's output, and whether it is one of those whose library counts.
struct Program {
    role: &'static str,
    target: &'static str,
    counts: bool,
}

const fn program(role: &'static str, target: &'static str) -> Program {
    Program { role, target, counts: false }
}

const PROGRAMS: [Program; 10] = [
    program("locks-benchmark", "check/locks/benchmark.elf"),
    Program { counts: true, ..program("locks-benchmark-counting", "check/locks/benchmark.elf") },
    program("locks-validate", "check/locks/validate.elf"),
    program("stm-bench-spinlock", "check/stm/bench-spinlock.elf"),
    program("stm-bench-plain-2pl", "check/stm/bench-plain-2pl.elf"),
    program("stm-bench-plain-tl2", "check/stm/bench-plain-tl2.elf"),
    program("stm-bench-itm-2pl", "check/stm/bench-itm-2pl.elf"),
    program("stm-bench-itm-tl2", "check/stm/bench-itm-tl2.elf"),
    program("stm-validate-2pl", "check/stm/validate-2pl.elf"),
    program("stm-validate-tl2", "check/stm/validate-tl2.elf"),
];

pub(super) struct Tm;

impl Recipe for Tm {
    fn name(&self) -> &'static str {
        "tm"
    }

    fn description(&self) -> &'static str {
        "the check programs of locks and software transactions, for bare harts: ELF files"
    }

    fn steps_count(&self) -> usize {
        1
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        for (path, content) in sources() {
            inputs.add(path, content);
        }
        for program in ["gcc", "ld"] {
            let program = format!("riscv64-linux-gnu-{program}");
            let version = version(kitchen.runner, &program, "--version")?;
            inputs.add(program, version);
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        kitchen.step("compile");
        let (work, out) = (staging.work(), staging.out());
        for (path, content) in sources() {
            put(&work.join(path), content, false)?;
        }
        let mut artifacts = Artifacts::new();
        for counts in [false, true] {
            let objects = work.join(if counts { "counting" } else { "plain" });
            let programs = || PROGRAMS.iter().filter(|program| program.counts == counts);
            let mut compile = tool("make");
            compile
                .arg("--no-print-directory")
                .arg("--directory")
                .arg(work.join("tm"))
                .arg(format!("--jobs={}", kitchen.jobs));
            compile.args(["HOST=bare", if counts { "OPTIONS=-DTM_STATISTICS=1" } else { "OPTIONS=" }]);
            compile.args(LARGE).arg(format!("BUILD={}", objects.display()));
            compile.arg(format!("CC=riscv64-linux-gnu-gcc -fdebug-prefix-map={}={DEBUG_FOLDER}", work.display()));
            compile.args(programs().map(|program| objects.join(program.target)));
            kitchen.runner.run(&mut compile, "compile the check programs")?;
            for program in programs() {
                let (from, file) = (objects.join(program.target), format!("{}.elf", program.role));
                fs::copy(&from, out.join(&file)).map_err(Error::file("copy", &from))?;
                artifacts.push((program.role, file));
            }
        }
        Ok(artifacts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{locks, stm};

    #[test]
    fn every_program_that_the_commands_run_is_made() {
        for role in [locks::programs(), stm::programs()].into_iter().flat_map(|programs| programs.programs()) {
            assert!(PROGRAMS.iter().any(|program| program.role == role), "{role}");
        }
    }

    #[test]
    fn sources_are_there_and_output_is_not() {
        for wanted in
            ["tm/Makefile", "tm/port/bare/trap.S", "tm/port/bare/runtime/link.ld", "tm/arch/riscv64/xmetatm.h"]
        {
            assert!(sources().any(|(path, content)| path == wanted && !content.is_empty()), "{wanted}");
        }
        assert!(!sources().any(|(path, _)| path.contains("/build/")));
    }

    /// What tm installs has the version of the whole: tm cannot read it from outside of its folder.
    #[test]
    fn tm_has_the_version_of_this_workspace() {
        let (_, makefile) = sources().find(|(path, _)| *path == "tm/install.mk").unwrap();
        assert!(makefile.contains(&format!("\nVERSION = {}\n", env!("CARGO_PKG_VERSION"))));
    }
}

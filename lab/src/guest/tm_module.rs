//! The `tm-module` guests: the library of locks and transactions as a module for a kernel, once with each algorithm of transactions, and an
//! initial RAM disk that loads and unloads them.

use super::cache::Staging;
use super::cpio;
use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::kernel::CROSS_COMPILE;
use super::kernel_headers::{HEADERS, TXLINUX_HEADERS};
use super::process::{tool, version};
use super::stock_amd64::StockAmd64;
use super::texts::{TM, Text};
use super::{Artifacts, Kitchen, Recipe};
use std::fs;
use std::path::Path;

/// The sources: all but the other ports and the checks.
fn sources() -> impl Iterator<Item = Text> {
    const LEFT_OUT: [&str; 4] = ["tm/check/", "tm/port/bare/", "tm/port/user/", "workloads/bare/"];
    TM.iter().copied().filter(|(path, _)| !LEFT_OUT.iter().any(|folder| path.starts_with(folder)))
}

/// Algorithms of transactions, with the roles of their modules.
const ALGORITHMS: [(&str, &str); 2] = [("2pl", "module-2pl"), ("tl2", "module-tl2")];

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "2";

/// The modules for one kernel.
pub(super) struct TmModule {
    name: &'static str,
    description: &'static str,
    /// The guest with the kernel's headers.
    headers: &'static dyn Recipe,
    /// What the kernel's make is told of the architecture.
    architecture: &'static str,
    cross_compile: &'static str,
}

pub(super) static RISCV64: TmModule = TmModule {
    name: "tm-module",
    description: "locks and transactions as modules for our kernel, and an initial RAM disk that tests them",
    headers: &TXLINUX_HEADERS,
    architecture: "riscv",
    cross_compile: CROSS_COMPILE,
};

pub(super) static AMD64: TmModule = TmModule {
    name: "tm-module-amd64",
    description: "locks and transactions as modules for Debian's amd64 kernel, and an initial RAM disk that tests them",
    headers: &StockAmd64,
    architecture: "x86",
    cross_compile: "",
};

impl Recipe for TmModule {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn steps_count(&self) -> usize {
        2
    }

    fn needs(&self) -> Vec<&'static dyn Recipe> {
        vec![self.headers]
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        for (path, content) in sources() {
            inputs.add(path, content);
        }
        for program in ["gcc", "ld"] {
            inputs.add(program, version(kitchen.runner, &self.program(program), "--version")?);
        }
        inputs.add(self.headers.name(), self.headers.inputs(kitchen)?.digest());
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let (work, out) = (staging.work(), staging.out());
        for (path, content) in sources() {
            put(&work.join(path), content, false)?;
        }
        let mut artifacts = vec![("initrd", String::from("initrd.cpio.gz"))];

        kitchen.step("compile");
        let headers = kitchen.guest(self.headers)?.directory.join(HEADERS);
        for (algorithm, role) in ALGORITHMS {
            let file = format!("concord-tm-{algorithm}.ko");
            self.compile_module(kitchen, &work, &headers, algorithm)?;
            let mut strip = tool(self.program("strip"));
            strip.arg("--strip-debug").arg("-o").arg(out.join(&file)).arg(work.join(algorithm).join(&file));
            kitchen.runner.run(&mut strip, "copy a module")?;
            artifacts.push((role, file));
        }
        let init = work.join("init");
        let mut compile = tool(self.program("gcc"));
        compile.args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-Wl,--build-id=none", "-o"]).arg(&init);
        compile.arg(work.join("tm/port/linux/initrd/init.c"));
        kitchen.runner.run(&mut compile, "compile the first program")?;

        kitchen.step("write the initial RAM disk");
        let mut archive = cpio::Archive::default();
        for name in ["dev", "modules"] {
            archive.directory(name, 0o755);
        }
        // The kernel opens the first program's console.
        archive.character_device("dev/console", 0o600, 5, 1);
        archive.file("init", 0o755, &read(&init)?);
        for (algorithm, _) in ALGORITHMS {
            let file = format!("concord-tm-{algorithm}.ko");
            archive.file(&format!("modules/{file}"), 0o644, &read(&out.join(&file))?);
        }
        let path = out.join("initrd.cpio.gz");
        archive.write_compressed(&path).map_err(Error::file("write", &path))?;
        Ok(artifacts)
    }
}

impl TmModule {
    fn program(&self, name: &str) -> String {
        format!("{}{name}", self.cross_compile)
    }

    fn compile_module(&self, kitchen: &Kitchen, work: &Path, headers: &Path, algorithm: &str) -> Result<(), Error> {
        let mut compile = tool("make");
        compile.arg("--directory").arg(work.join("tm/port/linux")).arg(format!("--jobs={}", kitchen.jobs));
        compile.args([format!("STM={algorithm}"), format!("ARCH={}", self.architecture), "SELF_TEST=y".to_owned()]);
        compile.arg(format!("CROSS_COMPILE={}", self.cross_compile));
        compile.arg(format!("KERNEL={}", headers.display())).arg(format!("BUILD={}", work.join(algorithm).display()));
        kitchen.runner.run(&mut compile, &format!("compile concord-tm-{algorithm}"))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::file("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_there() {
        for wanted in ["tm/stm/tl2.c", "tm/port/linux/Kbuild", "tm/port/linux/Makefile", "tm/arch/riscv64/xmetatm.h"] {
            assert!(sources().any(|(path, content)| path == wanted && !content.is_empty()), "{wanted}");
        }
    }
}

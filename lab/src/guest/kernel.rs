//! Kernels of ours: Debian's Linux source for riscv64 with new files, patches and modules, in our own configuration.

use super::cache::Staging;
use super::digest::Inputs;
use super::error::Error;
use super::kernel_files;
use super::process::{Runner, system_path, tool};
use super::{Artifacts, Kitchen, Recipe};
use std::fs;
use std::path::{Path, PathBuf};

const SOURCE_PACKAGE: &str = "linux-source-6.12";
const SOURCE_ARCHIVE: &str = "/usr/src/linux-source-6.12.tar.xz";
/// The folder that debug information names instead of the work folder, whose name is another one each time; build IDs depend on it, and
/// the Image holds two. gdb finds the sources where the package's archive is unpacked beside it.
const DEBUG_FOLDER: &str = "/usr/src/linux-source-6.12";
pub(super) const CROSS_COMPILE: &str = "riscv64-linux-gnu-";

/// Raised when the commands below change in a way that changes the kernel.
const RECIPE_VERSION: &str = "3";

/// A kernel of ours. Every name is that of a file or folder in `linux`, so that another kernel is another value.
pub(super) struct Kernel {
    pub name: &'static str,
    description: &'static str,
    /// Fragments of the configuration, files in `linux/config`. A later one has the last word on an option.
    pub configuration: &'static [&'static str],
    /// Folders of new files, each at its place in the kernel's source.
    pub overlays: &'static [&'static str],
    /// Folders of patches, which apply in the order of their names.
    pub patches: &'static [&'static str],
    /// Folders of external modules, a folder each.
    pub modules: &'static [&'static str],
}

/// The kernel of the comparisons.
pub(super) static TXLINUX: Kernel = Kernel {
    name: "kernel",
    description: "TxLinux: Linux 6.12 of Debian's source package whose spinlocks can be transactions: Image, vmlinux, modules",
    configuration: &["concord.config"],
    overlays: &["overlay"],
    patches: &["patches"],
    modules: &["modules"],
};

/// The same Linux without our conversion.
pub(super) static TICKET: Kernel = Kernel {
    name: "kernel-ticket",
    description: "The same Linux without our conversion, whose spinlocks are riscv's ticket locks: Image, vmlinux",
    configuration: &["concord.config", "ticket.config"],
    overlays: &[],
    patches: &[],
    modules: &[],
};

/// Every kernel of ours.
#[cfg(test)]
pub(super) static KERNELS: [&Kernel; 2] = [&TXLINUX, &TICKET];

impl Recipe for Kernel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn steps_count(&self) -> usize {
        Build::STEPS_COUNT + 2
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        inputs.add("configuration", kernel_files::configuration(self)?);
        kernel_files::inputs(self, &mut inputs);
        inputs.add(SOURCE_PACKAGE, package_version(kitchen.runner, SOURCE_PACKAGE)?);
        for program in ["gcc", "ld"] {
            inputs.add(program, first_line_of_version(kitchen.runner, program)?);
        }
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let (work, out) = (staging.work(), staging.out());
        let build = Build::prepare(self, kitchen, &work)?;
        let objects = &build.objects;

        kitchen.step("compile");
        let mut compile = build.make();
        compile.arg(format!("--jobs={}", kitchen.jobs)).args(["Image", "modules"]);
        kitchen.runner.run(&mut compile, "compile the kernel")?;
        let modules = work.join("modules");
        let modules: Vec<_> =
            kernel_files::put_modules(self, &modules)?.iter().map(|name| modules.join(name)).collect();
        for module in &modules {
            let mut compile = build.make();
            compile.arg(format!("M={}", module.display())).arg("modules");
            kitchen.runner.run(&mut compile, "compile our modules")?;
        }

        kitchen.step("install");
        let mut install = build.make();
        install.arg(format!("INSTALL_MOD_PATH={}", out.display())).args(["INSTALL_MOD_STRIP=1", "modules_install"]);
        kitchen.runner.run(&mut install, "install the kernel's modules")?;
        for module in &modules {
            let mut install = build.make();
            install.arg(format!("M={}", module.display()));
            install.arg(format!("INSTALL_MOD_PATH={}", out.display())).args(["INSTALL_MOD_STRIP=1", "modules_install"]);
            kitchen.runner.run(&mut install, "install our modules")?;
        }
        for link in ["build", "source"] {
            // They point into the work folder, which goes away.
            remove_links(&out.join("lib/modules"), link)?;
        }
        let files = [
            ("Image", objects.join("arch/riscv/boot/Image")),
            ("vmlinux", objects.join("vmlinux")),
            ("System.map", objects.join("System.map")),
            ("config", objects.join(".config")),
        ];
        let mut artifacts = Artifacts::new();
        for (role, from) in files {
            fs::copy(&from, out.join(role)).map_err(Error::file("copy", &from))?;
            artifacts.push((role, role.to_owned()));
        }
        Ok(artifacts)
    }
}

/// The kernel's build system, at work on one build.
pub(super) struct Build {
    pub source: PathBuf,
    /// Where objects go.
    pub objects: PathBuf,
    /// What the compiler has compiled before, so that a change of one file compiles what that file is in.
    compiled: PathBuf,
}

impl Build {
    /// The number of times [`Build::prepare`] calls [`Kitchen::step`].
    pub const STEPS_COUNT: usize = 3;

    /// Unpacks, converts and configures the source of a kernel below `work`.
    pub fn prepare(kernel: &Kernel, kitchen: &Kitchen, work: &Path) -> Result<Build, Error> {
        let compiled = kitchen.cache.folder("compiled")?;
        let build = Build { source: work.join(SOURCE_PACKAGE), objects: work.join("build"), compiled };
        for folder in [&build.source, &build.objects] {
            fs::create_dir(folder).map_err(Error::file("create", folder))?;
        }

        kitchen.step("unpack the source");
        let mut unpack = tool("tar");
        unpack.args(["--extract", "--strip-components=1", "--file", SOURCE_ARCHIVE, "--directory"]).arg(&build.source);
        kitchen.runner.run(&mut unpack, "unpack the kernel's source")?;

        kitchen.step("convert");
        kernel_files::convert(kernel, kitchen.runner, &build.source, work)?;

        kitchen.step("configure");
        let wanted = kernel_files::configuration(kernel)?;
        let fragment = work.join("wanted.config");
        fs::write(&fragment, &wanted).map_err(Error::file("write", &fragment))?;
        let mut configure = build.make();
        configure.env("KCONFIG_ALLCONFIG", &fragment).arg("allnoconfig");
        kitchen.runner.run(&mut configure, "configure the kernel")?;
        let configuration = build.objects.join(".config");
        let text = fs::read_to_string(&configuration).map_err(Error::file("read", &configuration))?;
        let lost = lost_options(&wanted, &text);
        if !lost.is_empty() {
            let (files, lines) = (kernel.configuration.join(", "), lost.join(", "));
            let what = format!("the kernel's source does not take these lines of linux/config ({files}): {lines}");
            return Err(Error::Recipe { guest: kernel.name, what });
        }
        Ok(build)
    }

    /// A make that names neither the builder nor the time, so that the same source gives the same bytes.
    pub fn make(&self) -> std::process::Command {
        let mut command = tool("nice");
        command.arg("make").arg("-C").arg(&self.source).arg(format!("O={}", self.objects.display()));
        command.args([
            "ARCH=riscv",
            &format!("CROSS_COMPILE={CROSS_COMPILE}"),
            &format!("CC=ccache {CROSS_COMPILE}gcc"),
        ]);
        // The work folder has another name each time.
        let [debug_source, debug_objects] = [&self.source, &self.objects]
            .map(|folder| format!("-fdebug-prefix-map={}={DEBUG_FOLDER}", folder.display()));
        let debug_folders = format!("{debug_source} {debug_objects}");
        command.env("KCFLAGS", &debug_folders).env("KAFLAGS", &debug_folders);
        command
            .env("CCACHE_DIR", &self.compiled)
            .env("CCACHE_MAXSIZE", "2G")
            .env("CCACHE_BASEDIR", self.source.parent().unwrap_or(&self.source))
            .env("CCACHE_NOHASHDIR", "1")
            .env("PATH", system_path())
            .env("KBUILD_BUILD_TIMESTAMP", "Thu Jan 1 00:00:00 UTC 2026")
            .env("KBUILD_BUILD_USER", "concord")
            .env("KBUILD_BUILD_HOST", "concord")
            .env("KBUILD_BUILD_VERSION", "1")
            .env_remove("KBUILD_OUTPUT")
            .env_remove("LOCALVERSION");
        command
    }
}

/// The lines of a configuration fragment that the final configuration does not fulfil.
fn lost_options<'a>(fragment: &'a str, configuration: &str) -> Vec<&'a str> {
    let has_line = |wanted: &str| configuration.lines().any(|line| line == wanted);
    let is_set =
        |option: &str| configuration.lines().any(|line| line.split_once('=').is_some_and(|(name, _)| name == option));
    let is_lost = |line: &&str| match line.split_once('=') {
        Some((option, "n")) => is_set(option),
        _ => !has_line(line),
    };
    fragment.lines().filter(|line| line.starts_with("CONFIG_")).filter(is_lost).collect()
}

fn remove_links(modules: &Path, name: &str) -> Result<(), Error> {
    for entry in fs::read_dir(modules).map_err(Error::file("read", modules))? {
        let link = entry.map_err(Error::file("read", modules))?.path().join(name);
        if link.is_symlink() {
            fs::remove_file(&link).map_err(Error::file("remove", &link))?;
        }
    }
    Ok(())
}

pub(super) fn package_version(runner: &Runner, package: &str) -> Result<String, Error> {
    let mut query = tool("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status} ${Version}", package]);
    match runner.output(&mut query, "ask for a package's version") {
        Ok(answer) => answer
            .strip_prefix("installed ")
            .map(str::to_owned)
            .ok_or(Error::MissingInput { package: package.to_owned() }),
        Err(Error::Command { .. }) => Err(Error::MissingInput { package: package.to_owned() }),
        Err(error) => Err(error),
    }
}

fn first_line_of_version(runner: &Runner, program: &str) -> Result<String, Error> {
    let mut command = tool(format!("{CROSS_COMPILE}{program}"));
    let text = runner.output(command.arg("--version"), "ask for a compiler's version")?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_the_kernel_did_not_take_are_found() {
        let fragment =
            "# comment\nCONFIG_SMP=y\nCONFIG_NR_CPUS=64\nCONFIG_VT=n\nCONFIG_INPUT=n\nCONFIG_GONE=y\nCONFIG_T=m\n";
        let configuration = "CONFIG_SMP=y\nCONFIG_NR_CPUS=640\n# CONFIG_VT is not set\nCONFIG_INPUT=y\nCONFIG_T=m\n";
        assert_eq!(lost_options(fragment, configuration), ["CONFIG_NR_CPUS=64", "CONFIG_INPUT=n", "CONFIG_GONE=y"]);
    }
}

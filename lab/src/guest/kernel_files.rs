//! What turns the stock kernel source into a kernel of ours: whole new files, patches, and modules. The files of `linux` are found by walking
//! its folders.

use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::kernel::Kernel;
use super::process::{Runner, tool};
use super::texts::{LINUX, Text, below, machine_headers};
use std::path::Path;

/// The files of some folders in `linux`, with their paths below their folder.
fn files_of(folders: &'static [&'static str]) -> impl Iterator<Item = Text> {
    folders.iter().flat_map(|folder| below(LINUX, &format!("linux/{folder}")).collect::<Vec<_>>())
}

/// The configuration that a kernel asks for. Its fragments follow each other; where two name one option, the later one's line stays.
pub fn configuration(kernel: &Kernel) -> Result<String, Error> {
    let mut fragments = Vec::new();
    for name in kernel.configuration {
        let found = below(LINUX, "linux/config").find(|(path, _)| path == name);
        let missing = || Error::Recipe { guest: kernel.name, what: format!("there is no linux/config/{name}") };
        fragments.push(found.ok_or_else(missing)?.1);
    }
    Ok(merge(&fragments))
}

fn merge(fragments: &[&str]) -> String {
    let mut merged = String::new();
    for (index, fragment) in fragments.iter().enumerate() {
        for line in fragment.lines() {
            let is_overruled = option(line).is_some_and(|name| {
                fragments[index + 1..].iter().any(|later| later.lines().any(|line| option(line) == Some(name)))
            });
            if !is_overruled {
                merged.push_str(line);
                merged.push('\n');
            }
        }
    }
    merged
}

/// The option that a line of a configuration sets.
fn option(line: &str) -> Option<&str> {
    line.split_once('=').map(|(name, _)| name).filter(|name| name.starts_with("CONFIG_"))
}

/// Adds all of it to what decides what the kernel will be.
pub fn inputs(kernel: &Kernel, inputs: &mut Inputs) {
    for (kind, folders) in [("overlay", kernel.overlays), ("patches", kernel.patches), ("modules", kernel.modules)] {
        for (path, content) in files_of(folders) {
            inputs.add(format!("{kind}/{path}"), content);
        }
    }
    for (name, content) in machine_headers() {
        inputs.add(name, content);
    }
}

/// Adds the new files to a kernel's source and applies the patches; `work` is a folder for these.
pub fn convert(kernel: &Kernel, runner: &Runner, source: &Path, work: &Path) -> Result<(), Error> {
    for (path, content) in files_of(kernel.overlays) {
        put(&source.join(path), content, false)?;
    }
    for (name, content) in machine_headers() {
        put(&source.join("arch/riscv/include/asm").join(name), &content, false)?;
    }
    for (name, content) in files_of(kernel.patches) {
        let file = work.join(name);
        put(&file, content, false)?;
        let mut patch = tool("patch");
        patch.args(["--strip=1", "--batch", "--forward", "--fuzz=0", "--reject-file=-", "--directory"]).arg(source);
        patch.arg("--input").arg(&file);
        runner.run(&mut patch, &format!("apply {name}"))?;
    }
    Ok(())
}

/// Writes the modules' sources below `folder`, and returns the names of their folders there.
pub fn put_modules(kernel: &Kernel, folder: &Path) -> Result<Vec<&'static str>, Error> {
    let mut names = Vec::new();
    for (path, content) in files_of(kernel.modules) {
        put(&folder.join(path), content, false)?;
        names.extend(path.split('/').next());
    }
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::kernel::KERNELS;
    use super::*;

    #[test]
    fn every_file_for_kernels_is_used() {
        let is_used = |path: &str| {
            KERNELS.iter().any(|kernel| {
                let is_in = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(&format!("{folder}/")));
                let is_fragment = path.strip_prefix("config/").is_some_and(|name| kernel.configuration.contains(&name));
                is_fragment || [kernel.overlays, kernel.patches, kernel.modules].into_iter().any(is_in)
            })
        };
        let unused: Vec<&str> = below(LINUX, "linux").map(|(path, _)| path).filter(|path| !is_used(path)).collect();
        assert!(unused.is_empty(), "no kernel is made of {unused:?} in linux");
    }

    #[test]
    fn every_kernel_has_its_files() {
        for kernel in KERNELS {
            let text = configuration(kernel).unwrap();
            let mut names: Vec<&str> = text.lines().filter_map(option).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(count > 50 && names.len() == count, "{}: an option is set twice", kernel.name);
            for folder in [kernel.overlays, kernel.patches, kernel.modules].concat() {
                assert!(below(LINUX, &format!("linux/{folder}")).next().is_some(), "linux/{folder} is empty");
            }
        }
    }

    #[test]
    fn a_later_fragment_has_the_last_word() {
        let merged = merge(&["# head\nCONFIG_A=y\nCONFIG_B=m\n", "CONFIG_A=n\nCONFIG_AB=y\n"]);
        assert_eq!(merged, "# head\nCONFIG_B=m\nCONFIG_A=n\nCONFIG_AB=y\n");
    }
}

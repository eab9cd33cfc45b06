//! What turns the stock kernel source into TxLinux: whole new files, a few patches, and modules of our own.

use super::digest::Inputs;
use super::error::Error;
use super::files::put;
use super::process::{Runner, tool};
use std::path::Path;

macro_rules! texts {
    ($folder:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../linux/", $folder, "/", $path)))),*]
    };
}

/// A text: path below its folder in `linux`, content.
type Text = (&'static str, &'static str);

/// New files, at their places in the kernel's source. A test holds the lists complete.
const OVERLAY: &[Text] = texts! { "overlay":
    "arch/riscv/include/asm/cx.h",
    "arch/riscv/include/asm/cx_entry.h",
    "arch/riscv/include/asm/cx_spinning.h",
    "arch/riscv/include/asm/cx_switch.h",
    "arch/riscv/include/asm/mcs_spinlock.h",
    "arch/riscv/include/asm/qspinlock.h",
    "arch/riscv/include/asm/spinlock.h",
    "arch/riscv/include/asm/spinlock_types.h",
    "arch/riscv/kernel/cx.c",
    "arch/riscv/kernel/cx_entry.S",
    "include/linux/cx.h",
    "include/linux/cx_class.h",
    "include/linux/lockref_cx.h",
    "include/linux/seqlock_cx.h",
    "include/linux/spinlock_cx.h",
    "kernel/locking/Kconfig.cx",
    "kernel/locking/cx.c",
    "kernel/locking/cx.h",
    "kernel/locking/cx_policy.c",
    "kernel/locking/cx_raw.c",
    "kernel/locking/cx_rwlock.c",
    "kernel/sched/cx_priority.c",
};

/// In the order in which they apply.
const PATCHES: &[Text] = texts! { "patches":
    "0001-locking-cxspinlocks.patch",
    "0002-riscv-transactions.patch",
};

/// The external modules; the first part of a path is the module's folder.
const MODULES: &[Text] = texts! { "modules":
    "concord-cost/Kbuild",
    "concord-cost/concord_cost.c",
    "concord-test/Kbuild",
    "concord-test/balances.c",
    "concord-test/counters.c",
    "concord-test/interrupts.c",
    "concord-test/lists.c",
    "concord-test/main.c",
    "concord-test/stack.c",
    "concord-test/test.h",
    "concord-test/wakeups.c",
};

/// Where the kernel's source finds the headers of the machine: name, content.
fn headers() -> [(&'static str, String); 2] {
    [("concord.h", concord_abi::header::text()), ("xmetatm.h", concord_abi::header::xmetatm_c::text())]
}

/// Adds all of it to what decides what the kernel will be.
pub fn inputs(inputs: &mut Inputs) {
    for (folder, texts) in [("overlay", OVERLAY), ("patches", PATCHES), ("modules", MODULES)] {
        for (path, content) in texts {
            inputs.add(format!("{folder}/{path}"), content);
        }
    }
    for (name, content) in headers() {
        inputs.add(name, content);
    }
}

/// Adds the new files to a kernel's source and applies the patches; `work` is a folder for these.
pub fn convert(runner: &Runner, source: &Path, work: &Path) -> Result<(), Error> {
    for (path, content) in OVERLAY {
        put(&source.join(path), content, false)?;
    }
    for (name, content) in headers() {
        put(&source.join("arch/riscv/include/asm").join(name), &content, false)?;
    }
    for (name, content) in PATCHES {
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
pub fn put_modules(folder: &Path) -> Result<Vec<&'static str>, Error> {
    for (path, content) in MODULES {
        put(&folder.join(path), content, false)?;
    }
    let mut names: Vec<&str> = MODULES.iter().filter_map(|(path, _)| path.split('/').next()).collect();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_for_the_kernel_is_used() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux");
        for (part, texts) in [("overlay", OVERLAY), ("patches", PATCHES), ("modules", MODULES)] {
            let mut found = Vec::new();
            files(&folder.join(part), "", &mut found);
            found.sort_unstable();
            assert_eq!(texts.iter().map(|(path, _)| *path).collect::<Vec<_>>(), found, "linux/{part}");
        }
    }
}

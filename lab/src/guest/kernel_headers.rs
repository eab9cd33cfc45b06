//! The `kernel-headers` guest: what modules for our kernel are built against, as Debian's packages of kernel headers have it.
//!
//! The kernel guest keeps nothing of its build but its results, and a module takes seconds to build: so this is the configured source
//! once more, cut down to what the kernel's own script for such packages takes.

use super::cache::Staging;
use super::digest::Inputs;
use super::error::Error;
use super::kernel::{Build, Kernel, TXLINUX};
use super::process::{system_path, tool};
use super::{Artifacts, Kitchen, Recipe};
use std::fs;

/// The folder, of this guest and of others that hold headers, that a module's build is started with.
pub(super) const HEADERS: &str = "headers";

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "1";

/// The headers of a kernel of ours.
pub(super) struct KernelHeaders {
    name: &'static str,
    description: &'static str,
    kernel: &'static Kernel,
}

pub(super) static TXLINUX_HEADERS: KernelHeaders = KernelHeaders {
    name: "kernel-headers",
    description: "what modules for our kernel are built against: headers, configuration and the kernel's build programs",
    kernel: &TXLINUX,
};

impl Recipe for KernelHeaders {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn steps_count(&self) -> usize {
        Build::STEPS_COUNT + 1
    }

    fn needs(&self) -> Vec<&'static dyn Recipe> {
        vec![self.kernel]
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        inputs.add(self.kernel.name, self.kernel.inputs(kitchen)?.digest());
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        let (work, out) = (staging.work(), staging.out());
        let build = Build::prepare(self.kernel, kitchen, &work)?;

        kitchen.step("take the headers");
        kitchen.runner.run(build.make().arg("modules_prepare"), "prepare the kernel's source for modules")?;
        let map = kitchen.guest(self.kernel)?.directory.join("System.map");
        let map = fs::read_to_string(&map).map_err(Error::file("read", &map))?;
        let symbols = build.objects.join("Module.symvers");
        fs::write(&symbols, exported_symbols(&map)).map_err(Error::file("write", &symbols))?;
        let mut take = tool("sh");
        // The script builds the programs anew for a host that is the kernel's own processor, unless both compilers have one name.
        take.current_dir(&build.objects).env("PATH", system_path());
        take.env("srctree", &build.source).env("SRCARCH", "riscv").env("CC", "cc").env("HOSTCC", "cc");
        take.arg(build.source.join("scripts/package/install-extmod-build")).arg(out.join(HEADERS));
        kitchen.runner.run(&mut take, "take the kernel's headers")?;
        Ok(vec![("Module.symvers", format!("{HEADERS}/Module.symvers"))])
    }
}

/// The text of `Module.symvers` for the symbols that `System.map` says the kernel exports. Whether only for modules under the GPL is not
/// told from each other, and versions of symbols our kernel does not have.
fn exported_symbols(map: &str) -> String {
    let names = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.strip_prefix("__ksymtab_"));
    names.map(|name| format!("0x00000000\t{name}\tvmlinux\tEXPORT_SYMBOL\t\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_that_the_map_lists_as_exported() {
        let map = "ffffffff80000000 T _start\nffffffff8042cc50 r __ksymtab_I_BDEV\nffffffff8042cc68 r __ksymtab____ratelimit\n\
                   ffffffff8042cc70 r __ksymtab_strings\n";
        let expected = "0x00000000\tI_BDEV\tvmlinux\tEXPORT_SYMBOL\t\n0x00000000\t___ratelimit\tvmlinux\tEXPORT_SYMBOL\t\n\
                        0x00000000\tstrings\tvmlinux\tEXPORT_SYMBOL\t\n";
        assert_eq!(exported_symbols(map), expected);
    }
}

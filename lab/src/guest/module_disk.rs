//! The `modules` guest: a small ext4 image of our kernel's modules.
//!
//! Modules fit one build of the kernel, and the root file system fits any kernel. Apart from each other, a new kernel makes a new
//! image of a few hundred KiB and leaves the root file system alone. Init mounts it by its label.

use super::cache::Staging;
use super::digest::Inputs;
use super::error::Error;
use super::ext4;
use super::files::set_permissions;
use super::kernel::{Kernel, TXLINUX};
use super::process::{tool, version};
use super::{Artifacts, Kitchen, Recipe};

/// The volume's label, which `workloads/linux/init` looks for.
const LABEL: &str = "concord-modules";

/// Raised when the code below changes in a way that changes the guest.
const RECIPE_VERSION: &str = "1";

/// The disk of a kernel's modules.
pub(super) struct ModuleDisk {
    name: &'static str,
    description: &'static str,
    kernel: &'static Kernel,
}

pub(super) static TXLINUX_MODULES: ModuleDisk = ModuleDisk {
    name: "modules",
    description: "ext4 image of our kernel's modules, a second disk that init mounts below /lib/modules",
    kernel: &TXLINUX,
};

impl Recipe for ModuleDisk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn steps_count(&self) -> usize {
        1
    }

    fn needs(&self) -> Vec<&'static dyn Recipe> {
        vec![self.kernel]
    }

    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error> {
        let mut inputs = Inputs::default();
        inputs.add("recipe", RECIPE_VERSION);
        inputs.add("mke2fs.conf", ext4::CONFIGURATION);
        inputs.add("mke2fs", version(kitchen.runner, "mke2fs", "-V")?);
        inputs.add(self.kernel.name, self.kernel.inputs(kitchen)?.digest());
        Ok(inputs)
    }

    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
        kitchen.step("make and check the file system");
        let kernel = kitchen.guest(self.kernel)?;
        let root = staging.work().join("root");
        // A copy, as the permissions of the kernel guest's own files are the builder's.
        let mut copy = tool("cp");
        copy.arg("--recursive").arg(kernel.directory.join("lib/modules")).arg(&root);
        kitchen.runner.run(&mut copy, "copy the kernel's modules")?;
        set_permissions(&root)?;
        // The smallest journal takes 4 MiB.
        ext4::make(kitchen.runner, &root, &staging.out().join("modules.ext4"), LABEL, 8 << 20, &staging.work())?;
        Ok(vec![("modules", String::from("modules.ext4"))])
    }
}

#[cfg(test)]
mod tests {
    use super::super::own_files;
    use super::LABEL;

    #[test]
    fn init_looks_for_the_label() {
        assert!(own_files::text("init").contains(&format!("LABEL={LABEL} 2>")));
        assert!(LABEL.len() <= 16);
    }
}

//! The order in which kernel modules load, from depmod's `modules.dep` and the kernel's `modules.builtin` (modules.dep(5)).

use std::collections::BTreeMap;

/// The modules of one kernel.
pub struct Modules<'a> {
    /// Module name to its path and the paths of the modules it needs.
    files: BTreeMap<String, (&'a str, Vec<&'a str>)>,
    /// Names of what is in the kernel itself.
    builtin: Vec<String>,
}

impl<'a> Modules<'a> {
    /// Reads the text of `modules.dep` ("path: needed paths") and `modules.builtin` (a path a line).
    pub fn parse(dependencies: &'a str, builtin: &'a str) -> Modules<'a> {
        let entry = |line: &'a str| {
            let (path, needs) = line.split_once(':')?;
            Some((name_of(path), (path, needs.split_whitespace().collect())))
        };
        Modules {
            files: dependencies.lines().filter_map(entry).collect(),
            builtin: builtin.lines().map(name_of).collect(),
        }
    }

    /// The paths of `names` and of all they need, each after what it needs. `Err` is the name of a module that the kernel lacks.
    pub fn load_order(&self, names: &[String]) -> Result<Vec<&'a str>, String> {
        let mut order = Vec::new();
        for name in names {
            let name = name_of(name);
            if self.files.contains_key(&name) {
                self.visit(&name, &mut order, &mut Vec::new())?;
            } else if !self.builtin.contains(&name) {
                return Err(name);
            }
        }
        Ok(order)
    }

    fn visit(&self, name: &str, order: &mut Vec<&'a str>, above: &mut Vec<String>) -> Result<(), String> {
        let (path, needs) = self.files.get(name).ok_or_else(|| name.to_owned())?;
        // A ring of modules cannot be loaded in any order; depmod refuses it, so stop rather than recurse for ever.
        if order.contains(path) || above.iter().any(|other| other == name) {
            return Ok(());
        }
        above.push(name.to_owned());
        for needed in needs {
            self.visit(&name_of(needed), order, above)?;
        }
        above.pop();
        order.push(path);
        Ok(())
    }
}

/// The kernel's name of a module: the file's without its suffixes, and `_` where the file has `-`.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split(".ko").next().unwrap_or_default().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPENDENCIES: &str = "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/fs/mbcache.ko.xz kernel/lib/crc16.ko.xz\n\
        kernel/fs/jbd2/jbd2.ko.xz: kernel/lib/crc16.ko.xz\n\
        kernel/fs/mbcache.ko.xz:\n\
        kernel/lib/crc16.ko.xz:\n\
        kernel/drivers/char/hw_random/virtio-rng.ko.xz: kernel/drivers/char/hw_random/rng-core.ko.xz\n\
        kernel/drivers/char/hw_random/rng-core.ko.xz:\n";

    fn order(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Modules::parse(DEPENDENCIES, "kernel/drivers/tty/serial/8250/8250.ko\n").load_order(&names)
    }

    #[test]
    fn each_module_comes_once_and_after_what_it_needs() {
        assert_eq!(
            order(&["virtio_rng", "ext4", "crc16"]).unwrap(),
            [
                "kernel/drivers/char/hw_random/rng-core.ko.xz",
                "kernel/drivers/char/hw_random/virtio-rng.ko.xz",
                "kernel/lib/crc16.ko.xz",
                "kernel/fs/jbd2/jbd2.ko.xz",
                "kernel/fs/mbcache.ko.xz",
                "kernel/fs/ext4/ext4.ko.xz",
            ]
        );
    }

    #[test]
    fn what_is_built_in_is_skipped_and_what_is_nowhere_is_named() {
        assert_eq!(order(&["8250", "mbcache"]).unwrap(), ["kernel/fs/mbcache.ko.xz"]);
        assert_eq!(order(&["mbcache", "xfs"]).unwrap_err(), "xfs");
    }
}

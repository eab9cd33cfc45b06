//! The kernel's modules, on a disk of their own.

use crate::support::{artifact, boot_and_type, ours};
use concord_dev::DiskMode;
use concord_machine::{Configuration, DiskImage, Gear};

/// A module and one that it needs, loaded by their names and taken out again.
#[test]
fn modules_load_from_their_disk() {
    let mut configuration: Configuration = ours("", 2, Gear::Functional);
    configuration.disks.push(DiskImage { path: artifact("modules", "modules"), mode: DiskMode::ReadOnly });
    let commands = [
        "modprobe locktorture torture_type=none; grep -c ^torture /proc/modules",
        "modprobe torture && modprobe -r torture; echo \"left: $(wc -l </proc/modules)\"",
        "exit",
    ];
    let run = boot_and_type(configuration, &commands);
    // This lock type does not exist, so that the module's own code refuses and nothing is left running.
    run.says("lock-torture: invalid torture type: \"none\"");
    run.says("\nleft: 0\r\n");
    run.healthy();
}

/// Without the disk there is nothing to load, and nothing is said about it at the start.
#[test]
fn a_system_without_the_disk_has_no_modules() {
    let run = boot_and_type(ours("", 2, Gear::Functional), &["modprobe torture || echo none", "exit"]).healthy();
    run.says("\nnone\r\n");
    assert!(!run.console.contains("concord-modules"));
}

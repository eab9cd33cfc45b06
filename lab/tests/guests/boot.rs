//! Boots to the root file system, a workload there, and power-off.

use crate::support::{Run, boot, boot_and_type, ours, stock};
use concord_machine::{Configuration, Gear, Net};

/// What `concord.run=hello` says: the guest has as many harts as the board.
#[track_caller]
fn says_hello(run: Run, harts: usize) {
    let run = run.healthy();
    run.says(&format!(", on {harts} harts"));
    run.says("concord: workload hello finished");
    assert_eq!(run.document.harts.len(), harts);
    assert!(run.document.harts.iter().all(|hart| hart.instructions > 0), "{:?}", run.document.harts);
}

fn our_kernel(harts: usize, gear: Gear) {
    says_hello(boot(ours("concord.run=hello", harts, gear)), harts);
}

fn stock_kernel(harts: usize) {
    let run = boot(stock("concord.run=hello", harts));
    run.says("concord: init reached");
    run.says("-riscv64, on ");
    says_hello(run, harts);
}

#[test]
fn our_kernel_on_1_hart() {
    our_kernel(1, Gear::Functional);
}

#[test]
fn our_kernel_on_2_harts() {
    our_kernel(2, Gear::Functional);
}

#[test]
fn our_kernel_on_8_harts() {
    our_kernel(8, Gear::Functional);
}

#[test]
fn our_kernel_on_32_harts() {
    our_kernel(32, Gear::Functional);
}

#[test]
fn our_kernel_on_64_harts() {
    our_kernel(64, Gear::Functional);
}

#[test]
fn our_kernel_on_1_timed_hart() {
    our_kernel(1, Gear::Timed);
}

#[test]
fn our_kernel_on_8_timed_harts() {
    our_kernel(8, Gear::Timed);
}

#[test]
fn stock_kernel_on_2_harts() {
    stock_kernel(2);
}

#[test]
#[ignore = "long"]
fn stock_kernel_on_1_hart() {
    stock_kernel(1);
}

#[test]
#[ignore = "long"]
fn stock_kernel_on_8_harts() {
    stock_kernel(8);
}

#[test]
#[ignore = "long"]
fn stock_kernel_on_32_harts() {
    stock_kernel(32);
}

#[test]
#[ignore = "long"]
fn stock_kernel_on_64_harts() {
    stock_kernel(64);
}

/// The entropy device is in the last slot, behind those of disks and net.
#[test]
fn every_device_is_found() {
    let run = boot_and_type(
        Configuration { net: Net::Peer, ..ours("", 2, Gear::Functional) },
        &[
            "cat /sys/class/misc/hw_random/rng_current",
            "ls /sys/class/net /sys/block",
            "head -c 16 /dev/hwrng | wc -c",
            "exit",
        ],
    );
    let run = run.healthy();
    for found in ["\nvirtio_rng.0\r\n", "eth0", "vda", "\n16\r\n"] {
        run.says(found);
    }
    assert!(run.document.devices.entropy_bytes >= 16);
}

/// Pipes, floating point, make, tar and stress-ng on ext4.
#[track_caller]
fn passes_the_check(run: Run, harts: usize) {
    let run = run.healthy();
    run.says(&format!("check: {harts} harts"));
    run.says("check: passed");
}

#[test]
fn our_kernel_passes_the_check_on_8_harts() {
    passes_the_check(boot(ours("concord.run=check", 8, Gear::Functional)), 8);
}

#[test]
#[ignore = "long"]
fn our_kernel_passes_the_check_on_8_timed_harts() {
    passes_the_check(boot(ours("concord.run=check", 8, Gear::Timed)), 8);
}

#[test]
#[ignore = "long"]
fn stock_kernel_passes_the_check_on_4_harts() {
    passes_the_check(boot(stock("concord.run=check", 4)), 4);
}

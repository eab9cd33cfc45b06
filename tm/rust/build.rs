// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Compiles the library in C: the sources of its folders for user programs, as `Makefile` does, without the compiler's interface.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a folder of the library with this extension.
fn sources(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn main() {
    let tm = Path::new("..");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let os = env::var("CARGO_CFG_TARGET_OS").expect("cargo sets it");
    assert!(
        os == "linux" && ["x86_64", "riscv64"].contains(&arch.as_str()),
        "concord-tm has ports to Linux on x86_64 and riscv64, and none to {os} on {arch}"
    );
    let other_algorithm = if env::var_os("CARGO_FEATURE_TL2").is_some() { "two_phase.c" } else { "tl2.c" };
    let is_left_out = |file: &PathBuf| {
        let name = file.file_name().expect("a file has a name").to_string_lossy();
        name.starts_with("itm") || name == "one_library.c" || name == other_algorithm
    };

    let mut build = cc::Build::new();
    for folder in ["lock", "htm", "stm", "port/user"] {
        build.files(sources(&tm.join(folder), "c").into_iter().filter(|file| !is_left_out(file)));
    }
    let arch_folder = tm.join("arch").join(&arch);
    build.files(sources(&arch_folder, "S")).file("src/calls.c");
    build.include(tm.join("include")).include(tm.join("port/user")).include(arch_folder);
    build.define("TM_WITHOUT_ITM", None).std("gnu11").opt_level(2).pic(true);
    build.flags(["-ffreestanding", "-fvisibility=hidden", "-ftls-model=initial-exec"]);
    build.compile("concord_tm_c");

    for folder in ["include", "lock", "htm", "stm", "port/user", "arch"] {
        println!("cargo::rerun-if-changed={}", tm.join(folder).display());
    }
    println!("cargo::rerun-if-changed=src/calls.c");
}

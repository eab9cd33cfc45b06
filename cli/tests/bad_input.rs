//! Bad input: exit code 2, one line on standard error that names the culprit, and every file as it was.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{concord, guest, streams};

const BOARD: &str = include_str!("../../sim/machine/boards/metatm-2007.toml");

/// Arguments in the shell's simplest style, and what the line must contain.
type Case = (&'static str, &'static [&'static str]);

/// Kernels, initial RAM disks and disks.
const FILES: &[Case] = &[
    ("boot --kernel missing.elf", &["missing.elf", "No such file"]),
    ("boot --kernel .", &[".", "not a regular file"]),
    ("boot --kernel empty", &["empty"]),
    ("boot --kernel text", &["text", "neither"]),
    ("boot --kernel truncated.elf", &["truncated.elf"]),
    ("boot --kernel header.elf", &["header.elf"]),
    ("boot --kernel foreign.elf", &["foreign.elf", "x86-64"]),
    ("boot --kernel elf32.elf", &["elf32.elf"]),
    ("boot --kernel big-endian.elf", &["big-endian.elf"]),
    ("boot --kernel image-truncated", &["image-truncated"]),
    ("boot --kernel image-vast", &["image-vast"]),
    ("boot --kernel broken.gz", &["broken.gz"]),
    ("boot --kernel hello.elf --initrd missing", &["missing", "No such file"]),
    ("boot --kernel hello.elf --initrd empty", &["empty"]),
    ("boot --kernel hello.elf --initrd .", &[".", "not a regular file"]),
    ("boot --kernel hello.elf --initrd vast", &["vast", "does not fit"]),
    ("boot --kernel hello.elf --disk missing", &["missing", "No such file"]),
    ("boot --kernel hello.elf --disk .", &[".", "not a regular file"]),
    ("boot --kernel hello.elf --disk empty", &["empty", "multiple of 512"]),
    ("boot --kernel hello.elf --disk odd", &["odd", "1000", "multiple of 512"]),
    ("boot --kernel hello.elf --disk disk-read-only", &["disk-read-only", "read-only"]),
    ("boot --kernel hello.elf --disk disk,overley", &["disk,overley", "No such file"]),
    ("boot --kernel hello.elf --disk disk --disk disk", &["disk", "two disks"]),
    (
        "boot --kernel hello.elf --disk disk,overlay --disk disk,overlay --disk disk,overlay --disk disk,overlay \
         --disk disk,overlay --disk disk,overlay --disk disk,overlay --disk disk,overlay --disk disk,overlay",
        &["9 disks", "at most"],
    ),
    ("boot --kernel hello.elf --symbols missing", &["missing", "No such file"]),
    ("boot --kernel hello.elf --symbols text", &["text"]),
    ("boot --kernel hello.elf --symbols truncated.elf", &["truncated.elf"]),
    ("boot --kernel /dev/zero", &["/dev/zero", "not a regular file"]),
    ("boot --kernel endless", &["endless", "too many for a kernel"]),
    ("boot --kernel hello.elf --initrd /dev/zero", &["/dev/zero", "not a regular file"]),
    ("boot --kernel hello.elf --initrd endless", &["endless", "does not fit"]),
    ("boot --kernel hello.elf --symbols /dev/zero", &["/dev/zero", "longer than"]),
    ("boot --kernel hello.elf --symbols endless", &["endless", "longer than"]),
    ("boot --kernel hello.elf --board /dev/zero", &["/dev/zero", "longer than"]),
    ("boot --kernel hello.elf --board endless", &["endless", "longer than"]),
];

/// Options and their values.
const OPTIONS: &[Case] = &[
    ("", &["subcommand"]),
    ("boat", &["'boat'"]),
    ("boot", &["--kernel"]),
    ("boot --kernel hello.elf --hart 2", &["--hart"]),
    ("boot --kernel hello.elf extra", &["'extra'"]),
    ("boot --kernel hello.elf --kernel hello.elf", &["--kernel", "multiple times"]),
    ("boot --kernel hello.elf --harts 0", &["--harts 0", "1 to 64"]),
    ("boot --kernel hello.elf --harts 65", &["--harts 65", "1 to 64"]),
    ("boot --kernel hello.elf --harts -1", &["-1"]),
    ("boot --kernel hello.elf --harts many", &["--harts", "many"]),
    ("boot --kernel hello.elf --memory 0", &["--memory 0", "16 MiB"]),
    ("boot --kernel hello.elf --memory 1MiB", &["--memory 1MiB", "16 MiB"]),
    ("boot --kernel hello.elf --memory 1TiB", &["--memory 1TiB", "64 GiB"]),
    ("boot --kernel hello.elf --memory 1GB", &["--memory", "GB"]),
    ("boot --kernel hello.elf --memory 100000001", &["--memory 100000001", "4 KiB"]),
    ("boot --kernel hello.elf --gear fast", &["--gear", "fast", "functional, timed"]),
    ("boot --kernel hello.elf --net tap", &["--net", "tap", "none, peer"]),
    (
        "boot --kernel hello.elf --contention-manager politeness",
        &[
            "--contention-manager",
            "politeness",
            "timestamp, size-matters, os-prio, polka, requester-wins, requester-stalls",
        ],
    ),
    ("boot --kernel hello.elf --granularity byte", &["--granularity", "byte", "word, line"]),
    ("boot --kernel hello.elf --transactions off", &["--transactions", "off", "virtualized, best-effort"]),
    ("boot --kernel hello.elf --seed -1", &["-1"]),
    ("boot --kernel hello.elf --seed 18446744073709551616", &["--seed", "18446744073709551616"]),
    ("boot --kernel hello.elf --max-instructions 0", &["--max-instructions", "0"]),
    ("boot --kernel hello.elf --max-cycles soon", &["--max-cycles", "soon"]),
    ("boot --kernel hello.elf --gdb 0", &["--gdb", "0"]),
    ("boot --kernel hello.elf --gdb 65536", &["--gdb", "65536"]),
    ("boot --kernel hello.elf --snapshot-at tomorrow --snapshot s", &["tomorrow", "cycle:N"]),
    ("boot --kernel hello.elf --snapshot-at cycle:x --snapshot s", &["cycle:x"]),
    ("boot --kernel hello.elf --snapshot-at region", &["--snapshot"]),
    ("boot --kernel hello.elf --snapshot s", &["--snapshot-at"]),
    ("boot --kernel hello.elf --snapshot-at region --snapshot s --disk disk", &["--snapshot", "disk", "overlay"]),
    ("build kernle", &["kernle", "kernel"]),
    ("build --path kernle Image", &["kernle", "kernel"]),
    ("build --path kernel", &["--path"]),
    ("build --jobs 0", &["--jobs", "0"]),
    ("build --list kernel", &["--list"]),
    ("completions tcsh", &["tcsh", "bash"]),
];

/// Files that a run is to write. The run itself may have printed to standard output by then.
const OUTPUTS: &[Case] = &[
    ("boot --kernel hello.elf --result missing/r.json", &["missing/r.json", "No such file"]),
    ("boot --kernel hello.elf --result .", &[".", "directory"]),
    ("boot --kernel hello.elf --result text/r.json", &["text/r.json", "Not a directory"]),
    ("boot --kernel hello.elf --result /dev/full", &["/dev/full", "No space left"]),
    ("boot --kernel hello.elf --result hello.elf", &["--result hello.elf", "kernel"]),
    ("boot --kernel hello.elf --result ./disk --disk disk,overlay", &["--result ./disk", "disk image"]),
    ("boot --kernel hello.elf --result r --timeline r", &["--timeline r", "--result"]),
    ("boot --kernel hello.elf --symbols hello2.elf --timeline hello2.elf", &["--timeline", "symbol file"]),
    ("boot --kernel hello.elf --board board.toml --result board.toml", &["--result board.toml", "board"]),
    ("boot --kernel hello.elf --timeline missing/t", &["missing/t", "No such file"]),
    ("boot --kernel hello.elf --timeline /dev/full", &["/dev/full", "No space left"]),
    ("boot --kernel hello.elf --snapshot-at cycle:9 --snapshot missing/s", &["missing/s", "No such file"]),
    ("boot --kernel hello.elf --snapshot-at cycle:9 --snapshot /dev/full", &["/dev/full", "No space left"]),
    ("boot --kernel hello.elf --quiet --snapshot-at marker:9 --snapshot s", &["s", "ended before"]),
    ("resume good.snapshot --result good.snapshot", &["--result good.snapshot", "snapshot"]),
    ("resume good.snapshot --result walk.elf", &["--result walk.elf", "kernel"]),
];

const SNAPSHOTS: &[Case] = &[
    ("resume", &["FILE"]),
    ("resume missing", &["missing", "No such file"]),
    ("resume .", &[".", "directory"]),
    ("resume empty", &["empty", "not a snapshot"]),
    ("resume hello.elf", &["hello.elf", "not a snapshot"]),
    ("resume /dev/zero", &["/dev/zero", "not a snapshot"]),
    ("resume endless", &["endless", "not a snapshot"]),
    ("resume version.snapshot", &["version.snapshot", "version 77"]),
    ("resume flipped.snapshot", &["flipped.snapshot", "damaged"]),
    ("resume truncated.snapshot", &["truncated.snapshot", "damaged"]),
    ("resume longer.snapshot", &["longer.snapshot", "damaged"]),
    ("resume disk-changed.snapshot", &["disk-changed", "content"]),
    ("resume disk-shrunk.snapshot", &["disk-shrunk", "512 bytes"]),
    ("resume disk-gone.snapshot", &["disk-gone", "No such file"]),
    ("resume good.snapshot --kernel hello.elf", &["--kernel"]),
    ("resume good.snapshot --granularity line", &["--granularity"]),
    ("resume good.snapshot --contention-manager luck", &["--contention-manager", "luck"]),
    ("resume good.snapshot --seed one", &["--seed", "one"]),
];

/// A change to a board file, and what the line must contain beside the file's name.
const BOARDS: &[(&str, &str, &[&str])] = &[
    ("count = 8", "count = 8\nsockets = 2", &["sockets"]),
    ("count = 8", "count = 0", &["harts.count", "1 to 64"]),
    ("count = 8", "count = 65", &["harts.count", "1 to 64"]),
    ("count = 8", "count = \"eight\"", &["harts.count"]),
    ("count = 8", "", &["count"]),
    ("count = 8", "count = = 8", &["harts.count"]),
    ("[link]", "[links]", &["links"]),
    ("size_bytes = \"1 GiB\"", "size_bytes = \"1 GB\"", &["memory.size_bytes", "GB"]),
    ("size_bytes = \"1 GiB\"", "size_bytes = 0", &["memory.size_bytes", "16 MiB"]),
    (
        "data = { size_bytes = \"16 KiB\", ways = 4 }",
        "data = { size_bytes = \"16 KiB\", ways = 3 }",
        &["cache.data.size_bytes", "192"],
    ),
    (
        "data = { size_bytes = \"16 KiB\", ways = 4 }",
        "data = { size_bytes = \"16 KiB\", ways = 0 }",
        &["cache.data.ways"],
    ),
    ("line_bytes = 64", "line_bytes = 32", &["cache.line_bytes", "64"]),
    ("entries = 512", "entries = 500", &["translation.entries", "power of two"]),
    ("\"5.5 ms\"", "\"5.5 minutes\"", &["disk.latency_cycles", "minutes"]),
    ("functional_quantum_cycles = ", "functional_quantum_cycles = 0 #", &["functional_quantum_cycles"]),
    ("\"size-matters\"", "\"size-maters\"", &["transactions.manager", "size-maters", "size-matters"]),
    ("restart_threshold = 8", "restart_threshold = 0", &["transactions.restart_threshold", "1 to"]),
    ("backoff_exponent_max = 10", "backoff_exponent_max = 21", &["transactions.backoff_exponent_max", "0 to 20"]),
    ("memory_latency_cycles = ", "memory_latency_cycles = -", &["memory_latency_cycles"]),
];

/// Every kind of file that a case names.
fn fixture(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let sized = |name: &str, size| fs::File::create(folder.join(name)).unwrap().set_len(size).unwrap();
    let hello = fs::read(guest("hello")).unwrap();
    let patched = |at: usize, value: u8| {
        let mut bytes = hello.clone();
        bytes[at] = value;
        bytes
    };
    write("hello.elf", &hello);
    write("hello2.elf", &hello);
    fs::copy(guest("walk8k"), folder.join("walk.elf")).unwrap();
    write("empty", b"");
    write("text", &b"This is no kernel, no disk and no snapshot.\n".repeat(9));
    write("truncated.elf", &hello[..hello.len() / 2]);
    write("header.elf", &hello[..40]);
    // ELF-64 object file format: class at byte 4, data encoding at byte 5, machine at byte 18 (62 is x86-64).
    write("elf32.elf", &patched(4, 1));
    write("big-endian.elf", &patched(5, 2));
    write("foreign.elf", &patched(18, 62));
    // The Linux Image header: text offset at 8, image size at 16, magic at 48 and 56.
    let mut image = [0; 64];
    image[16..24].copy_from_slice(&0x100_0000_0000_u64.to_le_bytes());
    image[48..56].copy_from_slice(b"RISCV\0\0\0");
    image[56..60].copy_from_slice(b"RSC\x05");
    write("image-vast", &image);
    write("image-truncated", &image[..60]);
    write("broken.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03broken");
    sized("vast", 2 << 30);
    sized("endless", 1 << 40);
    sized("disk", 1 << 20);
    sized("odd", 1000);
    sized("disk-read-only", 1 << 20);
    fs::set_permissions(folder.join("disk-read-only"), fs::Permissions::from_mode(0o444)).unwrap();
    write("board.toml", BOARD.as_bytes());
    write("old.json", b"old");
    snapshots(folder);
}

/// A good snapshot and the ways to spoil one.
fn snapshots(folder: &Path) {
    let snapshot = |name: &str, more: &[&str]| {
        let mut command = concord(folder);
        // Two harts in the timed gear take short turns, and a snapshot is taken between turns.
        command.args(["boot", "--kernel", "walk.elf", "--append", "iterations=20", "--harts", "2", "--gear", "timed"]);
        let output = command
            .args(["--quiet", "--snapshot-at", "instructions:4000", "--snapshot", name])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", streams(&output).1);
        fs::read(folder.join(name)).unwrap()
    };
    let good = snapshot("good.snapshot", &[]);
    let spoiled = |name: &str, spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        spoil(&mut bytes);
        fs::write(folder.join(name), bytes).unwrap();
    };
    spoiled("version.snapshot", &|bytes| bytes[8] = 77);
    spoiled("flipped.snapshot", &|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
    });
    spoiled("truncated.snapshot", &|bytes| bytes.truncate(bytes.len() - 1));
    spoiled("longer.snapshot", &|bytes| bytes.push(0));
    for name in ["disk-changed", "disk-shrunk", "disk-gone"] {
        let disk = folder.join(name);
        fs::write(&disk, [0; 4096]).unwrap();
        snapshot(&format!("{name}.snapshot"), &["--disk", &format!("{name},overlay")]);
    }
    let mut changed = [0; 4096];
    changed[4000] = 1;
    fs::write(folder.join("disk-changed"), changed).unwrap();
    fs::write(folder.join("disk-shrunk"), [0; 512]).unwrap();
    fs::remove_file(folder.join("disk-gone")).unwrap();
}

/// Names, sizes and digests of a folder's files; the vast one by its size.
fn contents(folder: &Path) -> BTreeMap<String, (u64, Vec<u8>)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let size = entry.metadata().unwrap().len();
        let bytes = if size > 1 << 24 { Vec::new() } else { fs::read(entry.path()).unwrap() };
        (entry.file_name().to_string_lossy().into_owned(), (size, bytes))
    };
    fs::read_dir(folder).unwrap().map(entry).collect()
}

/// What a refusal has got wrong; empty when nothing.
fn faults(command: &mut Command, culprits: &[&str]) -> String {
    let output = command.output().unwrap();
    let (_, words) = streams(&output);
    let mut faults = String::new();
    if output.status.code() != Some(2) {
        faults.push_str(&format!("exit {:?} instead of 2; ", output.status.code()));
    }
    if words.lines().count() != 1 || !words.starts_with("concord: ") || !words.ends_with('\n') {
        faults.push_str("not one line of ours; ");
    }
    for culprit in culprits.iter().filter(|culprit| !words.contains(**culprit)) {
        faults.push_str(&format!("no {culprit:?}; "));
    }
    if !faults.is_empty() {
        faults.push_str(&format!("it said: {words:?}"));
    }
    faults
}

/// Runs cases in a fixture and checks that nothing in it changes.
fn check(cases: &[Case]) {
    let folder = tempfile::tempdir().unwrap();
    fixture(folder.path());
    let before = contents(folder.path());
    let mut report = String::new();
    for (arguments, culprits) in cases {
        let faults = faults(concord(folder.path()).args(arguments.split_whitespace()), culprits);
        if !faults.is_empty() {
            report.push_str(&format!("concord {arguments}\n    {faults}\n"));
        }
        let after = contents(folder.path());
        let touched: Vec<_> =
            before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)).collect();
        assert!(touched.is_empty(), "concord {arguments}: touched {touched:?}");
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn files_that_are_not_what_they_should_be() {
    check(FILES);
}

#[test]
fn options_that_make_no_sense() {
    check(OPTIONS);
}

#[test]
fn outputs_that_cannot_or_must_not_be_written() {
    check(OUTPUTS);
}

#[test]
fn snapshots_that_are_not_whole() {
    check(SNAPSHOTS);
}

#[test]
fn boards_that_no_machine_can_have() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(guest("hello"), folder.path().join("hello.elf")).unwrap();
    let boot = |board: &str, culprits: &[&str]| {
        faults(concord(folder.path()).args(["boot", "--kernel", "hello.elf", "--board", board]), culprits)
    };
    let mut report = String::new();
    for (from, to, culprits) in BOARDS {
        let text = BOARD.replacen(from, to, 1);
        assert_ne!(text, BOARD, "{from} is not in the preset");
        fs::write(folder.path().join("b.toml"), text).unwrap();
        let faults = boot("b.toml", &[culprits, &["b.toml"][..]].concat());
        if !faults.is_empty() {
            report.push_str(&format!("{to}\n    {faults}\n"));
        }
    }
    fs::write(folder.path().join("binary.toml"), [0xff, 0xfe, 0]).unwrap();
    for (board, culprits) in [
        ("metatm-2008", &["metatm-2008", "metatm-2007, server-2024"][..]),
        ("missing.toml", &["missing.toml", "No such file"]),
        (".", &[".", "directory"]),
        ("binary.toml", &["binary.toml", "UTF-8"]),
    ] {
        report.push_str(&boot(board, culprits));
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn what_does_not_fit_into_a_table() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(guest("hello"), folder.path().join("hello.elf")).unwrap();
    let boot = || {
        let mut command = concord(folder.path());
        command.args(["boot", "--kernel", "hello.elf"]);
        command
    };
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert_eq!(faults(boot().args(["--gdb", &port]), &["--gdb", &port, "in use"]), "");

    let not_text = std::ffi::OsStr::from_bytes(b"\xff");
    assert_eq!(faults(boot().arg("--append").arg(not_text), &["UTF-8"]), "");
    // A name that would break the line, or write to the terminal, is shown as what it is.
    let name = "two\nlines\u{1b}[2J";
    assert_eq!(faults(concord(folder.path()).args(["boot", "--kernel", name]), &["two\\nlines\\u{1b}[2J"]), "");
    let long = "x".repeat(100_000);
    assert_eq!(faults(boot().args(["--append", &long]), &["command line", "100000"]), "");

    // A console that takes nothing ends the run, rather than go on unseen.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(faults(boot().stdout(Stdio::from(full)), &["No space left"]), "");
}

#[test]
fn guests_need_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = concord(folder.path());
    let arguments = ["build", "--path", "kernel", "Image"];
    command.args(arguments).env("XDG_CACHE_HOME", folder.path());
    assert_eq!(faults(&mut command, &["kernel", "not built", "concord build kernel"]), "");
    let mut command = concord(folder.path());
    command.args(arguments).env_remove("XDG_CACHE_HOME").env_remove("HOME");
    assert_eq!(faults(&mut command, &["XDG_CACHE_HOME", "HOME"]), "");
}

/// As on a full disk, a write fails in the middle of the result: what was there stays, whole.
#[test]
fn a_result_that_does_not_fit_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(guest("hello"), folder.path().join("hello.elf")).unwrap();
    fs::write(folder.path().join("result.json"), "old").unwrap();
    let mut shell = Command::new("sh");
    // A limit of one block on any file, with its signal ignored, makes write(2) fail with EFBIG.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" boot --kernel hello.elf --result result.json"]);
    shell.arg(env!("CARGO_BIN_EXE_concord")).current_dir(folder.path()).stdin(Stdio::null());
    assert_eq!(faults(&mut shell, &["result.json", "too large"]), "");
    assert_eq!(fs::read(folder.path().join("result.json")).unwrap(), b"old");
    assert_eq!(contents(folder.path()).len(), 2, "nothing half-written stays");
}

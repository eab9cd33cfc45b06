//! Real kernels on a real root file system. The guests must have been built: `make guests`.

mod support;

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{concord, streams};

/// The path of a built guest's file.
fn guest_file(guest: &str, file: &str) -> String {
    let output = concord(Path::new(".")).args(["build", "--path", guest, file]).output().unwrap();
    let (path, words) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{words}");
    path.trim_end().to_owned()
}

/// A run of our kernel or Debian's, with the root file system behind an overlay unless there is another disk.
struct Run {
    kernel: &'static str,
    harts: usize,
    append: &'static str,
    disk: Option<String>,
    more: &'static [&'static str],
    script: &'static str,
}

impl Default for Run {
    fn default() -> Run {
        Run { kernel: "kernel", harts: 2, append: "", disk: None, more: &[], script: "" }
    }
}

impl Run {
    /// Runs it in a folder; the exit code, what the guest printed and the result document.
    fn finish(&self, folder: &Path) -> (i32, String, Value) {
        let mut command = concord(folder);
        command.args(["boot", "--kernel", &guest_file(self.kernel, "Image"), "--json", "--quiet"]);
        if self.kernel == "stock" {
            command.args(["--initrd", &guest_file("stock", "initrd")]);
        }
        let disk = self.disk.clone().unwrap_or_else(|| format!("{},overlay", guest_file("rootfs", "rootfs")));
        if !disk.is_empty() {
            command.args(["--disk", &disk]);
        }
        command.args(["--harts", &self.harts.to_string(), "--max-cycles", "600000000000"]);
        command.args(["--append", &format!("console=ttyS0 root=/dev/vda {}", self.append)]).args(self.more);
        finish(&mut command, self.script)
    }
}

fn finish(command: &mut Command, script: &str) -> (i32, String, Value) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A guest that is asked to type nothing may be done before this is written.
    let _ = child.stdin.take().expect("a pipe").write_all(script.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let (document, console) = streams(&output);
    let document = serde_json::from_str(&document).unwrap_or_else(|error| panic!("{error}: {console}"));
    (output.status.code().expect("no signal ended it"), console, document)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn boots(kernel: &'static str, harts: usize) {
    let folder = folder();
    let (code, console, document) =
        Run { kernel, harts, append: "concord.run=hello", ..Run::default() }.finish(folder.path());
    assert_eq!(code, 0, "{kernel} on {harts} harts: {console}");
    let hello = console.lines().find(|line| line.starts_with("hello from riscv64")).unwrap_or_default();
    assert!(hello.ends_with(&format!("on {harts} harts")), "{kernel} on {harts} harts: {console}");
    assert_eq!(document["exit"], "powered-off");
}

#[test]
fn our_kernel_boots_on_any_number_of_harts() {
    for harts in [1, 2, 8, 32, 64] {
        boots("kernel", harts);
    }
}

#[test]
fn debians_kernel_boots_unmodified() {
    for harts in [1, 2, 8] {
        boots("stock", harts);
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn debians_kernel_boots_on_many_harts() {
    for harts in [32, 64] {
        boots("stock", harts);
    }
}

#[test]
fn a_script_at_the_console_is_the_same_run_each_time() {
    let folder = folder();
    let run = Run {
        append: "quiet",
        more: &["--interactive"],
        script: "echo $((6 * 7))\nsleep 1; cat /proc/sys/kernel/random/boot_id\nexit\n",
        ..Run::default()
    };
    let (code, console, document) = run.finish(folder.path());
    assert_eq!(code, 0, "{console}");
    assert!(console.lines().any(|line| line.trim() == "42"), "{console}");
    let (_, again, same) = run.finish(folder.path());
    assert_eq!(console, again);
    assert_eq!(document["digest"], same["digest"]);
    let (_, other, different) = Run { more: &["--interactive", "--seed", "2"], ..run }.finish(folder.path());
    assert_ne!(console, other, "the seed feeds the entropy device");
    assert_ne!(document["digest"], different["digest"]);
}

#[test]
fn a_kernel_panic_has_its_exit_code_and_its_words() {
    let folder = folder();
    let (code, console, document) = Run { disk: Some(String::new()), ..Run::default() }.finish(folder.path());
    assert_eq!(code, 3, "{console}");
    assert_eq!(document["exit"], "panicked");
    let message = document["message"].as_str().unwrap();
    assert!(message.starts_with("Kernel panic - not syncing: VFS: Unable to mount root fs"), "{message}");
}

#[test]
fn a_workload_that_fails_fails_the_run() {
    let folder = folder();
    let (code, console, document) =
        Run { append: "concord.run=no-such-workload", ..Run::default() }.finish(folder.path());
    assert_eq!(code, 1, "{console}");
    assert_eq!((&document["exit"], &document["guest_code"]), (&Value::from("failed"), &Value::from(2)));
}

#[test]
fn a_written_disk_is_clean_and_a_system_on_it_healthy() {
    let folder = folder();
    let disk = folder.path().join("root.ext4");
    let copy =
        Command::new("cp").arg("--sparse=always").arg(guest_file("rootfs", "rootfs")).arg(&disk).status().unwrap();
    assert!(copy.success());
    let run = Run { append: "concord.run=check", disk: Some(disk.display().to_string()), ..Run::default() };
    let (code, console, document) = run.finish(folder.path());
    assert_eq!(code, 0, "{console}");
    assert!(console.contains("check: passed"), "{console}");
    assert!(document["devices"]["disks"][0]["written_bytes"].as_u64().unwrap() > 0);
    let check = Command::new("/usr/sbin/e2fsck").args(["-f", "-n"]).arg(&disk).output().unwrap();
    assert!(check.status.success(), "{}", streams(&check).0);
}

/// A run that is cut in two, wherever, ends as the run that is not; and where it is cut, nothing on the disk is touched.
#[test]
fn a_run_cut_at_any_point_ends_as_if_it_were_not() {
    let folder = folder();
    let append = "concord.run=files concord.size=1 concord.jobs=3 concord.gear=timed";
    let (code, console, whole) = Run { append, ..Run::default() }.finish(folder.path());
    assert_eq!(code, 0, "{console}");
    let cuts: [&'static [&'static str]; 3] = [
        &["--snapshot", "cut", "--snapshot-at", "instructions:20000000"],
        &["--snapshot", "cut", "--snapshot-at", "timed"],
        &["--snapshot", "cut", "--snapshot-at", "cycle:900000000"],
    ];
    for more in cuts {
        let (code, console, cut) = Run { append, more, ..Run::default() }.finish(folder.path());
        assert_eq!((code, &cut["digest"]), (0, &whole["digest"]), "{more:?}: {console}");
        let mut command = concord(folder.path());
        let (code, console, resumed) = finish(command.args(["resume", "cut", "--json", "--quiet"]), "");
        assert_eq!((code, &resumed["digest"]), (0, &whole["digest"]), "{more:?}: {console}");
        assert_eq!(resumed["harts"], whole["harts"], "{more:?}");
    }
}

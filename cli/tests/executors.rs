//! `--executor`: the choice, what is no choice, and a host that executes no code that it was given as data.

mod support;

use std::os::unix::process::CommandExt;
use support::{concord, guest, streams};

/// The digest of a run of a bare program in the timed gear on four harts.
fn digest(arguments: &[&str], prepare: impl Fn(&mut std::process::Command)) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = concord(folder.path());
    command.arg("boot").arg("--kernel").arg(guest("transactions"));
    command.args(["--harts", "4", "--gear", "timed", "--append", "iterations=20000 transactions=1"]);
    command.args(["--json", "--quiet"]).args(arguments);
    prepare(&mut command);
    let output = command.output().expect("the command runs");
    let (answer, errors) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let document: serde_json::Value = serde_json::from_str(&answer).expect("a document");
    (document["digest"].as_str().expect("a digest").to_owned(), errors)
}

#[test]
fn both_executors_have_one_result() {
    let (by_default, errors) = digest(&[], |_| ());
    for name in ["interpreter", "translator"] {
        assert_eq!(digest(&["--executor", name], |_| ()).0, by_default, "{name}");
    }
    assert!(!errors.contains("interpreter"), "{errors}");
}

#[test]
fn an_unknown_executor_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = concord(folder.path())
        .args(["boot", "--kernel", "any", "--executor", "compiler"])
        .output()
        .expect("the command runs");
    let (_, errors) = streams(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("compiler") && errors.contains("interpreter, translator"), "{errors}");
}

/// `PR_SET_MDWE` with `PR_MDWE_REFUSE_EXEC_GAIN` (Linux 6.3): memory that was not executable never becomes it.
fn refuse_executable_memory() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(65, 1_u64, 0_u64, 0_u64, 0_u64) };
}

#[test]
fn a_host_without_executable_memory_says_so_in_a_line_and_interprets() {
    let refusing = |command: &mut std::process::Command| {
        // SAFETY: the function makes a system call and nothing else between fork and exec.
        unsafe {
            command.pre_exec(|| {
                refuse_executable_memory();
                Ok(())
            })
        };
    };
    let (wanted, _) = digest(&[], |_| ());
    let (found, errors) = digest(&[], refusing);
    assert_eq!(found, wanted);
    // A kernel that cannot refuse has nothing to say here.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let parts: Vec<u32> = release.split('.').take(2).filter_map(|part| part.parse().ok()).collect();
    if parts >= vec![6, 3] {
        let said = errors.lines().filter(|line| line.contains("executable memory")).count();
        assert_eq!(said, 1, "{errors}");
        assert!(errors.contains("interpreter"), "{errors}");
    }
}

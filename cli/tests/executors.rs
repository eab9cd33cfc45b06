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
fn refuse_memory_that_becomes_executable() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(65, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// A sandbox without mremap (seccomp(2)): memory has one mapping, with one protection.
fn refuse_second_mappings() {
    let instruction = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_mremap as u32, 1),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is alive during the calls, which copy it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// The digest and the errors of a run whose process first calls a function, which makes system calls and nothing else.
fn digest_after(function: fn()) -> (String, String) {
    digest(&[], |command: &mut std::process::Command| {
        // SAFETY: see above.
        unsafe {
            command.pre_exec(move || {
                function();
                Ok(())
            })
        };
    })
}

#[test]
fn a_hardened_host_has_the_translator() {
    let (found, errors) = digest_after(refuse_memory_that_becomes_executable);
    assert_eq!(found, digest(&[], |_| ()).0);
    assert!(!errors.contains("executable memory"), "{errors}");
}

#[test]
fn a_host_without_executable_memory_says_so_in_a_line_and_interprets() {
    let (found, errors) = digest_after(refuse_second_mappings);
    assert_eq!(found, digest(&[], |_| ()).0);
    let said = errors.lines().filter(|line| line.contains("executable memory")).count();
    assert_eq!(said, 1, "{errors}");
    assert!(errors.contains("interpreter"), "{errors}");
}

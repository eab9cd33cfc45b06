//! Every end of a run has its own exit code, and its result document says the same.

mod support;

use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use support::{concord, guest, streams};

/// A guest, further arguments, and how the run must end.
struct Ending {
    guest: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    exit: &'static str,
    guest_code: u64,
    /// Part of the message; empty where there is none.
    message: &'static str,
    /// The last line on the guest's console.
    line: &'static str,
}

const ENDINGS: [Ending; 7] = [
    Ending {
        guest: "hello",
        arguments: &[],
        code: 0,
        exit: "powered-off",
        guest_code: 0,
        message: "",
        line: "Hello from 3 harts.",
    },
    Ending {
        guest: "fail",
        arguments: &["--append", "iterations=10"],
        code: 1,
        exit: "failed",
        guest_code: 7,
        message: "",
        line: "harts 3 iterations 10 failed",
    },
    Ending {
        guest: "deadlock",
        arguments: &[],
        code: 4,
        exit: "deadlocked",
        guest_code: 0,
        message: "every hart is idle",
        line: "all harts wait",
    },
    Ending {
        guest: "spin",
        arguments: &["--max-instructions", "300000"],
        code: 5,
        exit: "limit-reached",
        guest_code: 0,
        message: "300000 instructions",
        line: "all harts spin",
    },
    Ending {
        guest: "spin",
        arguments: &["--max-cycles", "200000", "--gear", "timed"],
        code: 5,
        exit: "limit-reached",
        guest_code: 0,
        message: "200000 cycles",
        line: "all harts spin",
    },
    Ending {
        guest: "wild",
        arguments: &["--max-cycles", "200000"],
        code: 4,
        exit: "deadlocked",
        guest_code: 0,
        message: "nothing can be fetched at its trap handler, 0x8000000",
        line: "jumping nowhere",
    },
    Ending {
        guest: "reset",
        arguments: &["--append", "iterations=10"],
        code: 6,
        exit: "reset",
        guest_code: 0,
        message: "",
        line: "asking for a reboot",
    },
];

#[test]
fn each_end_has_its_code_and_its_document() {
    let folder = tempfile::tempdir().unwrap();
    for (index, ending) in ENDINGS.iter().enumerate() {
        let name = format!("{index}.json");
        let mut command = concord(folder.path());
        command.arg("boot").arg("--kernel").arg(guest(ending.guest)).args(["--harts", "3", "--result", &name]);
        let output = command.args(ending.arguments).output().unwrap();
        let (console, words) = streams(&output);
        let what = format!("{} {:?}: {words}", ending.guest, ending.arguments);
        assert_eq!(output.status.code(), Some(ending.code), "{what}");
        assert_eq!(console.lines().last(), Some(ending.line), "{what}");
        assert!(words.contains(&format!("concord: {}", ending.exit)), "{what}");
        assert!(words.ends_with(&format!("(exit code {})\n", ending.code)), "{what}");

        let text = std::fs::read(folder.path().join(name)).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(document["exit"], ending.exit, "{what}");
        assert_eq!(document["exit_code"], ending.code, "{what}");
        assert_eq!(document["guest_code"], ending.guest_code, "{what}");
        assert!(document["message"].as_str().unwrap_or_default().contains(ending.message), "{what}");
        assert_eq!(document["message"].is_null(), ending.message.is_empty(), "{what}");
        assert_eq!(document["harts"].as_array().unwrap().len(), 3, "{what}");
        let lines = document["console"].as_array().unwrap();
        assert!(lines.iter().any(|line| line == ending.line), "{what}");
    }
}

/// A snapshot whose event never comes is an error of its own only where the guest did not fail.
#[test]
fn a_missed_snapshot_hides_neither_the_end_nor_the_result() {
    for (program, exit, code) in [("fail", "failed", 1), ("hello", "powered-off", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = concord(folder.path());
        command.arg("boot").arg("--kernel").arg(guest(program)).args(["--append", "iterations=10", "--quiet"]);
        command.args(["--result", "result.json", "--timeline", "timeline.json"]);
        let output = command.args(["--snapshot-at", "marker:9", "--snapshot", "s"]).output().unwrap();
        let words = streams(&output).1;
        assert_eq!(words, "concord: s: no snapshot was taken: the run ended before its event\n");
        assert_eq!(output.status.code(), Some(code), "{program}");
        for file in ["result.json", "timeline.json"] {
            let text = std::fs::read(folder.path().join(file)).unwrap();
            let document: Value = serde_json::from_slice(&text).unwrap();
            assert!(file != "result.json" || document["exit"] == exit, "{program}: {}", document["exit"]);
        }
        assert!(!folder.path().join("s").exists());
    }
}

/// Runs `hello` on two harts with more arguments and returns the result document.
fn document(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = concord(folder.path());
    command.arg("boot").arg("--kernel").arg(guest("walk8k")).args(["--harts", "2", "--append", "iterations=20"]);
    let output = command.args(["--json", "--quiet", "--gear", "timed"]).args(arguments).output().unwrap();
    let (text, console) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{console}");
    assert_eq!(
        console, "harts 2 iterations 20 passed\n",
        "with --json the console is on standard error, and alone there"
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn equal_runs_have_equal_documents_but_for_the_hosts_time() {
    let run = |seed| {
        let mut document = document(&["--seed", seed]);
        assert!(document["host_seconds"].take().as_f64().unwrap() >= 0.0);
        document
    };
    let (first, second, other) = (run("7"), run("7"), run("8"));
    assert_eq!(first, second);
    assert_ne!(first["digest"], other["digest"], "the seed perturbs miss latencies");
}

#[test]
fn a_run_from_a_snapshot_ends_like_the_run_it_was_cut_from() {
    let folder = tempfile::tempdir().unwrap();
    let boot = |more: &[&str]| {
        let mut command = concord(folder.path());
        command.arg("boot").arg("--kernel").arg(guest("walk8k")).args(["--harts", "2", "--append", "iterations=20"]);
        command.args(["--json", "--quiet", "--gear", "timed"]).args(more).output().unwrap()
    };
    let whole = boot(&["--snapshot-at", "instructions:4000", "--snapshot", "cut.snapshot"]);
    assert_eq!(whole.status.code(), Some(0), "{}", streams(&whole).1);
    let resumed =
        concord(folder.path()).args(["resume", "cut.snapshot", "--json", "--quiet"]).output().expect("it runs");
    assert_eq!(resumed.status.code(), Some(0), "{}", streams(&resumed).1);
    let digest = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap()["digest"].clone();
    assert_eq!(digest(&whole.stdout), digest(&resumed.stdout));
    assert_eq!(digest(&whole.stdout), digest(&boot(&[]).stdout), "taking a snapshot changes nothing");
}

#[test]
fn input_may_be_a_pipe_and_its_end_is_no_end_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = concord(folder.path());
    command.arg("boot").arg("--kernel").arg(guest("hello")).args(["--harts", "1", "--interactive", "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The guest may be done before this is written, which is no failure of either.
    let _ = child.stdin.take().unwrap().write_all(b"nobody reads this\x01x\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(streams(&output).0, "Hello from 1 harts.\n");
}

#[test]
fn a_signal_ends_the_run_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = concord(folder.path());
    command.arg("boot").arg("--kernel").arg(guest("spin")).args(["--harts", "1", "--result", "result.json", "--quiet"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // What the guest prints shows that the run has begun.
    let mut console = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut console, &mut [0; 4]).unwrap();
    let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let document: Value = serde_json::from_slice(&std::fs::read(folder.path().join("result.json")).unwrap()).unwrap();
    assert_eq!(document["exit"], "stopped");
    assert_eq!(document["exit_code"], 5);
    assert_eq!(document["message"], "the run was stopped from the console");
}

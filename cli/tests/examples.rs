//! The bare-metal programs with transactions, which a newcomer reads first: each verifies itself, and here is held to what it promises
//! to show, on several numbers of harts, in both gears and under every policy.

mod support;

use std::path::Path;
use std::process::Command;
use support::{concord, guest, streams};

const MANAGERS: [&str; 6] = ["timestamp", "size-matters", "os-prio", "polka", "requester-wins", "requester-stalls"];

/// Runs a program to its end, which must be success; gives the lines of its console.
fn console(program: &str, harts: &str, append: &str, arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let output = concord(folder.path())
        .args(["boot", "--quiet", "--max-cycles", "100000000", "--harts", harts, "--append", append])
        .args(arguments)
        .arg("--kernel")
        .arg(guest(program))
        .output()
        .unwrap();
    let (text, words) = streams(&output);
    let what = format!("{program} on {harts} harts, {append} {arguments:?}: {text}{words}");
    assert_eq!(output.status.code(), Some(0), "{what}");
    let iterations = append.split('=').nth(1).unwrap().split(' ').next().unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.last().unwrap(), &format!("harts {harts} iterations {iterations} passed"), "{what}");
    lines
}

/// The number behind these words on the line before the last, where the program sums up.
fn count(lines: &[String], words: &str) -> u64 {
    let line = &lines[lines.len() - 2];
    let place = line.find(words).unwrap_or_else(|| panic!("no {words:?} in {line:?}")) + words.len();
    line[place..].trim_start().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn every_example_passes_on_any_number_of_harts_in_both_gears() {
    for gear in ["functional", "timed"] {
        for harts in ["1", "2", "8", "32"] {
            for program in ["bank", "list", "print", "interrupted", "contended", "transactions"] {
                console(program, harts, "iterations=40", &["--gear", gear]);
            }
        }
    }
}

/// The README's first run: a program that is committed as it was compiled, for hosts without a cross compiler.
#[test]
fn the_first_run_needs_no_compiler_for_guests() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/bare/prebuilt/bank.elf");
    let options = ["boot", "--harts", "4", "--gear", "timed", "--append", "iterations=500", "--kernel"];
    let folder = tempfile::tempdir().unwrap();
    let output = concord(folder.path()).args(options).arg(program).output().unwrap();
    let (text, words) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{words}");
    // Where two transactions met, by the program's own names.
    for shown in
        ["of which wrong 0 restarts ", "harts 4 iterations 500 passed", "conflicts by requester", "transfer+0x"]
    {
        assert!(text.contains(shown) || words.contains(shown), "{shown}: {text}{words}");
    }
}

#[test]
fn transactions_meet_and_restart_under_every_manager() {
    for manager in MANAGERS {
        for program in ["bank", "list", "contended"] {
            let lines = console(program, "4", "iterations=400", &["--gear", "timed", "--contention-manager", manager]);
            assert!(count(&lines, "restarts") > 0, "{program} under {manager}: {lines:?}");
        }
    }
}

#[test]
fn the_examples_pass_by_line_and_in_best_effort_mode() {
    let policies = ["--granularity", "line", "--transactions", "best-effort", "--gear", "timed"];
    for program in ["bank", "list", "print", "contended"] {
        for policy in [&policies[..2], &policies[2..4], &policies[..4]] {
            let arguments = [policy, &policies[4..]].concat();
            console(program, "4", "iterations=200", &arguments);
        }
    }
}

#[test]
fn a_line_is_printed_once_and_whole_by_whoever_holds_the_lock() {
    let lines = console("print", "8", "iterations=16", &["--gear", "timed"]);
    let (printed, summary) = lines.split_at(lines.len() - 2);
    assert_eq!(printed.len(), 8 * 16 / 4, "every fourth section prints: {lines:?}");
    let mut by_hart = [0; 8];
    for (place, line) in printed.iter().enumerate() {
        let hart = line.strip_prefix(&format!("line {} by hart ", place + 1)).unwrap_or_else(|| panic!("{lines:?}"));
        by_hart[hart.parse::<usize>().unwrap()] += 1;
    }
    assert_eq!(by_hart, [4; 8], "{lines:?}");
    assert_eq!(count(&lines, "with the lock"), printed.len() as u64, "the others were transactions: {summary:?}");
    assert!(count(&lines, "restarts") >= printed.len() as u64, "each was cancelled first: {summary:?}");
}

/// What `table` must print of one call, by the paper's tables 2 and 3. `yields`: the contention manager lets a hart that wants the lock wait
/// for the transactions in its section.
fn transition(call: &str, nested: bool, state: &str, yields: bool) -> String {
    let (need_exclusive, nontransactional) = (4, 2);
    let restarted = |times: u32, cause: u32| if times == 0 { "0".to_owned() } else { format!("{times} cause {cause}") };
    let takes_lock = call != "optimistic";
    let is_transactional = state.starts_with("transactional");
    let occupants =
        ["free", "transactional", "transactional twice"].iter().position(|name| *name == state).unwrap_or(1);
    // The call itself sends a transaction around it back; what is irrevocable does as well, and once more sends back the section that
    // was called for, which is a transaction of its own in the outer one that has its lock now.
    let restarts = match call {
        "optimistic" => 0,
        "exclusive" => u32::from(nested),
        _ => 1 + u32::from(nested),
    };
    let waits = state == "exclusive" || is_transactional && takes_lock && yields;
    let lost = is_transactional && takes_lock && !yields;
    let mut line = format!(
        "{call}{}, {state}: {}, {}, restarts {}",
        if nested { ", in a transaction" } else { "" },
        if takes_lock { "has the lock" } else { "is a transaction" },
        if waits { "waits" } else { "at once" },
        restarted(restarts, need_exclusive),
    );
    for _ in 0..occupants {
        line += &format!(", occupant {}", restarted(u32::from(lost), nontransactional));
    }
    line
}

#[test]
fn a_lock_goes_through_the_states_of_the_table() {
    for (manager, yields) in MANAGERS.into_iter().zip([true, true, false, false, false, true]) {
        for gear in ["functional", "timed"] {
            let arguments = ["--gear", gear, "--contention-manager", manager];
            let lines = console("table", "3", "iterations=1 priority=9", &arguments);
            let mut expected = Vec::new();
            for call in ["optimistic", "optimistic, irrevocable", "exclusive"] {
                for nested in [false, true] {
                    for state in ["free", "transactional", "transactional twice", "exclusive"] {
                        expected.push(transition(call, nested, state, yields));
                    }
                }
            }
            assert_eq!(lines[..lines.len() - 2], expected, "{manager} {gear}");
            assert_eq!(count(&lines, "mistakes"), 0);
        }
    }
}

#[test]
fn a_transaction_survives_its_interrupt_and_in_best_effort_mode_does_not() {
    for harts in [1, 8] {
        let half = harts * 20;
        let run = |arguments: &[&str]| console("interrupted", &harts.to_string(), "iterations=40", arguments);
        let lines = run(&["--gear", "timed"]);
        assert_eq!(count(&lines, "suspended"), 2 * half, "{lines:?}");
        assert_eq!(count(&lines, "committed at once"), half, "{lines:?}");
        assert_eq!(count(&lines, "went back"), half, "{lines:?}");
        let lines = run(&["--gear", "timed", "--transactions", "best-effort"]);
        assert_eq!(count(&lines, "lost to the interrupt"), 2 * half, "{lines:?}");
    }
}

#[test]
fn the_loop_without_transactions_computes_the_same() {
    let with = console("transactions", "2", "iterations=100", &["--gear", "timed"]);
    let without = console("transactions", "2", "iterations=100 transactions=0", &["--gear", "timed"]);
    assert_eq!(with, without);
}

#[test]
fn a_machine_without_transactions_is_told_from_one_that_has_them() {
    let output = Command::new("qemu-system-riscv64")
        .args(["-M", "virt", "-smp", "2", "-m", "128M", "-nographic", "-no-reboot", "-monitor", "none", "-kernel"])
        .arg(guest("bank"))
        .stdin(std::process::Stdio::null())
        .output()
        .expect("QEMU runs: `concord doctor` says what is missing");
    let (text, _) = streams(&output);
    assert_eq!(output.status.code(), Some(103), "{text}");
    let line = text.lines().last().unwrap();
    assert_eq!(line, "this machine has no transactions: its device tree does not name xmetatm");
}

//! Hardware transactions, as the command shows them.

mod support;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use support::{concord, guest, streams};

/// Boots a guest on four harts with more arguments, successfully, and returns the result document.
fn document(folder: &Path, name: &str, arguments: &[&str]) -> Value {
    let mut command = concord(folder);
    command.arg("boot").arg("--kernel").arg(guest(name)).args(["--harts", "4", "--json", "--quiet"]).args(arguments);
    let output = command.output().unwrap();
    let (text, words) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{name} {arguments:?}: {words}");
    serde_json::from_str(&text).unwrap()
}

/// The sum over the harts of a number that `pointer` finds in their transactions.
fn sum(document: &Value, pointer: &str) -> u64 {
    let number = |hart: &Value| hart["transactions"].pointer(pointer).and_then(Value::as_u64).unwrap();
    document["harts"].as_array().unwrap().iter().map(number).sum()
}

/// The rules by which conflicts were decided.
fn rules(document: &Value) -> BTreeSet<&str> {
    document["conflicts"].as_array().unwrap().iter().map(|conflict| conflict["rule"].as_str().unwrap()).collect()
}

const EXAMPLES: [&str; 4] = ["bank", "list", "print", "interrupted"];
const HUNDRED: [&str; 4] = ["--gear", "timed", "--append", "iterations=100"];

#[test]
fn the_result_of_each_example_says_what_its_transactions_did() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        let document = document(folder.path(), name, &HUNDRED);
        let begun = sum(&document, "/begun");
        // A section is one transaction, and in `interrupted` its handler is one more.
        assert_eq!(begun, if name == "interrupted" { 800 } else { 400 }, "{name}");
        assert_eq!(sum(&document, "/committed"), begun, "{name}: whoever restarts commits in the end");
        let lost = sum(&document, "/restarts/conflict") + sum(&document, "/restarts/nontransactional");
        assert!(lost > 0, "{name}: four harts meet");
        let conflicts = document["conflicts"].as_array().unwrap();
        let total = |key: &str| conflicts.iter().map(|conflict| conflict[key].as_u64().unwrap()).sum::<u64>();
        for key in ["count", "lost_cycles", "lost_words", "inversions"] {
            assert_eq!(document["conflict_totals"][key], total(key), "{name}");
        }
        assert_eq!(
            total("count") - sum(&document, "/refused"),
            lost,
            "{name}: a conflict that is not refused has a loser"
        );
        assert!(total("lost_cycles") <= sum(&document, "/wasted_cycles"), "{name}");
        for conflict in conflicts {
            for key in ["requester", "holder", "address"] {
                let place = conflict[key].as_str().unwrap();
                assert!(place.starts_with(char::is_alphabetic), "{name}: {key} has no symbol: {conflict}");
            }
        }
        match name {
            "print" => {
                assert_eq!(sum(&document, "/restarts/need-exclusive"), 100, "each line is printed by no transaction");
                let asks_for_lock = |conflict: &Value| conflict["requester_is_transactional"] == false;
                assert!(conflicts.iter().any(asks_for_lock), "the lock is taken by no transaction either");
                assert!(sum(&document, "/arbitrated") > 0 && sum(&document, "/refused") > 0);
            }
            "interrupted" => {
                assert_eq!(sum(&document, "/suspended"), 400);
                assert_eq!(sum(&document, "/restarts/explicit"), 200);
            }
            "bank" => {
                let account = |conflict: &Value| conflict["address"].as_str().unwrap().starts_with("accounts");
                assert!(conflicts.iter().all(account), "nothing else is shared: {conflicts:?}");
            }
            _ => assert_eq!(sum(&document, "/restarts/explicit") + sum(&document, "/suspended"), 0, "{name}"),
        }
    }
}

/// A viewer draws slices of one track only where each lies in another or beside it. Harts that lose are ahead of those that win, and
/// handlers run transactions while others are suspended.
#[test]
fn slices_of_a_track_do_not_overlap_in_part() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        document(folder.path(), name, &[&HUNDRED[..], &["--timeline", "timeline.json"]].concat());
        let timeline: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("timeline.json")).unwrap()).unwrap();
        let mut tracks = BTreeMap::<u64, Vec<(u64, u64)>>::new();
        for slice in timeline["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
            let cycles = |key: &str| (slice[key].as_f64().unwrap() * 1000.0).round() as u64;
            let (begin, end) = (cycles("ts"), cycles("ts") + cycles("dur"));
            tracks.entry(slice["tid"].as_u64().unwrap()).or_default().push((begin, end));
        }
        assert_eq!(tracks.len(), 8, "{name}: a track for each hart, and one for its transactions");
        for (track, mut slices) in tracks {
            slices.sort_by_key(|(begin, end)| (*begin, std::cmp::Reverse(*end)));
            let mut around = Vec::<(u64, u64)>::new();
            for (begin, end) in slices {
                around.retain(|outer| outer.1 > begin);
                let crossed = around.iter().find(|outer| outer.1 < end);
                assert_eq!(crossed, None, "{name}: crosses {begin} to {end} on track {track}");
                around.push((begin, end));
            }
        }
    }
}

#[test]
fn a_checked_run_is_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for name in EXAMPLES {
        for gear in ["functional", "timed"] {
            let arguments = ["--gear", gear, "--append", "iterations=100"];
            let run = document(folder.path(), name, &arguments);
            let checked = document(folder.path(), name, &[&arguments[..], &["--check-isolation"]].concat());
            assert_eq!(run["digest"], checked["digest"], "{name} {gear}");
            let choice = |document: &Value| document["configuration"]["check_isolation"].as_bool();
            assert_eq!((choice(&run), choice(&checked)), (Some(false), Some(true)));
        }
    }
}

#[test]
fn a_run_can_be_checked_from_a_snapshot_on() {
    let folder = tempfile::tempdir().unwrap();
    let cut = ["--snapshot-at", "instructions:8000", "--snapshot", "cut.snapshot"];
    let run = document(folder.path(), "bank", &[&HUNDRED[..], &cut].concat());
    let output = concord(folder.path())
        .args(["resume", "cut.snapshot", "--check-isolation", "--json", "--quiet"])
        .output()
        .unwrap();
    let (text, words) = streams(&output);
    assert_eq!(output.status.code(), Some(0), "{words}");
    let resumed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(resumed["digest"], run["digest"]);
    assert_eq!(resumed["configuration"]["check_isolation"], true);
}

#[test]
fn each_contention_manager_decides_by_its_own_rules() {
    let folder = tempfile::tempdir().unwrap();
    for (manager, its_rules) in [
        ("timestamp", &["age"][..]),
        ("size-matters", &["age", "size"]),
        // Nobody sets a priority.
        ("os-prio", &["age", "size"]),
        ("polka", &["karma"]),
        ("requester-wins", &["requester"]),
        // Two that read a word and then write it wait in a circle.
        ("requester-stalls", &["age"]),
    ] {
        let document =
            document(folder.path(), "contended", &[&HUNDRED[..], &["--contention-manager", manager]].concat());
        assert_eq!(rules(&document), its_rules.iter().copied().collect(), "{manager}");
        assert_eq!(sum(&document, "/committed"), 400, "{manager}");
        assert_eq!(sum(&document, "/wait_cycles") > 0, ["polka", "requester-stalls"].contains(&manager), "{manager}");
    }
}

#[test]
fn one_snapshot_starts_runs_of_other_seeds_and_managers() {
    let folder = tempfile::tempdir().unwrap();
    let cut = ["--snapshot-at", "instructions:8000", "--snapshot", "cut.snapshot"];
    let whole = document(folder.path(), "contended", &[&HUNDRED[..], &cut].concat());
    let resumed = |arguments: &[&str]| -> Value {
        let mut command = concord(folder.path());
        command.args(["resume", "cut.snapshot", "--json", "--quiet"]).args(arguments);
        let output = command.output().unwrap();
        let (text, words) = streams(&output);
        assert_eq!(output.status.code(), Some(0), "{words}");
        serde_json::from_str(&text).unwrap()
    };
    for none in [&[][..], &["--seed", "1"], &["--seed", "1", "--contention-manager", "size-matters"]] {
        let same = resumed(none);
        assert_eq!((&same["digest"], &same["changed"]), (&whole["digest"], &json!([])), "{none:?}");
    }
    let other = resumed(&["--seed", "2"]);
    assert_eq!(other["configuration"]["seed"], 2);
    assert_eq!(other["changed"][0]["seed"], 1, "{}", other["changed"]);
    assert_ne!(other["region_cycles"], whole["region_cycles"]);
    let polka = resumed(&["--contention-manager", "polka"]);
    assert_eq!(polka["configuration"]["board"]["transactions"]["manager"], "polka");
    assert_eq!(polka["changed"][0]["contention_manager"], "size-matters");
    assert!(sum(&whole, "/wait_cycles") == 0 && sum(&polka, "/wait_cycles") > 0, "only polka waits");
    assert_eq!(sum(&polka, "/committed"), 400);
}

#[test]
fn modes_and_granularities_restart_for_reasons_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let interrupted =
        document(folder.path(), "interrupted", &[&HUNDRED[..], &["--transactions", "best-effort"]].concat());
    assert_eq!(sum(&interrupted, "/restarts/interrupt"), 400, "no transaction outlives its interrupt");
    let accounts = |granularity| {
        // Enough transfers that chance does not decide: at a hundred it does.
        let thousand = ["--gear", "timed", "--append", "iterations=1000", "--granularity", granularity];
        let document = document(folder.path(), "bank", &thousand);
        assert_eq!(sum(&document, "/committed"), 4000, "{granularity}");
        sum(&document, "/restarts/conflict")
    };
    assert!(accounts("line") > accounts("word"), "eight accounts lie on a line");
}

#[test]
fn the_summary_speaks_of_transactions_when_there_were_any() {
    let folder = tempfile::tempdir().unwrap();
    let words = |name| {
        let mut command = concord(folder.path());
        command.args(["boot", "--harts", "2"]).args(HUNDRED).arg("--kernel").arg(guest(name));
        streams(&command.output().unwrap()).1
    };
    let hello = words("hello");
    assert!(!hello.contains("transactions") && !hello.contains("conflicts"), "{hello}");
    let bank = words("bank");
    for part in [
        " transactions  begun  committed  conflict  lost cycles  back-off cycles",
        " conflicts by requester ",
        "accounts+",
    ] {
        assert!(bank.contains(part), "{bank}");
    }
}

#[test]
fn options_choose_the_policies_instead_of_the_board() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = |arguments: &[&str]| {
        let transactions = document(folder.path(), "hello", arguments)["configuration"]["board"]["transactions"].take();
        ["manager", "granularity", "mode"].map(|key| transactions[key].as_str().unwrap().to_owned())
    };
    assert_eq!(chosen(&[]), ["size-matters", "word32", "virtualized"]);
    for manager in ["timestamp", "size-matters", "os-prio", "polka", "requester-wins", "requester-stalls"] {
        assert_eq!(chosen(&["--contention-manager", manager]), [manager, "word32", "virtualized"]);
    }
    for granularity in ["word32", "word", "line"] {
        assert_eq!(chosen(&["--granularity", granularity]), ["size-matters", granularity, "virtualized"]);
    }
    assert_eq!(chosen(&["--transactions", "best-effort"]), ["size-matters", "word32", "best-effort"]);

    let board = include_str!("../../sim/machine/boards/metatm-2007.toml");
    let other = [("\"size-matters\"", "\"polka\""), ("\"word32\"", "\"line\""), ("\"virtualized\"", "\"best-effort\"")];
    let text = other.iter().fold(board.to_owned(), |text, (from, to)| text.replace(from, to));
    std::fs::write(folder.path().join("board.toml"), text).unwrap();
    assert_eq!(chosen(&["--board", "board.toml"]), ["polka", "line", "best-effort"]);
    let back = ["--contention-manager", "timestamp", "--granularity", "word", "--transactions", "virtualized"];
    assert_eq!(chosen(&[&["--board", "board.toml"], &back[..]].concat()), ["timestamp", "word", "virtualized"]);
}

#[test]
fn a_machine_without_transactions_has_none_of_their_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = concord(folder.path());
    command.args(["boot", "--transactions", "none", "--kernel"]).arg(guest("bank"));
    let output = command.output().unwrap();
    let (text, _) = streams(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("this machine has no transactions: its device tree does not name xmetatm"), "{text}");
}

//! How kernels are judged against locks, on invented runs with known times.

use crate::fixture;
use concord_lab::experiment::plan::Plan;
use concord_lab::experiment::schedule::CellOutcome;
use concord_lab::experiment::store::Store;
use concord_lab::report::kernels::{self, Data};
use serde_json::Value;

/// Elapsed and kernel time of every run of a workload on a kernel; one cycle more with each seed.
type Times<'a> = &'a dyn Fn(&str, &str) -> (u64, u64);

fn outcomes(plan: &Plan, times: Times) -> Vec<Vec<CellOutcome>> {
    let mut outcomes = fixture::outcomes(plan);
    for (group, outcomes) in plan.groups.iter().zip(&mut outcomes) {
        let (elapsed, kernel) = times(&group.case, &group.variant);
        for (seed, outcome) in (0..).zip(outcomes) {
            let CellOutcome::Made(file) = outcome else { panic!("every run is made") };
            file.result.region_cycles = elapsed + seed;
            file.result.harts.iter_mut().for_each(|hart| hart.supervisor_cycles = kernel + seed);
        }
    }
    outcomes
}

/// The document of a report, and its text.
fn report(kernels: &[&str], harts: &[usize], seeds: u64, times: Times) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let plan = fixture::plan(&["dpunish", "find"], kernels, harts, seeds);
    let outcomes = outcomes(&plan, times);
    let report = kernels::report(&Data::new(&plan, &outcomes));
    report.write(&Store::open(folder.path(), &plan.document()).unwrap()).unwrap();
    let document = std::fs::read(folder.path().join("report.json")).unwrap();
    (serde_json::from_slice(&document).unwrap(), report.text())
}

fn table<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["tables"].as_array().unwrap().iter().find(|table| table["name"] == name).unwrap()
}

/// The cells of a column.
fn column(document: &Value, name: &str, column: &str) -> Vec<Value> {
    let table = table(document, name);
    let columns = table["columns"].as_array().unwrap();
    let place = columns.iter().position(|known| known["name"] == column).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[place].clone()).collect()
}

const MILLION: u64 = 1_000_000;

#[test]
fn what_breaks_the_rule_is_counted() {
    let times: Times = &|case, kernel| match (case, kernel) {
        ("dpunish", "txlinux-cx") => (102 * MILLION, 10 * MILLION),
        _ => (100 * MILLION, 10 * MILLION),
    };
    let (document, _) = report(&["linux", "txlinux-cx"], &[8, 32], 3, times);
    assert_eq!(table(&document, "time")["violations"], 2, "dpunish, on both numbers of harts");
    let rows = column(&document, "time", "violations");
    let [none, nothing, one] = [Value::Null, 0.into(), 1.into()];
    let of_set = |kernel| [none.clone(), kernel];
    assert_eq!(rows, [of_set(one.clone()), of_set(one), of_set(nothing.clone()), of_set(nothing)].concat());
    // On each: one workload, and the mean of elapsed time, which is 1% above zero.
    assert_eq!(column(&document, "means", "violations"), [2, 2]);
    assert_eq!(table(&document, "means")["violations"], 4);
    let (document, _) = report(&["linux", "txlinux-cx"], &[8], 3, &|_, kernel| match kernel {
        "linux" => (100 * MILLION, 10 * MILLION),
        _ => (90 * MILLION, 9 * MILLION),
    });
    for name in ["time", "means"] {
        assert_eq!(table(&document, name)["violations"], 0, "{name}");
    }
    assert!(table(&document, "runs").get("violations").is_none(), "a table without a rule has none");
}

#[test]
fn the_report_begins_with_where_transactions_win_tie_and_cost() {
    let times: Times = &|case, kernel| match (case, kernel) {
        ("dpunish", "txlinux-cx") => (75 * MILLION, 11 * MILLION),
        _ => (100 * MILLION, 10 * MILLION),
    };
    let (document, text) = report(&["linux", "txlinux-cx"], &[8], 3, times);
    let sentence = text.split("\n\n").next().unwrap().replace('\n', " ");
    insta::assert_snapshot!(sentence, @"Against linux, txlinux-cx: in elapsed time it wins in dpunish (-25.0%), ties in find (+0.0%), and loses in none; in kernel time it wins in none, ties in find (+0.0%), and loses in dpunish (+10.0%)");
    assert_eq!(document["tables"][0]["name"], "verdict");
    assert_eq!(column(&document, "verdict", "workload"), ["dpunish", "find"], "most gained first");
    assert_eq!(column(&document, "verdict", "elapsed_verdict"), ["win", "tie"]);
    assert_eq!(column(&document, "verdict", "kernel_verdict"), ["cost", "tie"]);
    let (_, text) = report(&["linux", "txlinux-ss", "txlinux-cx"], &[8, 32], 1, times);
    let sentence = text.split("\n\n").next().unwrap().replace('\n', " ");
    insta::assert_snapshot!(sentence, @"Against linux, txlinux-ss: in elapsed time it is known from one seed alone in dpunish, 8 harts (+0.0%) and 3 more; in kernel time it is known from one seed alone in dpunish, 8 harts (+0.0%) and 3 more; txlinux-cx: in elapsed time it is known from one seed alone in dpunish, 8 harts (-25.0%) and 3 more; in kernel time it is known from one seed alone in find, 8 harts (+0.0%) and 3 more");
}

#[test]
fn the_better_kernel_with_locks_is_the_baseline() {
    let times: Times = &|case, kernel| match (case, kernel) {
        ("find", "linux-other") => (80 * MILLION, 8 * MILLION),
        (_, "txlinux-cx") => (90 * MILLION, 9 * MILLION),
        _ => (100 * MILLION, 10 * MILLION),
    };
    let (document, text) = report(&["linux", "linux-other", "txlinux-cx"], &[8], 3, times);
    assert!(text.starts_with("Against the better of linux and linux-other, txlinux-cx: "), "{text}");
    assert_eq!(column(&document, "verdict", "baseline"), ["linux", "linux-other"]);
    assert_eq!(column(&document, "verdict", "elapsed_verdict"), ["win", "cost"]);
    assert_eq!(column(&document, "verdict", "kernel"), ["txlinux-cx", "txlinux-cx"], "no baseline is judged");
    assert_eq!(table(&document, "time")["violations"], 2, "both times of find");
}

//! Reports of locks and transactions with invented measurements, as programs print them.

use concord_lab::experiment::store::Store;
use concord_lab::report::programs::{Data, NATIVE_FILE, report};
use concord_lab::system::check_programs::CheckPrograms;
use concord_lab::system::native::Native;
use serde_json::{Value, json};
use std::path::Path;

/// Locks that are not stolen, that are, and that are transactions; two runs of each.
pub fn locks(locks: &[&str], threads: &[u64]) -> Vec<Value> {
    let mut lines = Vec::new();
    for (index, lock) in (0..).zip(locks) {
        let head = json!({"benchmark": "lock", "lock": lock, "kind": "spin", "seed": 1, "runs": 1});
        lines.push(json!({"test": "uncontended", "threads": 1, "latency_median_ns": 6.3 + index as f64}));
        for threads in threads {
            for run in 0..2 {
                let mean = (index + 1) * threads * 1_000_000 + run * 20_000;
                let mut line = json!({"test": "loop", "threads": threads, "iterations": 1000, "elapsed_ns": mean + 900,
                    "thread_mean_ns": mean, "thread_deviation_ns": mean / 9,
                    "thread_least_ns": mean / 2, "thread_most_ns": mean * 3 / 2, "acquisitions": 1000 * threads});
                if index % 2 == 1 {
                    line["try_steals"] = (900 * threads).into();
                    for position in 0..12 {
                        line[format!("steals_{position}")] = (400 >> position).into();
                    }
                }
                if index % 3 == 2 {
                    (line["htm_attempts"], line["htm_commits"]) = (2000.into(), 1500.into());
                    (line["aborts_conflict"], line["aborts_capacity"]) = ((480 + run).into(), 20.into());
                }
                lines.push(line);
            }
        }
        for line in lines.iter_mut().filter(|line| line.get("lock").is_none()) {
            line.as_object_mut().unwrap().extend(head.as_object().unwrap().clone());
        }
    }
    lines
}

/// Workloads of some libraries, one run of each.
pub fn stm() -> Vec<Value> {
    let mut lines = Vec::new();
    for (index, (backend, library)) in
        (1u64..).zip([("spinlock", ""), ("plain", "2pl"), ("plain", "tl2"), ("itm", "2pl")])
    {
        for (weight, workload) in (1u64..).zip(["increment", "read16", "bank", "red-black-tree"]) {
            for threads in [1, 2] {
                lines.push(json!({"benchmark": "stm", "workload": workload, "backend": backend, "library": library, "method": "",
                    "threads": threads, "idle_peer": 0, "operation_ns": index * weight * 10, "operation_least_ns": index * weight * 9,
                    "commits": 1000, "cancels": 0, "restarts_invalid": 7 * (threads - 1) * (index - 1), "restarts_locked": 3}));
            }
        }
    }
    lines
}

/// Writes the report of some lines into a folder; the main tables.
pub fn write(folder: &Path, system: &'static CheckPrograms, lines: &[Value]) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.with_extension("jsonl");
    std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let native = Native::from_file(system, &file).unwrap();
    let store = Store::open(folder, &native.description).unwrap();
    store.write(NATIVE_FILE, native.text.as_bytes()).unwrap();
    let report = report(&Data::of_native(&native));
    report.write(&store).unwrap();
    report.text()
}

//! The same seed is the same run; a snapshot resumed is the run that was not interrupted.

use crate::support::{Run, Typist, boot, ours, resume, run, snapshot_at, stock};
use crate::workloads::workload;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Configuration, Executor, Gear, Machine};
use std::path::Path;

fn timed_hello(harts: usize, seed: u64) -> Configuration {
    Configuration { seed, ..ours("concord.run=hello", harts, Gear::Timed) }
}

/// Boots in the functional gear and runs the file-system workload in the timed one.
fn timed_files(harts: usize) -> Configuration {
    ours("concord.run=files concord.size=1 concord.jobs=2 concord.gear=timed", harts, Gear::Functional)
}

#[test]
fn the_same_seed_is_the_same_run() {
    let first = boot(timed_hello(4, 7)).healthy();
    let second = boot(timed_hello(4, 7)).healthy();
    first.equals(&second, "the second run");
    assert_eq!(first.console, second.console);
}

/// Runs a configuration on each executor.
fn on_both_executors(configuration: &Configuration) {
    let [interpreted, translated] = Executor::ALL.map(|executor| {
        let mut machine = Machine::new(configuration.clone()).unwrap();
        machine.set_executor(executor).unwrap();
        run(machine, Options::default(), Typist::default()).healthy()
    });
    translated.equals(&interpreted, "the interpreted run");
}

#[test]
fn both_executors_run_the_same_run() {
    on_both_executors(&timed_files(8));
}

#[test]
#[ignore = "long"]
fn both_executors_run_the_same_workloads() {
    for name in ["pmake", "bonnie++", "mab", "configure", "find", "dpunish"] {
        for locks in ["cx=off", "cx=on"] {
            let configuration = workload(name, 8, "timed");
            let append = format!("{} {locks}", configuration.append);
            on_both_executors(&Configuration { append, ..configuration });
        }
    }
}

#[test]
#[ignore = "long"]
fn both_executors_boot_the_same_stock_kernel() {
    for (harts, gear) in [(2, Gear::Timed), (32, Gear::Functional)] {
        on_both_executors(&Configuration { gear, ..stock("concord.run=hello", harts) });
    }
}

#[test]
fn another_seed_or_hart_count_is_another_run() {
    let digest = |configuration| boot(configuration).healthy().document.digest;
    let digests = [digest(timed_hello(4, 7)), digest(timed_hello(4, 8)), digest(timed_hello(3, 7))];
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2], "{digests:?}");
}

#[test]
fn what_is_typed_after_the_same_text_arrives_at_the_same_cycle() {
    let typed = || {
        let machine = Machine::new(ours("", 2, Gear::Timed)).unwrap();
        run(machine, Options::default(), Typist::at_shell(&["ls -l /", "exit"])).healthy()
    };
    let first = typed();
    first.says("lost+found");
    first.equals(&typed(), "the second run");
}

#[test]
fn a_timeline_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("timeline.json");
    let options = Options { timeline: Some(path.clone()), ..Options::default() };
    let with = run(Machine::new(timed_files(4)).unwrap(), options, Typist::default()).healthy();
    with.equals(&boot(timed_files(4)).healthy(), "without a timeline");

    let timeline: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let is_of = |hart: u64| events.iter().any(|event| event["ph"] == "X" && event["tid"] == hart + 1);
    assert!((0..4).all(is_of), "each hart did something");
}

/// Numbers in 0..1 from a seed (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
struct Fractions(u64);

impl Fractions {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as f64 / 2f64.powi(64)
    }
}

/// Takes a snapshot in a run, resumes it and takes another one there, and so on `generations` times. Each run must go on
/// after its snapshot, and each resumed one must end, as the whole one did.
fn cut(whole: &Run, configuration: &Configuration, generations: usize, fractions: &mut Fractions) {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = Machine::new(configuration.clone()).unwrap();
    let mut done = 0.0;
    for generation in 0..generations {
        done += (1.0 - done) * fractions.next();
        let event = match generation % 2 {
            0 => SnapshotEvent::Instructions((whole.document.instructions as f64 * done) as u64),
            _ => SnapshotEvent::Cycle((whole.document.clock_cycles as f64 * done) as u64),
        };
        let path = directory.path().join(format!("{generation}.snapshot"));
        let interrupted = run(machine, snapshot_at(event, &path), Typist::default());
        agrees(&interrupted, whole, &format!("the run that took snapshot {generation} at {event:?}"));
        agrees(&resume(&path, Options::default()), whole, &format!("the run resumed at {event:?}"));
        machine = Machine::resume(&path).unwrap();
    }
}

#[track_caller]
fn agrees(run: &Run, whole: &Run, what: &str) {
    run.equals(whole, what);
    assert!(whole.console.ends_with(&run.console), "{what} prints something else:\n{}", run.console);
}

/// Snapshots of one configuration at `cuts` random places, each resumed and cut again until there are `generations`.
fn cuts(configuration: &Configuration, cuts: usize, generations: usize, seed: u64) {
    let whole = boot(configuration.clone()).healthy();
    let mut fractions = Fractions(seed);
    for _ in 0..cuts {
        cut(&whole, configuration, generations, &mut fractions);
    }
}

#[test]
fn a_snapshot_during_a_functional_boot_is_invisible() {
    cuts(&ours("concord.run=hello", 4, Gear::Functional), 2, 2, 1);
}

#[test]
fn a_snapshot_during_a_timed_boot_is_invisible() {
    cuts(&timed_hello(4, 3), 2, 2, 2);
}

#[test]
fn a_snapshot_of_a_workload_in_two_gears_is_invisible() {
    cuts(&timed_files(4), 1, 2, 3);
}

#[test]
#[ignore = "long"]
fn many_snapshots_during_boots_are_invisible() {
    cuts(&ours("concord.run=hello", 8, Gear::Functional), 8, 3, 4);
    cuts(&timed_hello(8, 5), 8, 3, 5);
}

#[test]
#[ignore = "long"]
fn many_snapshots_of_a_workload_in_two_gears_are_invisible() {
    cuts(&timed_files(8), 4, 3, 6);
}

/// The places that the guest itself names.
#[test]
fn a_snapshot_at_a_hint_is_invisible() {
    let whole = boot(timed_files(2)).healthy();
    let directory = tempfile::tempdir().unwrap();
    // The region begins first: the timed gear is then its own.
    let at = |event, gear, path: &Path| {
        let interrupted = run(Machine::new(timed_files(2)).unwrap(), snapshot_at(event, path), Typist::default());
        agrees(&interrupted, &whole, "the run that took the snapshot");
        let machine = Machine::resume(path).unwrap();
        assert_eq!(machine.gear(), gear, "{event:?}");
        assert!((1..whole.document.instructions).contains(&machine.instructions()));
        agrees(&resume(path, Options::default()), &whole, "the resumed run");
    };
    at(SnapshotEvent::GearTimed, Gear::Timed, &directory.path().join("gear"));
    at(SnapshotEvent::RegionBegin, Gear::Functional, &directory.path().join("region"));
}

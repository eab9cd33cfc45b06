//! TxLinux is right: it boots in every mode, survives stress and torture, loses nothing, and its stacks and sections hold.

use crate::disk::{is_clean, on_a_copy};
use crate::support::{Run, Typist, artifact, boot, ours, run, snapshot_at, turn_on_every_key};
use crate::workloads::workload;
use concord_abi::exit::Exit;
use concord_dev::DiskMode;
use concord_machine::board::{Granularity, Mode};
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Changes, Configuration, DiskImage, Gear, Machine};
use std::path::Path;

/// Locks, transactions by subsystem, and transactions nearly everywhere.
const MODES: [&str; 3] = ["off", "ss", "on"];

/// Our kernel in a mode, with its modules.
fn txlinux(mode: &str, words: &str, harts: usize, gear: Gear) -> Configuration {
    let mut configuration = ours(&format!("cx={mode} {words}"), harts, gear);
    configuration.disks.push(DiskImage { path: artifact("modules", "modules"), mode: DiskMode::ReadOnly });
    configuration
}

/// Transactions committed on all harts.
fn committed(run: &Run) -> u64 {
    run.document.harts.iter().map(|hart| hart.transactions.committed).sum()
}

fn boots(harts: usize, gear: Gear) {
    for mode in MODES {
        let run = boot(txlinux(mode, "concord.run=hello", harts, gear)).healthy();
        run.says(&format!(", on {harts} harts"));
        run.says("concord: workload hello finished");
        assert_eq!(run.console.contains(&format!("cx: transactions: {mode}")), mode != "off");
        // At 1 hart as well: sections are transactions whether or not somebody else is there.
        assert_eq!(committed(&run) > 1_000, mode != "off", "{mode}: {}", committed(&run));
    }
}

#[test]
fn boots_in_every_mode_on_1_hart() {
    boots(1, Gear::Functional);
}

#[test]
fn boots_in_every_mode_on_8_harts() {
    boots(8, Gear::Functional);
}

#[test]
fn boots_in_every_mode_on_32_harts() {
    boots(32, Gear::Functional);
}

#[test]
fn boots_in_every_mode_on_4_timed_harts() {
    boots(4, Gear::Timed);
}

#[test]
#[ignore = "long"]
fn boots_in_every_mode_on_64_harts() {
    boots(64, Gear::Functional);
}

#[test]
#[ignore = "long"]
fn boots_in_every_mode_on_32_timed_harts() {
    boots(32, Gear::Timed);
}

#[test]
fn another_mode_is_refused() {
    for (words, message) in [
        ("cx=maybe", "cx=maybe: there is no maybe"),
        ("cx=on cx.safe=counter,ipl", "cx.safe=counter,ipl: there is no ipl"),
        ("cx=on cx.entry=fast", "cx.entry=fast: unsafe or safe is wanted"),
        ("cx=on cx.policy=sometimes", "cx.policy=sometimes: adaptive or always is wanted"),
        ("cx=on cx.raw=mm/nothing", "cx.raw=mm/nothing: there is no mm/nothing"),
    ] {
        // Before the console is there.
        let run = boot(ours(&format!("{words} earlycon=sbi concord.run=hello"), 2, Gear::Functional));
        assert_eq!(run.outcome.end.exit, Exit::Panicked, "{}", run.console);
        run.says(message);
    }
}

/// The machine without the extension: locks stay locks.
#[test]
fn a_machine_without_transactions_boots_with_locks() {
    let mut configuration = txlinux("on", "concord.run=hello", 4, Gear::Functional);
    configuration.board.transactions.mode = Mode::None;
    let run = boot(configuration).healthy();
    run.says("cx: the processor has no Xmetatm: locks stay locks");
    run.says("concord: workload hello finished");
}

/// Runs a workload on a disk that keeps what is written; checks its last words and the disk, and gives the instructions it took.
fn survives(mode: &str, workload: &str, words: &str, harts: usize, last_words: &str) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("concord.run={workload} {words}");
    let configuration =
        on_a_copy(ours(&format!("cx={mode} {words}"), harts, Gear::Functional), DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    let modules = DiskImage { path: artifact("modules", "modules"), mode: DiskMode::ReadOnly };
    let disks = configuration.disks.into_iter().chain([modules]).collect();
    let mut configuration = Configuration { disks, ..configuration };
    // With more harts more programs run at once, and a guest without memory kills some.
    configuration.board.memory.size_bytes = (128 << 20) * harts.max(8) as u64;
    let run = boot(configuration).healthy();
    run.says(last_words);
    run.says(&format!("concord: workload {workload} finished"));
    is_clean(&image);
    run.document.instructions
}

const STRESSED: &str = "stress: file system ended well";
const TORTURED: &str = "torture: every type of lock ended well";

/// Two thousand million instructions and more of both.
fn survives_stress_and_torture(mode: &str) {
    let stress = survives(mode, "stress", "concord.size=tiny concord.jobs=2 concord.gear=functional", 8, STRESSED);
    let torture = survives(mode, "torture", "concord.size=tiny concord.jobs=4", 8, TORTURED);
    assert!(stress + torture > 2_000_000_000, "{stress} and {torture}");
}

#[test]
fn locks_survive_stress_and_torture() {
    survives_stress_and_torture("off");
}

#[test]
fn transactions_by_subsystem_survive_stress_and_torture() {
    survives_stress_and_torture("ss");
}

#[test]
fn transactions_survive_stress_and_torture() {
    survives_stress_and_torture("on");
}

/// Twenty thousand million instructions and more.
fn survives_much(mode: &str, harts: usize) {
    // Most of a small size is the starting of programs, of which more harts have more.
    let size = 320 / harts;
    let words = format!("concord.size={size} concord.jobs={} concord.gear=functional", harts / 4);
    let stress = survives(mode, "stress", &words, harts, STRESSED);
    let torture = survives(mode, "torture", "concord.size=quick", harts, TORTURED);
    assert!(stress + torture > 20_000_000_000, "{stress} and {torture}");
}

#[test]
#[ignore = "long"]
fn every_mode_survives_much_on_8_harts() {
    for mode in MODES {
        survives_much(mode, 8);
    }
}

#[test]
#[ignore = "long"]
fn every_mode_survives_much_on_32_harts() {
    for mode in MODES {
        survives_much(mode, 32);
    }
}

#[test]
fn timed_transactions_survive_torture() {
    let words = "concord.size=1 concord.jobs=2";
    let mut configuration = txlinux("on", &format!("concord.run=torture {words}"), 4, Gear::Timed);
    configuration.seed = 3;
    boot(configuration).healthy().says(TORTURED);
}

const NOTHING_LOST: &str = "locks: nothing was lost;";

/// Every test of the locks' module, in one run.
#[test]
fn nothing_is_lost_in_any_mode() {
    let policies = MODES.iter().map(|mode| (*mode, "adaptive")).chain([("ss", "always"), ("on", "always")]);
    for (mode, policy) in policies {
        let words = format!("cx.policy={policy} concord.run=locks concord.size=40 concord_test.seed=7");
        let run = boot(txlinux(mode, &words, 8, Gear::Functional)).healthy();
        for test in ["counters", "lists", "balances", "wakeups", "stack"] {
            run.says(&format!("concord_test: {test}: passed on 8 processors"));
        }
        run.says(NOTHING_LOST);
    }
}

#[test]
fn nothing_is_lost_where_few_steps_are_safe_or_sets_are_by_line() {
    for safe in ["none", "counter", "wake", "wake,ipi", "sfence"] {
        let words = format!("cx.policy=always cx.safe={safe} concord.run=locks concord.size=10 concord_test.seed=3");
        boot(txlinux("on", &words, 4, Gear::Functional)).healthy().says(NOTHING_LOST);
    }
    let mut configuration =
        txlinux("on", "cx.policy=always concord.run=locks concord.size=10 concord_test.seed=3", 4, Gear::Functional);
    configuration.board.transactions.granularity = Granularity::Line;
    boot(configuration).healthy().says(NOTHING_LOST);
}

/// A broken cx_end commits sections before their bodies. A test finds it where another hart comes between the two, which is a matter of
/// the interleaving, and so of the seed.
#[test]
fn torn_sections_are_found() {
    const SEEDS: u64 = 6;
    for test in ["counters", "lists", "balances"] {
        let is_found = |seed: u64| {
            let words = format!(
                "concord.run=locks concord.size=200 concord_test.test={test} concord_test.seed={seed} \
                 concord_test.variant=broken-end"
            );
            let run = boot(txlinux("on", &words, 4, Gear::Functional));
            let has_failed = run.outcome.end.exit == Exit::Failed;
            if has_failed {
                run.says(&format!("concord_test: {test}: failed"));
            }
            has_failed
        };
        assert!((1..=SEEDS).any(is_found), "{test}: no seed of {SEEDS} finds it");
    }
}

/// Runs one of the module's tests once with each seed, from one snapshot of a machine with 32 harts, in the timed gear. The seed decides
/// about the work, the interrupts and the latencies.
fn passes_with_seeds(test: &str, words: &str, seeds: u64) -> Vec<Run> {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("before");
    // The policy would soon make locks of sections that are hammered.
    let words = format!("cx.policy=always concord.run=locks concord_test.test={test} {words}");
    let options = Options { ends_at_snapshot: true, ..snapshot_at(SnapshotEvent::RegionBegin, &snapshot) };
    run(Machine::new(txlinux("on", &words, 32, Gear::Functional)).unwrap(), options, Typist::default());
    (1..=seeds).map(|seed| with_seed(&snapshot, seed)).collect()
}

fn with_seed(snapshot: &Path, seed: u64) -> Run {
    let changes = Changes { seed: Some(seed), ..Changes::default() };
    run(Machine::resume_with(snapshot, changes).unwrap(), Options::default(), Typist::default())
}

/// How many runs there are that no two of are the same.
fn different(runs: &[Run]) -> usize {
    runs.iter().map(|run| &run.document.digest).collect::<std::collections::BTreeSet<_>>().len()
}

fn hammer_with_seeds(tests: &[&str], seeds: u64) {
    for test in tests {
        let mut runs = Vec::new();
        for run in passes_with_seeds(test, "concord.size=tiny", seeds) {
            let run = run.healthy();
            run.says(&format!("concord_test: {test}: passed on 32 processors"));
            run.says(NOTHING_LOST);
            runs.push(run);
        }
        assert_eq!(different(&runs), runs.len(), "{test}: each seed is another run");
    }
}

#[test]
fn counters_hammered_from_32_harts_lose_nothing_with_any_seed() {
    hammer_with_seeds(&["counters"], 25);
}

#[test]
fn lists_hammered_from_32_harts_lose_nothing_with_any_seed() {
    hammer_with_seeds(&["lists", "balances"], 10);
}

#[test]
#[ignore = "long"]
fn nothing_is_lost_with_a_hundred_seeds() {
    hammer_with_seeds(&["counters", "lists", "balances", "wakeups"], 100);
}

/// Sections that began in a function that has returned, interrupted, and made to restart into that function.
fn the_stack_is_safe(seeds: u64) {
    for run in passes_with_seeds("stack", "concord.size=2", seeds) {
        let run = run.healthy();
        run.says("concord_test: stack: passed on 32 processors");
        // Sixteen pairs of harts, twice: an interrupt each, and each time a restart.
        run.says("stack: 32 sections, 32 interrupted, ");
        let place = run.console.find("32 interrupted, ").unwrap() + "32 interrupted, ".len();
        let restarts: u64 = run.console[place..].split(' ').next().unwrap().parse().unwrap();
        assert!(restarts >= 32, "{restarts}");
    }
}

#[test]
fn the_live_stack_is_safe_with_any_seed() {
    the_stack_is_safe(25);
}

#[test]
#[ignore = "long"]
fn the_live_stack_is_safe_with_a_hundred_seeds() {
    the_stack_is_safe(100);
}

/// Handlers on the interrupted stack overwrite what a restart goes back to.
#[test]
fn handlers_on_the_interrupted_stack_break_the_kernel() {
    for harts in [2, 8] {
        let words = "cx.entry=unsafe concord.run=locks concord.size=20 concord_test.test=stack";
        let run = boot(txlinux("on", words, harts, Gear::Functional));
        assert!(!run.console.contains("concord_test: stack: passed"), "{}", run.console);
        // A kernel whose stack is gone may reset before it says that it panics.
        let is_broken = matches!(run.outcome.end.exit, Exit::Panicked | Exit::Failed | Exit::Reset);
        assert!(is_broken, "{:?}\n{}", run.outcome, run.console);
    }
}

/// Runs a workload with every transaction checked: isolated, serializable, and undone where it restarts.
fn is_isolated(mode: &str, name: &str, size: &str, harts: usize) {
    let configuration = workload(name, harts, "timed");
    let append =
        configuration.append.replace("concord.size=tiny", &format!("concord.size={size}")) + &format!(" cx={mode}");
    let run = boot(Configuration { append, check_isolation: true, ..configuration }).healthy();
    run.says(&format!("concord: workload {name} finished"));
    assert_eq!(committed(&run) > 0, mode != "off");
}

#[test]
fn transactions_are_isolated_in_small_workloads() {
    for name in ["dpunish", "find", "mab"] {
        is_isolated("on", name, "tiny", 4);
    }
    is_isolated("ss", "dpunish", "tiny", 4);
}

#[test]
fn transactions_are_isolated_while_the_locks_are_hammered() {
    let words = "concord.run=locks concord.size=5 concord_test.seed=11";
    let configuration = txlinux("on", words, 4, Gear::Timed);
    boot(Configuration { check_isolation: true, ..configuration }).healthy().says(NOTHING_LOST);
}

/// A run on a machine with every key, under the checker.
fn passes_with_every_key(mut configuration: Configuration, last_words: &str) {
    turn_on_every_key(&mut configuration.board);
    let run = boot(Configuration { check_isolation: true, ..configuration }).healthy();
    run.says(last_words);
    assert!(committed(&run) > 1_000, "{}", committed(&run));
}

#[test]
fn transactions_are_isolated_with_every_key() {
    for (mode, policy) in [("ss", "adaptive"), ("on", "adaptive"), ("on", "always")] {
        let words = format!("cx.policy={policy} concord.run=locks concord.size=5 concord_test.seed=13");
        passes_with_every_key(txlinux(mode, &words, 4, Gear::Timed), NOTHING_LOST);
    }
    let mut configuration = workload("dpunish", 4, "timed");
    configuration.append += " cx=on";
    passes_with_every_key(configuration, "concord: workload dpunish finished");
}

#[test]
#[ignore = "long"]
fn transactions_survive_much_isolated_with_every_key() {
    for mode in ["ss", "on"] {
        let torture = "concord.run=torture concord.size=tiny concord.jobs=4";
        passes_with_every_key(txlinux(mode, torture, 8, Gear::Functional), TORTURED);
        let stress = "concord.run=stress concord.size=tiny concord.jobs=2 concord.gear=functional";
        passes_with_every_key(txlinux(mode, stress, 8, Gear::Functional), STRESSED);
        let torture = "concord.run=torture concord.size=1 concord.jobs=2";
        passes_with_every_key(txlinux(mode, torture, 4, Gear::Timed), TORTURED);
    }
}

#[test]
#[ignore = "long"]
fn transactions_are_isolated_in_every_workload_and_mode() {
    for mode in MODES {
        for name in ["pmake", "bonnie++", "mab", "configure", "find", "dpunish"] {
            is_isolated(mode, name, "quick", 8);
        }
    }
}

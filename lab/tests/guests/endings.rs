//! How runs of Linux end, other than by power-off.

use crate::support::{Run, Typist, boot, boot_and_type, ours, resume, run, snapshot_at};
use concord_abi::exit::Exit;
use concord_machine::run::{Limits, Options, SnapshotEvent};
use concord_machine::{Configuration, Gear, Machine};

#[track_caller]
fn ended(run: &Run, exit: Exit, message: Option<&str>) {
    assert_eq!(run.outcome.end.exit, exit, "{:?}\n{}", run.outcome, run.console);
    assert_eq!((run.document.exit, run.document.exit_code), (exit, exit.code()));
    assert_eq!(run.document.message, run.outcome.message);
    match message {
        Some(message) => assert!(
            run.outcome.message.as_ref().is_some_and(|line| line.starts_with(message)),
            "{run:?}",
            run = run.outcome
        ),
        None => assert_eq!(run.outcome.message, None),
    }
}

fn rootless(words: &str) -> Configuration {
    Configuration { append: format!("console=ttyS0 root=/dev/vdz {words}"), ..ours("", 4, Gear::Functional) }
}

const NO_ROOT: &str = "Kernel panic - not syncing: VFS: Unable to mount root fs on";

#[test]
fn a_kernel_without_a_root_panics() {
    // It resets at once, or stays where it is.
    for words in ["panic=-1", "panic=0"] {
        let run = boot(rootless(words));
        ended(&run, Exit::Panicked, Some(NO_ROOT));
        assert!(run.document.console.iter().any(|line| line.contains(NO_ROOT)), "{:?}", run.document.console);
    }
}

#[test]
fn a_panic_under_load_is_told_with_its_reason() {
    let crash = "while :; do :; done & echo c >/proc/sysrq-trigger";
    let run = boot_and_type(ours("", 4, Gear::Timed), &[crash]);
    ended(&run, Exit::Panicked, Some("Kernel panic - not syncing: sysrq triggered crash"));
}

/// The kernel spins for a second between its panic and the reset.
#[test]
#[ignore = "long"]
fn a_resumed_run_remembers_the_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("snapshot");
    let whole = boot(rootless("panic=1"));
    let cut = SnapshotEvent::Cycle(whole.document.clock_cycles - 100_000_000);
    let interrupted = run(Machine::new(rootless("panic=1")).unwrap(), snapshot_at(cut, &path), Typist::default());
    let resumed = resume(&path, Options::default());
    for run in [&interrupted, &resumed] {
        ended(run, Exit::Panicked, Some(NO_ROOT));
        run.equals(&whole, "a run that was cut");
    }
}

#[test]
fn a_reset_is_told_apart() {
    ended(&boot_and_type(ours("", 2, Gear::Functional), &["busybox reboot -f"]), Exit::Reset, None);
}

#[test]
fn a_workload_that_fails_gives_its_status() {
    let run = boot(ours("concord.run=nothing", 1, Gear::Functional));
    ended(&run, Exit::Failed, None);
    assert_eq!(run.document.guest_code, 2);
    run.says("no workload nothing; there are: bonnie++");
}

fn limited(limits: Limits, words: &str) -> Run {
    let options = Options { limits, ..Options::default() };
    run(Machine::new(ours(words, 4, Gear::Functional)).unwrap(), options, Typist::default())
}

#[test]
fn a_limit_on_instructions_is_exact_to_a_turn() {
    let run = limited(Limits { instructions: Some(5_000_000), cycles: None }, "concord.run=hello");
    ended(&run, Exit::LimitReached, Some("the limit of 5000000 instructions was reached"));
    // A turn ends where a decoded run does, which is at the end of a line of 64 bytes: at most 31 instructions further.
    assert!((5_000_000..5_000_032).contains(&run.document.instructions), "{}", run.document.instructions);
}

/// A shell that nobody types at: a thousand seconds pass there in no time, as every hart sleeps between ticks.
#[test]
fn a_limit_on_cycles_ends_a_guest_that_waits() {
    let cycles = 1_000_000_000_000;
    let run = limited(Limits { instructions: None, cycles: Some(cycles) }, "");
    ended(&run, Exit::LimitReached, Some("the limit of 1000000000000 cycles was reached"));
    run.says("concord: a root shell on /dev/ttyS0");
    assert!(run.document.clock_cycles >= cycles);
    let idle: u64 = run.document.harts.iter().map(|hart| hart.idle_cycles).sum();
    assert!(idle > 4 * run.document.region_cycles / 100 * 99, "{idle}");
}

/// The last turn switches the machine off, so there is nothing left to snapshot.
#[test]
fn a_machine_that_is_off_misses_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("snapshot");
    let hello = || ours("concord.run=hello", 1, Gear::Functional);
    let instructions = boot(hello()).healthy().document.instructions;
    let options = snapshot_at(SnapshotEvent::Instructions(instructions), &path);
    let mut machine = Machine::new(hello()).unwrap();
    let outcome = concord_machine::run::run(&mut machine, &options, &mut Typist::default()).unwrap();
    assert_eq!((outcome.end.exit, outcome.missed_snapshot.as_ref()), (Exit::PoweredOff, Some(&path)));
    assert!(!path.exists());
}

#[test]
fn a_run_that_reached_a_limit_is_a_prefix_of_the_whole() {
    let whole = boot(ours("concord.run=hello", 4, Gear::Functional)).healthy();
    let part =
        limited(Limits { instructions: Some(whole.document.instructions / 10 * 9), cycles: None }, "concord.run=hello");
    ended(&part, Exit::LimitReached, Some("the limit of "));
    assert!(whole.console.starts_with(&part.console) && !part.console.is_empty());
}

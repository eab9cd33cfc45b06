//! One seed is one run: twice over, over snapshots cut anywhere, and under the debugger.

use super::guest::*;
use super::programs;
use super::random::shape;
use crate::support::assembler::*;
use crate::support::bare::*;
use crate::support::debugger_client::{Client, free_port};
use crate::support::random::Random;
use concord_abi::exit::Exit;
use concord_abi::hint::Hint;
use concord_htm::manager::Manager;
use concord_htm::policy::{Backoff, Granularity, Mode, OutsideReads};
use concord_machine::debugger;
use concord_machine::result;
use concord_machine::run::{Options, Outcome, SnapshotEvent, Unattended};
use concord_machine::{Changes, End, Gear, Machine};

/// A random guest on a random kind of machine.
fn random_guest(seed: u64) -> Bare {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut bare = Bare::new(shape(seed).harts);
    let transactions = &mut bare.board.transactions;
    transactions.manager = random.pick(&Manager::ALL);
    transactions.granularity = random.pick(&Granularity::ALL);
    transactions.outside_reads = random.pick(&OutsideReads::ALL);
    transactions.deferred_adds = random.pick(&[0, 1, 16]);
    transactions.mode = random.pick(&[Mode::Virtualized, Mode::BestEffort]);
    bare.check_isolation = random.one_in(2);
    bare.board.transactions.backoff = random.pick(&Backoff::ALL);
    programs::build(&mut bare, shape(seed));
    bare
}

/// Runs a machine to its end.
fn digest(mut machine: Machine, options: &Options) -> String {
    let (outcome, _) = run_machine(&mut machine, options);
    assert_eq!(outcome.end.exit, Exit::PoweredOff, "{outcome:?}");
    machine.digest().expect("the machine has a digest")
}

/// The same guest runs the same way twice.
#[test]
fn a_run_repeats() {
    for seed in 0..6 {
        for gear in [Gear::Functional, Gear::Timed] {
            let run = || digest(random_guest(seed).machine(gear), &Options::default());
            assert_eq!(run(), run(), "seed {seed} {gear:?}");
        }
    }
}

/// Saves the guest at an event, lets it run on, and resumes what was saved: all three end alike.
fn check_cut(build: &dyn Fn() -> Bare, gear: Gear, event: SnapshotEvent, whole: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cut");
    let options = Options { snapshot: Some((event, path.clone())), ..Options::default() };
    assert_eq!(digest(build().machine(gear), &options), whole, "{gear:?} {event:?}: the run that was saved");
    let resumed = Machine::resume(&path).expect("the snapshot is sound");
    assert_eq!(digest(resumed, &Options::default()), whole, "{gear:?} {event:?}: the run that was resumed");
}

/// Snapshots at random instructions of random guests.
#[test]
fn a_snapshot_cut_anywhere_resumes_to_the_same_end() {
    for seed in 10..16 {
        for gear in [Gear::Functional, Gear::Timed] {
            let mut random = Random::new(seed);
            let mut machine = random_guest(seed).machine(gear);
            let (outcome, _) = run_machine(&mut machine, &Options::default());
            assert_eq!(outcome.end.exit, Exit::PoweredOff, "{outcome:?}");
            let whole = machine.digest().expect("the machine has a digest");
            for _ in 0..4 {
                let event = SnapshotEvent::Instructions(random.below(machine.instructions()));
                check_cut(&|| random_guest(seed), gear, event, &whole);
            }
        }
    }
}

/// One snapshot starts any number of runs: the seed that it has gives the run that was saved, another one another run, and the
/// same one each time.
#[test]
fn a_snapshot_starts_a_run_for_each_seed() {
    for guest in [10, 11, 12] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cut");
        let mut machine = random_guest(guest).machine(Gear::Timed);
        let event = SnapshotEvent::Instructions(machine_half(guest));
        let options = Options { snapshot: Some((event, path.clone())), ..Options::default() };
        run_machine(&mut machine, &options);
        let run = |changes: Changes| {
            let mut resumed = Machine::resume_with(&path, changes).expect("the snapshot is sound");
            run_machine(&mut resumed, &Options::default());
            let cycles: Vec<u64> = resumed.hot_states().iter().map(|hart| hart.cycle).collect();
            (resumed.digest().expect("the machine has a digest"), cycles, resumed)
        };
        let seeded = |seed| run(Changes { seed: Some(seed), ..Changes::default() });
        let whole = machine.digest().expect("the machine has a digest");
        assert_eq!(run(Changes::default()).0, whole, "guest {guest}");
        assert_eq!(seeded(1).0, whole, "guest {guest}: the seed that it has");
        let others = [2, 3].map(seeded);
        assert_ne!(others[0].1, others[1].1, "guest {guest}: misses take as long as the seed says");
        for (seed, (digest, cycles, mut resumed)) in [2, 3].into_iter().zip(others) {
            let again = seeded(seed);
            assert_eq!((&again.0, &again.1), (&digest, &cycles), "guest {guest} seed {seed}");
            assert_ne!(digest, whole, "guest {guest} seed {seed}");
            assert_eq!(resumed.configuration().seed, seed);
            let document = result::document(&mut resumed, &ended(), 0.0).expect("a document");
            let former: Vec<u64> = document.changed.iter().map(|changed| changed.seed).collect();
            assert_eq!(former, [1], "the seed that it was saved with");
        }
    }
}

/// Half of the instructions of a random guest.
fn machine_half(guest: u64) -> u64 {
    let mut machine = random_guest(guest).machine(Gear::Timed);
    run_machine(&mut machine, &Options::default());
    machine.instructions() / 2
}

/// The usual end.
fn ended() -> Outcome {
    Outcome::new(End { exit: Exit::PoweredOff, code: 0, hart: None }, None)
}

/// Inside transactions of every kind, other managers and seeds take over, and nothing is lost.
#[test]
fn a_run_goes_on_under_another_contention_manager() {
    for marker in 1..=9 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cut");
        let options = Options { snapshot: Some((SnapshotEvent::Marker(marker), path.clone())), ..Options::default() };
        let mut build = marked_guest();
        build.check_isolation = true;
        let whole = digest(build.machine(Gear::Timed), &options);
        for manager in Manager::ALL {
            let changes = Changes { seed: Some(7), contention_manager: Some(manager) };
            let run = || Machine::resume_with(&path, changes).expect("the snapshot is sound");
            assert_eq!(run().configuration().board.transactions.manager, manager);
            let changed = digest(run(), &Options::default());
            assert_eq!(changed, digest(run(), &Options::default()), "marker {marker} {manager:?}");
            assert_ne!(changed, whole, "marker {marker} {manager:?}");
        }
    }
}

/// A guest of two harts with markers where a snapshot is hard: in a transaction at depth 2 that wrote and read, in a suspended
/// one, in one within it, in a lost one, in a context that is not current, in a handler, and in back-off.
fn marked_guest() -> Bare {
    let mut bare = Bare::new(2);
    bare.board.transactions.backoff_base_cycles = 4096;
    let mark = |bare: &mut Bare, number: u64| {
        bare.load(S9, number);
        bare.push(i_type(OP_IMM, 0, 2, S9, Hint::Marker as i64));
    };
    let first = |bare: &mut Bare| {
        bare.translate();
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.load_word(S3, B);
            bare.begin(ZERO);
            // A translation by an entry of its own.
            bare.store(entry_address(0), entry(DATA + 0x2000, READ | WRITE));
            bare.store(WINDOW, 3);
            mark(bare, 1);
            bare.suspend();
            mark(bare, 2);
            bare.begin(ZERO);
            bare.store(C, 6);
            mark(bare, 3);
            bare.suspend();
            bare.set_csr(concord_abi::htm::CSR_CONTEXT, 5);
            mark(bare, 4);
            bare.set_csr(concord_abi::htm::CSR_CONTEXT, 0);
            bare.resume();
            bare.end();
            bare.resume();
            bare.trap(|bare| bare.push(EBREAK));
            mark(bare, 5);
            bare.meet_plainly(1);
            mark(bare, 6);
            bare.return_here();
            bare.spin();
        };
        bare.attempt(S2, first, |bare| mark(bare, 7));
        bare.load_word(S4, A);
        bare.end();
        bare.log(S2);
        bare.log(S4);
        // And one that loses while it runs.
        bare.attempt(
            S2,
            |bare| {
                bare.store(A, 6);
                bare.tell_and_spin(2);
            },
            |bare| mark(bare, 8),
        );
        bare.end();
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.load_word(S3, A);
        bare.store(ANSWER, 1);
        bare.wait_for(FLAG, 2);
        bare.store(A, 7);
        // The first hart backs off.
        mark(bare, 9);
    };
    bare.map(0, READ | WRITE);
    on_harts(&[&first, &second])(&mut bare);
    bare
}

/// Snapshots inside a transaction, inside a suspended one, and wherever else one is between two states.
#[test]
fn a_snapshot_inside_a_transaction_resumes_to_the_same_end() {
    for gear in [Gear::Functional, Gear::Timed] {
        for check_isolation in [false, true] {
            let build = || {
                let mut bare = marked_guest();
                bare.check_isolation = check_isolation;
                bare
            };
            let logs = build().run(gear);
            assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, 0], "{gear:?}");
            let whole = digest(build().machine(gear), &Options::default());
            for marker in 1..=9 {
                check_cut(&build, gear, SnapshotEvent::Marker(marker), &whole);
            }
        }
    }
}

/// Breakpoints, and single steps of each hart from there on: through begins, commits, restarts and handlers.
#[test]
fn single_steps_leave_the_run_as_it_was() {
    const STEPS: usize = 400;
    for (seed, gear) in [(20, Gear::Functional), (21, Gear::Timed), (22, Gear::Timed)] {
        let whole = digest(random_guest(seed).machine(gear), &Options::default());
        let number = free_port();
        let port = debugger::Port::open(number).expect("nobody else has the port");
        let stepped = std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                let mut machine = random_guest(seed).machine(gear);
                let outcome = debugger::serve(&mut machine, &port, &Options::default(), &mut Unattended::default());
                assert_eq!(outcome.expect("the run ends").end.exit, Exit::PoweredOff);
                machine.digest().expect("the machine has a digest")
            });
            let mut client = Client::connect(number);
            // The first instruction of the trap handler, which the guest's first section has jumped over.
            let begin = CODE + 0x1d0;
            assert_eq!(client.ask(&format!("Z0,{begin:x},4")), "OK");
            assert!(client.ask("vCont;c").starts_with("T05"));
            assert_eq!(client.ask(&format!("z0,{begin:x},4")), "OK");
            for step in 0..STEPS {
                let thread = 1 + step / 20 % 2;
                let stop = client.ask(&format!("vCont;s:{thread};c"));
                assert!(stop.starts_with("T05") || stop.starts_with("S05"), "{stop}");
            }
            assert_eq!(client.ask("vCont;c"), "W00");
            run.join().expect("the debugged run is right")
        });
        assert_eq!(stepped, whole, "seed {seed} {gear:?}");
    }
}

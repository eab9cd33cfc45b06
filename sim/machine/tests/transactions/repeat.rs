//! One seed is one run: twice over, over snapshots cut anywhere, and under the debugger.

use crate::assembler::*;
use crate::bare::*;
use crate::debugger_client::{Client, free_port};
use crate::guest::*;
use crate::programs;
use crate::random::Random;
use crate::random_guests::shape;
use concord_abi::exit::Exit;
use concord_abi::hint::Hint;
use concord_htm::manager::Manager;
use concord_htm::policy::{Granularity, Mode};
use concord_machine::debugger;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Gear, Machine};

/// A random guest on a random kind of machine.
fn random_guest(seed: u64) -> Bare {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut bare = Bare::new(shape(seed).harts);
    let transactions = &mut bare.board.transactions;
    transactions.manager = random.pick(&Manager::ALL);
    transactions.granularity = random.pick(&[Granularity::Word, Granularity::Line]);
    transactions.mode = random.pick(&[Mode::Virtualized, Mode::BestEffort]);
    bare.check_isolation = random.one_in(2);
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
        let port = free_port();
        let stepped = std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                let mut machine = random_guest(seed).machine(gear);
                let outcome = debugger::serve(&mut machine, port, &Options::default(), &mut Console::default());
                assert_eq!(outcome.expect("the run ends").end.exit, Exit::PoweredOff);
                machine.digest().expect("the machine has a digest")
            });
            let mut client = Client::connect(port);
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

//! The engine against a serial oracle: random programs of several harts under every manager, granularity and mode. The
//! committed transactions give the same values when they execute one by one in the order of their commits; every run
//! ends; and the isolation checker agrees. Both catch planted faults.
//!
//! `CONCORD_ORACLE_CASES` sets the number of programs under each policy.

mod fault;
mod interpreter;
mod program;
mod serial;

use concord_htm::manager::Manager;
use concord_htm::policy::OutsideReads::{Committed, Wins};
use concord_htm::policy::{Backoff, Granularity, Mode, Policy};
use fault::Fault;
use interpreter::{Failure, Options, Outcome, Seen, run};
use program::{Program, program};
use proptest::prelude::{any, prop_assert_eq};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::RefCell;

/// Programs under each policy.
fn cases() -> u32 {
    match std::env::var("CONCORD_ORACLE_CASES") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("CONCORD_ORACLE_CASES must be a number, not {text:?}")),
        Err(_) => 200,
    }
}

/// Every granularity and mode. Conflicts are settled sooner than by default, since the programs are short.
fn policies(manager: Manager) -> [Policy; 8] {
    let policy = |(granularity, mode, outside_reads, deferred_adds, backoff)| Policy {
        manager,
        granularity,
        mode,
        outside_reads,
        deferred_adds,
        backoff,
        backoff_base_cycles: 16,
        restart_threshold: 3,
        ..Policy::default()
    };
    [
        (Granularity::Word32, Mode::Virtualized, Wins, 0, Backoff::Random),
        (Granularity::Word32, Mode::Virtualized, Committed, 2, Backoff::Winner),
        (Granularity::Word32, Mode::BestEffort, Wins, 2, Backoff::Winner),
        (Granularity::Word32, Mode::BestEffort, Committed, 0, Backoff::Random),
        (Granularity::Word, Mode::Virtualized, Wins, 2, Backoff::Random),
        (Granularity::Word, Mode::BestEffort, Wins, 0, Backoff::Random),
        (Granularity::Line, Mode::Virtualized, Wins, 0, Backoff::Winner),
        (Granularity::Line, Mode::BestEffort, Wins, 2, Backoff::Random),
    ]
    .map(policy)
}

/// A runner that draws the same programs every time for the same number of them.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// The number of interleavings under which a smaller program is tried after a failure, since it seldom fails under the
/// same one.
const INTERLEAVINGS: u64 = 128;

/// A program that fails under some interleaving, and its failure.
fn fails(
    mut program: Program,
    policy: Policy,
    options: Options,
    interleavings: u64,
) -> Option<Box<(Program, Failure)>> {
    for _ in 0..interleavings {
        if let Err(failure) = run(&program, policy, options) {
            return Some(Box::new((program, failure)));
        }
        program.choices.clear();
        program.seed = program.seed.wrapping_add(1);
    }
    None
}

/// Runs random programs. Returns a failing one that is minimal under removal, with its failure.
fn run_random_programs(
    cases: u32,
    policy: Policy,
    options: Options,
    mut passed: impl FnMut(&Outcome),
) -> Result<(), Box<(Program, Failure)>> {
    let passed = RefCell::new(&mut passed);
    let result = runner(cases).run(&program(), |program| match run(&program, policy, options) {
        Ok(outcome) => {
            (passed.borrow_mut())(&outcome);
            Ok(())
        }
        Err(_) => Err(TestCaseError::fail("it fails")),
    });
    let mut smallest = match result {
        Ok(()) => return Ok(()),
        Err(TestError::Fail(_, program)) => fails(program, policy, options, 1).expect("runs are deterministic"),
        Err(error) => panic!("{policy:?}: {error}"),
    };
    // proptest shrinks values, but does not replace an action by those inside it.
    let fails_too = |program| fails(program, policy, options, INTERLEAVINGS);
    while let Some(smaller) = smallest.0.smaller().into_iter().find_map(fails_too) {
        smallest = smaller;
    }
    Err(smallest)
}

/// Compares every granularity and mode of a manager with the oracle.
fn hold_to_the_oracle(manager: Manager) -> Seen {
    let (mut operations, mut seen) = (0, Seen::default());
    for policy in policies(manager) {
        let options = Options { checks: true, ..Options::default() };
        let result = run_random_programs(cases(), policy, options, |outcome| {
            operations += outcome.operations;
            seen.add(&outcome.seen);
        });
        if let Err(smallest) = result {
            let (program, failure) = *smallest;
            panic!("{policy:?}: {failure:x?} in {program:#?}");
        }
    }
    println!("{}: {} operations, {seen:?}", manager.name(), operations);
    // Without these events the programs test less than intended.
    let Seen {
        committed,
        nested,
        suspended,
        doomed,
        stack,
        overflowed,
        migrated,
        around,
        added,
        undeferred,
        released,
        restarts,
        ..
    } = seen;
    let [_, conflict, nontransactional, explicit, _, capacity, interrupt, _] = restarts;
    let counts =
        [committed, nested, suspended, doomed, stack, overflowed, migrated, around, added, undeferred, released];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
    let counts = [conflict, nontransactional, explicit, capacity, interrupt];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
    seen
}

#[test]
fn timestamp_is_serial_and_ends() {
    assert!(hold_to_the_oracle(Manager::Timestamp).refused > 0);
}

#[test]
fn size_matters_is_serial_and_ends() {
    assert!(hold_to_the_oracle(Manager::SizeMatters).refused > 0);
}

#[test]
fn os_prio_is_serial_ends_and_inverts_no_priority() {
    assert!(hold_to_the_oracle(Manager::OsPrio).refused > 0);
}

#[test]
fn polka_is_serial_and_ends() {
    assert!(hold_to_the_oracle(Manager::Polka).waits > 0);
}

#[test]
fn requester_stalls_is_serial_and_ends() {
    assert!(hold_to_the_oracle(Manager::RequesterStalls).waits > 0);
}

#[test]
fn requester_wins_is_serial_and_ends() {
    hold_to_the_oracle(Manager::RequesterWins);
}

/// An engine that was written and read back makes the same decisions and draws the same random numbers, and a checker
/// that begins there reports no violation.
#[test]
fn a_run_that_is_cut_continues_the_same() {
    for policy in Manager::ALL.into_iter().flat_map(policies) {
        let result = runner(cases() / 4).run(&(program(), any::<u64>()), |(program, cut)| {
            let options = Options { checks: true, ..Options::default() };
            let whole = run(&program, policy, options).expect("another test says that it is serial");
            let cut = Options { cut: Some(1 + cut % whole.operations.max(1)), ..options };
            let pieces = run(&program, policy, cut).map_err(|failure| TestCaseError::fail(format!("{failure:x?}")))?;
            prop_assert_eq!(whole, pieces);
            Ok(())
        });
        if let Err(error) = result {
            panic!("{policy:?}: {error}");
        }
    }
}

#[test]
fn the_checker_and_the_oracle_catch_planted_faults() {
    let faults =
        [Fault::MissingUndo, Fault::ForgottenOnEviction, Fault::UncheckedSwap, Fault::WideUndo, Fault::SeenWrite];
    for fault in faults {
        let outside_reads = if fault == Fault::SeenWrite { Committed } else { Wins };
        let deferred_adds = if fault == Fault::AddedTwice { 2 } else { 0 };
        for granularity in Granularity::ALL {
            // Larger granules are what the fault takes these for.
            if fault == Fault::WideUndo && granularity != Granularity::Word32 {
                continue;
            }
            for checks in [true, false] {
                let policy = Policy { granularity, outside_reads, deferred_adds, ..policies(Manager::SizeMatters)[0] };
                let options = Options { checks, fault: Some(fault), cut: None };
                let (program, failure) = *run_random_programs(2000, policy, options, |_| {}).unwrap_err();
                println!("{fault:?} by {granularity:?}: {failure:x?} in {program:?}");
                assert_eq!(matches!(failure, Failure::Violation(_)), checks, "{fault:?}: {failure:x?} in {program:#?}");
                assert!(program.size() <= 10, "{fault:?}: {program:#?}");
            }
        }
    }
}

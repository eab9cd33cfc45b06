//! Random guests under every manager, granularity, mode and gear, with the isolation checker on and off.
//!
//! `CONCORD_TRANSACTION_GUESTS` is the number of guests for each of the sixty kinds of machine (2, in the long tests 100), and `CONCORD_TRANSACTION_SEED`
//! the first seed.

use super::programs::{self, Shape};
use crate::support::bare::*;
use concord_htm::manager::Manager;
use concord_htm::policy::{Backoff, Granularity, Mode, OutsideReads};
use concord_machine::Gear;
use concord_machine::board::TransactionBoard;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// The shape that a seed stands for.
pub fn shape(seed: u64) -> Shape {
    Shape { seed, harts: 2 + (seed % 7) as usize, sections: 4 + seed % 5, rounds: 10 + seed % 15 }
}

/// Runs a guest with and without the isolation checker, which sends every access the slow way and changes nothing.
fn run(transactions: &TransactionBoard, gear: Gear, seed: u64) {
    let why = format!("seed {seed}, {transactions:?} {gear:?}");
    eprintln!("{why}");
    let shape = shape(seed);
    let run = |check_isolation| {
        let mut bare = Bare::new(shape.harts);
        bare.board.transactions = transactions.clone();
        bare.check_isolation = check_isolation;
        bare.instructions_max = 40_000_000;
        let expected = programs::build(&mut bare, shape);
        let (logs, mut machine) = bare.run_whole(gear);
        programs::check(&expected, &logs, &why);
        machine.digest().expect("the machine has a digest")
    };
    assert_eq!(run(false), run(true), "{why}: the checker changed the run");
}

/// Every key of a board's transactions at once.
fn every_key() -> TransactionBoard {
    TransactionBoard {
        manager: Manager::RequesterStalls,
        granularity: Granularity::Word32,
        outside_reads: OutsideReads::Committed,
        deferred_adds: 16,
        backoff: Backoff::Winner,
        ..TransactionBoard::default()
    }
}

/// The keys meet: what one of them lets a transaction do, the others know of.
#[test]
fn random_guests_keep_their_invariants_with_every_key() {
    let first = setting("CONCORD_TRANSACTION_SEED", 0);
    let is_long = std::env::var_os("CONCORD_TEST_LONG").is_some();
    let guests = setting("CONCORD_TRANSACTION_GUESTS", if is_long { 1000 } else { 40 });
    for seed in first..first + guests {
        for mode in [Mode::Virtualized, Mode::BestEffort] {
            let keys = TransactionBoard { mode, ..every_key() };
            let gear = [Gear::Functional, Gear::Timed][seed as usize % 2];
            run(&keys, gear, seed);
        }
    }
}

/// [X-89], [X-90], [X-111], [X-112], [X-114]: nothing is lost, nobody sees what cannot be, and every
/// run comes to its end.
#[test]
fn random_guests_keep_their_invariants() {
    let first = setting("CONCORD_TRANSACTION_SEED", 0);
    let is_long = std::env::var_os("CONCORD_TEST_LONG").is_some();
    let guests = setting("CONCORD_TRANSACTION_GUESTS", if is_long { 100 } else { 2 });
    let mut seed = first;
    for manager in Manager::ALL {
        for granularity in Granularity::ALL {
            for mode in [Mode::Virtualized, Mode::BestEffort] {
                // Half of the machines have each of the other keys.
                let outside_reads = OutsideReads::ALL[seed as usize / 4 % 2];
                let deferred_adds = [0, 2][seed as usize / 8 % 2];
                let backoff = Backoff::ALL[seed as usize / 16 % 2];
                let keys = TransactionBoard {
                    manager,
                    granularity,
                    mode,
                    outside_reads,
                    deferred_adds,
                    backoff,
                    ..TransactionBoard::default()
                };
                for gear in [Gear::Functional, Gear::Timed] {
                    for _ in 0..guests {
                        run(&keys, gear, seed);
                        seed += 1;
                    }
                }
            }
        }
    }
}

//! Loads outside transactions under `outside_reads = "committed"`: section 9.1 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::{Granularity, OutsideReads};

/// Runs two harts with committed outside reads, by every granule.
fn committed(first: Part, second: Part, check: impl Fn(Granularity, Logs)) {
    for granularity in Granularity::ALL {
        let build = |bare: &mut Bare| {
            bare.set_word(A, 2 << 32 | 1);
            bare.set_word(A + 8, 3);
            bare.board.transactions.outside_reads = OutsideReads::Committed;
            bare.board.transactions.granularity = granularity;
            bare.board.transactions.manager = Manager::RequesterWins;
            on_harts(&[first, second])(bare);
        };
        everywhere(2, build, |logs| check(granularity, logs));
    }
}

/// a load between two stores of a transaction sees neither, whatever its width and wherever it lies, and
/// the transaction goes on; behind the commit it sees both.
#[test]
fn a_load_between_two_stores_sees_neither() {
    let loads: [(Part, u64, u64); 8] = [
        (&|bare| bare.push(ld(S3, S0, 0)), 2 << 32 | 1, 5),
        (&|bare| bare.push(i_type(LOAD, S3, 2, S0, 0)), 1, 5),
        (&|bare| bare.push(i_type(LOAD, S3, 2, S0, 4)), 2, 0),
        (&|bare| bare.push(i_type(LOAD, S3, 0, S0, 4)), 2, 0),
        // Misaligned: of a granule of the write set and of one that no transaction has, in one line and in two.
        (&|bare| bare.push(i_type(LOAD, S3, 5, S0, 3)), 2 << 8, 0),
        (&|bare| bare.push(ld(S3, S0, 4)), 3 << 32 | 2, 3 << 32),
        (&|bare| bare.push(ld(S3, S0, -4)), 1 << 32, 5 << 32),
        (&|bare| bare.push(Width::Double.encode_test(S3, S0, S1)), 1, 0),
    ];
    for (index, (load, before, after)) in loads.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.meet(1);
                bare.store(B, 6);
                bare.meet(2);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_CONFLICT);
            bare.meet_plainly(3);
        };
        let second = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 2 << 32 | 1);
            for number in 1..=3 {
                bare.wait_for(FLAG, number);
                load(bare);
                bare.log(S3);
                bare.log_word(B);
                bare.store(ANSWER, number);
            }
        };
        committed(&first, &second, |granularity, logs| {
            let why = format!("{granularity:?} {:?}: load {index}", logs.gear);
            assert_eq!(logs.words::<2>(0), [0, 0], "{why}");
            assert_eq!(logs.words::<6>(1), [before, 0, before, 0, after, 6], "{why}");
        });
    }
}

/// what a load read around is still read around at the next load, and a rollback in between changes nothing.
#[test]
fn a_load_sees_no_rollback() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.meet(1);
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.meet(2);
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        for number in 1..=2 {
            bare.wait_for(FLAG, number);
            bare.log_word(A);
            bare.log_word(A);
            bare.store(ANSWER, number);
        }
    };
    committed(&first, &second, |granularity, logs| {
        assert_eq!(logs.words::<1>(0), [EXPLICIT], "{granularity:?} {:?}", logs.gear);
        assert_eq!(logs.words::<4>(1), [2 << 32 | 1; 4], "{granularity:?} {:?}", logs.gear);
    });
}

/// whoever writes, or is about to, wins as ever; an xcas is arbitrated.
#[test]
fn all_others_win() {
    let accesses: [Part; 6] = [
        &|bare| bare.push(sd(S1, S0, 0)),
        &|bare| bare.push(amo_add(S3, S0, ZERO)),
        &|bare| bare.push(lr(S3, S0)),
        &|bare| bare.push(Width::Double.encode_compare_and_swap(S3, S0, S1, S1)),
        &|bare| {
            bare.push(lr(S3, S0));
            bare.push(sc(S4, S0, S1));
        },
        &|bare| bare.push(s_type(STORE, 0, S0, S1, 0)),
    ];
    for (index, access) in accesses.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
        };
        let second = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 9);
            bare.wait_for(FLAG, 1);
            access(bare);
        };
        committed(&first, &second, |granularity, logs| {
            assert_eq!(logs.words::<1>(0), [NONTRANSACTIONAL], "{granularity:?} {:?}: access {index}", logs.gear);
        });
    }
}

/// a handler's load of what the transaction wrote that it interrupted makes the transaction lose, and reads what was
/// there before.
#[test]
fn a_load_above_the_own_transaction_wins() {
    for granularity in Granularity::ALL {
        let build = |bare: &mut Bare| {
            bare.set_word(A, 1);
            bare.board.transactions.outside_reads = OutsideReads::Committed;
            bare.board.transactions.granularity = granularity;
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.outside(|bare| {
                    bare.load_word(S3, A);
                    bare.note(0, 0, S3);
                });
                bare.spin();
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            assert_eq!((logs.words::<1>(0), logs.notes::<1>(0)), ([NONTRANSACTIONAL], [1]), "{:?}", logs.gear);
        });
    }
}

/// another hart's walk wins against the transaction that wrote the entry.
#[test]
fn a_walk_wins() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(entry_address(0), entry(DATA + 0x2000, READ | WRITE));
            bare.tell_and_spin(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.translate();
        bare.log_word(WINDOW);
    };
    let build = |bare: &mut Bare| {
        bare.map(0, READ | WRITE);
        bare.set_word(DATA, 0);
        bare.board.transactions.outside_reads = OutsideReads::Committed;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| assert_eq!(logs.words::<1>(0), [NONTRANSACTIONAL], "{:?}", logs.gear));
}

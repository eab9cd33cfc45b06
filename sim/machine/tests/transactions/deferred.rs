//! Deferred additions: section 11.1 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::Granularity;

/// AMOADD.W
fn amo_add_word(rd: u32, address: u32, value: u32) -> u32 {
    r_type(AMO, rd, 2, address, value, 0)
}

/// Adds 3 to a word and drops what was there.
fn add_three(bare: &mut Bare, address: u64) {
    bare.load(T0, address);
    bare.load(T1, 3);
    bare.push(amo_add(ZERO, T0, T1));
}

/// Runs harts with two deferred additions at most, by every granule.
fn deferring(bodies: &[Part], check: impl Fn(Granularity, Logs)) {
    for granularity in Granularity::ALL {
        let build = |bare: &mut Bare| {
            bare.set_word(A, 1);
            bare.board.transactions.deferred_adds = 2;
            bare.board.transactions.granularity = granularity;
            bare.board.transactions.manager = Manager::RequesterWins;
            on_harts(bodies)(bare);
        };
        everywhere(bodies.len(), build, |logs| check(granularity, logs));
    }
}

/// transactions that only add to a word do not conflict, nobody sees an addition before its commit, and
/// everybody sees it afterwards.
#[test]
fn adders_do_not_conflict() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            add_three(bare, A);
            bare.read_csr(S3, CSR_SIZE);
            bare.meet(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log(S3);
        bare.meet_plainly(2);
        bare.log_word(A);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.log_word(A);
        let first = |bare: &mut Bare| {
            add_three(bare, A);
            add_three(bare, A);
            bare.outside(|bare| bare.store(ANSWER, 1));
            bare.poll(FLAG, 2);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log_word(A);
        bare.store(ANSWER, 2);
    };
    deferring(&[&first, &second], |granularity, logs| {
        let why = format!("{granularity:?} {:?}", logs.gear);
        assert_eq!(logs.words::<3>(0), [0, 0, 10], "{why}");
        assert_eq!(logs.words::<3>(1), [1, 0, 10], "{why}");
    });
}

/// at the commit an addition wins against whoever has the granule, reader or writer, as a store outside does.
#[test]
fn an_addition_wins_at_its_commit() {
    for writes in [false, true] {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                if writes {
                    bare.store(A, 8);
                } else {
                    bare.load_word(S3, A);
                }
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_CONFLICT);
            bare.log_csr(CSR_WINNER);
            bare.log_word(A);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.begin(S2);
            add_three(bare, A);
            bare.end();
            bare.log(S2);
        };
        deferring(&[&first, &second], |granularity, logs| {
            let why = format!("{granularity:?} {:?} {writes}", logs.gear);
            assert_eq!(logs.words::<4>(0), [NONTRANSACTIONAL, A, 0, 4], "{why}");
            assert_eq!(logs.words::<1>(1), [0], "{why}");
        });
    }
}

/// an access of the transaction to what it added to sees the sum, and makes the addition an ordinary one.
#[test]
fn a_transaction_sees_what_it_added() {
    let accesses: [(Part, [u64; 2]); 8] = [
        (&|bare| bare.push(ld(S3, S0, 0)), [4, 4]),
        (&|bare| bare.push(i_type(LOAD, S3, 4, S0, 0)), [4, 4]),
        // Over two lines.
        (&|bare| bare.push(ld(S3, S0, -4)), [4 << 32, 4]),
        (&|bare| bare.push(sd(ZERO, S0, 0)), [9, 0]),
        (&|bare| bare.push(amo_add(S3, S0, S1)), [4, 13]),
        (&|bare| bare.push(lr(S3, S0)), [4, 4]),
        (&|bare| bare.push(Width::Double.encode_test(S3, S0, S4)), [1, 4]),
        (&|bare| bare.push(Width::Double.encode_compare_and_swap(S3, S0, S4, S1)), [0, 9]),
    ];
    for (index, (access, [found, left])) in accesses.into_iter().enumerate() {
        for restarts in [false, true] {
            let body = |bare: &mut Bare| {
                bare.load(S0, A);
                bare.load(S1, 9);
                bare.load(S3, 9);
                bare.load(S4, 4);
                let first = |bare: &mut Bare| {
                    add_three(bare, A);
                    bare.read_csr(S5, CSR_SIZE);
                    access(bare);
                    bare.read_csr(S6, CSR_SIZE);
                    bare.outside(|bare| {
                        for (index, register) in [S3, S5, S6].into_iter().enumerate() {
                            bare.note(0, index as u64, register);
                        }
                    });
                    if restarts {
                        bare.restart(0);
                    }
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log_word(A);
            };
            deferring(&[&body], |granularity, logs| {
                let why = format!("{granularity:?} {:?}: access {index}, {restarts}", logs.gear);
                let [value, before, after] = logs.notes(0);
                assert_eq!((value, before), (found, 0), "{why}");
                assert!(after > 0, "{why}");
                assert_eq!(logs.words::<1>(0), [if restarts { 1 } else { left }], "{why}");
            });
        }
    }
}

/// additions that find the buffer full, the granule in a set, or another width there, are ordinary ones; all add up.
#[test]
fn other_additions_are_ordinary() {
    let body = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, u64::MAX);
        bare.begin(S2);
        // The word and the double word at one place: four bytes do not carry into the next four.
        bare.push(amo_add_word(ZERO, S0, S1));
        bare.push(amo_add_word(ZERO, S0, S1));
        bare.read_csr(S3, CSR_SIZE);
        bare.push(amo_add(ZERO, S0, S1));
        bare.read_csr(S4, CSR_SIZE);
        for line in [B, C, DATA + 0xc0] {
            add_three(bare, line);
            add_three(bare, line);
        }
        bare.read_csr(S5, CSR_SIZE);
        bare.end();
        for register in [S3, S4, S5] {
            bare.log(register);
        }
        for address in [A, B, C, DATA + 0xc0] {
            bare.log_word(address);
        }
    };
    deferring(&[&body], |granularity, logs| {
        let granules_of_eight = if granularity == Granularity::Word32 { 2 } else { 1 };
        let sizes = [0, granules_of_eight, 2 * granules_of_eight];
        let sum = 0xffff_ffff - 1;
        assert_eq!(logs.words::<3>(0), sizes, "{granularity:?} {:?}", logs.gear);
        assert_eq!(logs.words::<7>(0)[3..], [sum, 6, 6, 6], "{granularity:?} {:?}", logs.gear);
    });
}

/// a suspended transaction keeps its additions, handlers do not see them, and rollbacks and xdrop forget them.
#[test]
fn additions_live_and_die_with_their_transaction() {
    let body = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            add_three(bare, A);
            bare.restart(0);
        };
        bare.attempt(S2, first, |bare| {
            add_three(bare, A);
            bare.outside(|bare| {
                bare.load_word(S3, A);
                // Outside it is an access as any other.
                add_three(bare, A);
                bare.load_word(S4, A);
                bare.begin(ZERO);
                add_three(bare, A);
                bare.end();
                bare.load_word(S5, A);
                for (index, register) in [S3, S4, S5].into_iter().enumerate() {
                    bare.note(0, index as u64, register);
                }
            });
        });
        bare.end();
        bare.log(S2);
        bare.log_word(A);
        bare.begin(ZERO);
        add_three(bare, A);
        bare.suspend();
        bare.push(XDROP);
        bare.log_word(A);
        // In an inner transaction, for the outer one.
        bare.begin(ZERO);
        bare.begin(ZERO);
        add_three(bare, A);
        bare.end();
        bare.outside(|bare| bare.log_word(A));
        bare.end();
        bare.log_word(A);
    };
    deferring(&[&body], |granularity, logs| {
        let why = format!("{granularity:?} {:?}", logs.gear);
        assert_eq!(logs.notes(0), [1, 4, 7], "{why}");
        assert_eq!(logs.words::<5>(0), [EXPLICIT, 10, 10, 10, 13], "{why}");
    });
}

/// an addition that may not store raises its exception when it executes, and is not made.
#[test]
fn an_addition_faults_at_once() {
    let build = |bare: &mut Bare| {
        bare.board.transactions.deferred_adds = 2;
        bare.map(0, READ);
        bare.set_word(DATA, 1);
        bare.translate();
        bare.load(S0, WINDOW);
        bare.load(S1, 3);
        bare.begin(ZERO);
        bare.trap(|bare| bare.push(amo_add(ZERO, S0, S1)));
        bare.resume();
        bare.end();
        bare.log_word(DATA);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.traps(1), [(15, WINDOW)], "{:?}", logs.gear);
        assert_eq!(logs.words::<6>(0)[5], 1, "{:?}", logs.gear);
    });
}

//! Atomics, the order of memory, and floating point in transactions: sections 3.2 and 11 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;

/// which set an atomic, and an access of two words, joins. Another hart's `xcas` is refused where the
/// word is in a set; its plain load makes a writer lose, and a reader not.
#[test]
fn atomics_join_sets_by_what_they_do() {
    // What the transaction does with the word at s0, the size it has then, and whether it is a writer of the words asked for.
    let accesses: [(Part, u64, bool); 7] = [
        (&|bare| bare.push(lr(S3, S0)), 1, false),
        (
            &|bare| {
                let again = bare.code.here();
                bare.push(lr(S3, S0));
                bare.push(sc(S4, S0, S3));
                bare.code.branch(1, S4, ZERO, again);
            },
            1,
            true,
        ),
        (&|bare| bare.push(amo_add(S3, S0, ZERO)), 1, true),
        // AMOMAX.W of the upper half, which changes nothing.
        (
            &|bare| {
                bare.push(addi(S5, S0, 4));
                bare.push(r_type(AMO, S3, 2, S5, ZERO, 0x14 << 2));
            },
            1,
            true,
        ),
        (&|bare| bare.push(ld(S3, S0, 4)), 2, false),
        (&|bare| bare.push(ld(S3, S0, -1)), 2, false),
        (&|bare| bare.push(sd(ZERO, S0, 1)), 2, true),
    ];
    for (index, (access, size, writes)) in accesses.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            bare.load(S0, B);
            let first = |bare: &mut Bare| {
                access(bare);
                bare.read_csr(S5, CSR_SIZE);
                bare.outside(|bare| {
                    bare.note(0, 0, S5);
                    bare.store(FLAG, 1);
                });
                bare.poll(ANSWER, 1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.swap(S3, B, 0, 0);
            bare.log(S3);
            bare.load_word(S3, B);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = Manager::Timestamp;
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            assert_eq!(logs.note(0, 0), size, "{:?}: access {index}", logs.gear);
            assert_eq!(logs.words::<1>(1), [REFUSED], "{:?}: access {index}", logs.gear);
            let expected = if writes { NONTRANSACTIONAL } else { 0 };
            assert_eq!(logs.words::<1>(0), [expected], "{:?}: access {index}", logs.gear);
        });
    }
}

/// an SC that fails adds nothing and conflicts with nothing.
#[test]
fn a_failed_store_conditional_is_no_access() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.load_word(S3, A);
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, C);
        bare.wait_for(FLAG, 1);
        // Without a reservation, and with one of another line.
        bare.push(sc(S3, S0, S0));
        bare.push(lr(T0, S1));
        bare.push(sc(T1, S0, S0));
        bare.push(r_type(OP, S3, 7, S3, T1, 0));
        bare.begin(S2);
        bare.push(sc(S4, S0, S0));
        bare.push(lr(T0, S1));
        bare.push(sc(T1, S0, S0));
        bare.push(r_type(OP, S4, 7, S4, T1, 0));
        bare.read_csr(S5, CSR_SIZE);
        bare.end();
        for register in [S2, S3, S4, S5] {
            bare.log(register);
        }
        bare.store(ANSWER, 1);
    };
    under_every_manager(2, on_harts(&[&first, &second]), |manager, logs| {
        assert_eq!(logs.words::<1>(0), [0], "{} {:?}", manager.name(), logs.gear);
        // The LR's word is the only one in the sets.
        assert_eq!(logs.words::<4>(1), [0, 1, 1, 1], "{} {:?}", manager.name(), logs.gear);
    });
}

/// a restart drops the reservation, one made before the transaction as one made inside.
#[test]
fn a_restart_drops_the_reservation() {
    for inside in [false, true] {
        let build = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 9);
            if !inside {
                bare.push(lr(S3, S0));
            }
            let first = |bare: &mut Bare| {
                if inside {
                    bare.push(lr(S3, S0));
                }
                bare.restart(0);
            };
            bare.attempt(S2, first, |_| ());
            bare.push(sc(S4, S0, S1));
            bare.end();
            bare.log(S4);
            bare.log_word(A);
            bare.finish();
        };
        everywhere(1, build, |logs| assert_eq!(logs.words::<2>(0), [1, 0], "{:?} {inside}", logs.gear));
    }
}

/// what another hart's transaction stores breaks a reservation, also when it is rolled back.
#[test]
fn a_transactional_store_breaks_a_reservation() {
    let first = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, 9);
        bare.push(lr(S3, S0));
        bare.meet_plainly(1);
        bare.push(sc(S4, S0, S1));
        bare.log(S4);
        bare.log_word(A);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.store(ANSWER, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        assert_eq!(logs.words::<2>(0), [1, 0], "{:?}", logs.gear);
    });
}

/// LR, SC and AMOs work inside a transaction on what it wrote, and are rolled back with it.
#[test]
fn atomics_work_inside() {
    let build = |bare: &mut Bare| {
        bare.set_word(A, 10);
        bare.load(S0, A);
        bare.load(S1, 5);
        for commits in [false, true] {
            let first = |bare: &mut Bare| {
                bare.store(A, 20);
                bare.push(amo_add(S3, S0, S1));
                let again = bare.code.here();
                bare.push(lr(S4, S0));
                bare.push(addi(S4, S4, 1));
                bare.push(sc(S5, S0, S4));
                bare.code.branch(1, S5, ZERO, again);
                bare.push(ld(S6, S0, 0));
                if !commits {
                    bare.outside(|bare| bare.note(0, 0, S6));
                    bare.restart(0);
                }
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log_word(A);
        }
        bare.log(S3);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.note(0, 0), 26, "{:?}", logs.gear);
        assert_eq!(logs.words::<3>(0), [10, 26, 20], "{:?}", logs.gear);
    });
}

/// of two harts that store, commit an empty transaction (or suspend and resume one), and load what the other stored, one
/// sees the other's.
#[test]
fn begin_and_commit_order_memory() {
    const ROUNDS: u64 = 100;
    for suspends in [false, true] {
        let side = |own: u64, other: u64, hart: u64| {
            move |bare: &mut Bare| {
                bare.load(S0, own);
                bare.load(S1, other);
                bare.load(S3, 1);
                bare.load(S8, ROUNDS + 1);
                bare.load(S9, 0);
                let again = bare.code.here();
                // Both harts arrive before either goes on: two counters, of which each waits for the other's.
                bare.push(sd(S3, S0, 128));
                let wait = bare.code.here();
                bare.push(ld(T0, S1, 128));
                bare.code.branch(6, T0, S3, wait);
                bare.push(sd(S3, S0, 0));
                bare.begin(ZERO);
                if suspends {
                    bare.suspend();
                    bare.resume();
                }
                bare.end();
                bare.push(ld(S4, S1, 0));
                // Less than this round: the other's store was not seen.
                bare.push(r_type(OP, S4, 3, S4, S3, 0));
                bare.push(i_type(OP_IMM, T1, 1, S3, 3));
                bare.load(T0, DATA + 0x5000 + 0x1000 * hart);
                bare.push(add(T0, T0, T1));
                bare.push(sd(S4, T0, 0));
                bare.push(addi(S3, S3, 1));
                bare.code.branch(1, S3, S8, again);
                bare.store(if hart == 0 { FLAG } else { ANSWER }, 1);
            }
        };
        let first = |bare: &mut Bare| {
            side(A, B, 0)(bare);
            bare.wait_for(ANSWER, 1);
            // Rounds in which neither saw the other.
            bare.load(S3, DATA + 0x5008);
            bare.load(S4, ROUNDS);
            bare.load(S6, 0);
            let again = bare.code.here();
            bare.push(ld(T0, S3, 0));
            bare.load(T1, 0x1000);
            bare.push(add(T1, T1, S3));
            bare.push(ld(T1, T1, 0));
            bare.push(r_type(OP, T0, 7, T0, T1, 0));
            bare.push(add(S6, S6, T0));
            bare.push(addi(S3, S3, 8));
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
            bare.log(S6);
        };
        everywhere(2, on_harts(&[&first, &side(B, A, 1)]), |logs| {
            assert_eq!(logs.words::<1>(0), [0], "{:?}", logs.gear);
        });
    }
}

/// floating point inside: registers, flags, rounding mode and the state field go back.
#[test]
fn floating_point_goes_back() {
    let build = |bare: &mut Bare| {
        bare.set_word(A, 1.5_f64.to_bits());
        bare.load(S0, A);
        // FLD f1; FSFLAGS 0; the state is clean.
        bare.push(i_type(LOAD_FP, 1, 3, S0, 0));
        bare.set_csr(CSR_FCSR, 0x20);
        bare.clear_bits(CSR_SSTATUS, 3 << 13);
        bare.set_bits(CSR_SSTATUS, 2 << 13);
        let first = |bare: &mut Bare| {
            // FADD.D f1 = f1 + f1, stored; FDIV.D by 3 raises the inexact flag; FRM is written.
            bare.push(r_type(OP_FP, 1, 7, 1, 1, 0x01));
            bare.push(s_type(STORE_FP, 3, S0, 1, 0));
            bare.push(s_type(STORE_FP, 2, S0, 1, 8));
            bare.push(i_type(LOAD_FP, 2, 3, S0, 0));
            bare.load(T0, 0x3fd5_5555_5555_5555);
            bare.push(r_type(OP_FP, 3, 0, T0, 0, 0x79));
            bare.push(r_type(OP_FP, 4, 7, 2, 3, 0x0d));
            bare.push(csr(CSRRW, ZERO, CSR_FRM, S0));
            bare.push(csr(CSRRS, S3, CSR_FFLAGS, ZERO));
            bare.outside(|bare| bare.note(0, 0, S3));
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.read_csr(S4, CSR_SSTATUS);
        bare.read_csr(S5, CSR_FCSR);
        // FMV.X.D
        bare.push(r_type(OP_FP, S6, 0, 1, 0, 0x71));
        bare.end();
        bare.load(T0, 3 << 13);
        bare.push(r_type(OP, S4, 7, S4, T0, 0));
        for register in [S4, S5, S6] {
            bare.log(register);
        }
        bare.log_word(A);
        bare.log_word(A + 8);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.note(0, 0) & 1, 1, "{:?}: inexact", logs.gear);
        let value = 1.5_f64.to_bits();
        assert_eq!(logs.words::<5>(0), [2 << 13, 0x20, value, value, 0], "{:?}", logs.gear);
    });
}

//! Transactions that outgrow the caches, and the best-effort mode: section 14 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::{Granularity, Mode};
use concord_machine::Gear;

/// Memory that nothing else uses.
const LARGE: u64 = 0x8040_0000;
const LINE_BYTES: u64 = 64;

/// Caches of 16 and 128 lines.
fn small_caches(bare: &mut Bare) {
    let cache = &mut bare.board.cache;
    (cache.data.size_bytes, cache.data.ways) = (1 << 10, 2);
    (cache.instruction.size_bytes, cache.instruction.ways) = (4 << 10, 2);
    (cache.second.size_bytes, cache.second.ways) = (8 << 10, 2);
}

/// Reads (or writes its number to) the first word of each of `lines` lines.
fn touch(bare: &mut Bare, lines: u64, writes: bool) {
    bare.load(S0, LARGE);
    bare.load(S3, lines);
    bare.load(S4, LINE_BYTES);
    let again = bare.code.here();
    bare.push(if writes { sd(S3, S0, 0) } else { ld(T0, S0, 0) });
    bare.push(add(S0, S0, S4));
    bare.push(addi(S3, S3, -1));
    bare.code.branch(1, S3, ZERO, again);
}

/// The sum of those words, in `rd`.
fn sum(bare: &mut Bare, rd: u32, lines: u64) {
    bare.load(S0, LARGE);
    bare.load(S3, lines);
    bare.load(S4, LINE_BYTES);
    bare.load(rd, 0);
    let again = bare.code.here();
    bare.push(ld(T0, S0, 0));
    bare.push(add(rd, rd, T0));
    bare.push(add(S0, S0, S4));
    bare.push(addi(S3, S3, -1));
    bare.code.branch(1, S3, ZERO, again);
}

/// a transaction larger than the caches commits, the first time, or is rolled back whole.
#[test]
fn a_transaction_may_be_larger_than_the_caches() {
    // The last is larger than the board's 4 MiB.
    for (lines, small) in [(15, true), (100, true), (1000, true), (67_000, false)] {
        for commits in [true, false] {
            let build = |bare: &mut Bare| {
                if small {
                    small_caches(bare);
                }
                let first = |bare: &mut Bare| {
                    touch(bare, lines, true);
                    if !commits {
                        bare.restart(0);
                    }
                };
                bare.attempt(S2, first, |_| ());
                bare.read_csr(S5, CSR_STATUS);
                bare.read_csr(S6, CSR_SIZE);
                bare.end();
                sum(bare, S7, lines);
                for register in [S2, S5, S6, S7] {
                    bare.log(register);
                }
                bare.log_csr(CSR_RESTARTS);
                bare.finish();
            };
            everywhere(1, build, |logs| {
                let why = format!("{:?}: {lines} lines, {commits}", logs.gear);
                let [status, state, size, sum, restarts] = logs.words(0);
                if commits {
                    assert_eq!((status, size, sum, restarts), (0, lines, lines * (lines + 1) / 2, 0), "{why}");
                    let overflowed = logs.gear == Gear::Timed && lines > 15;
                    assert_eq!(state & XSTATUS_OVERFLOWED != 0, overflowed, "{why}");
                } else {
                    assert_eq!((status, size, sum, restarts), (EXPLICIT, 0, 0, 1), "{why}");
                    assert_eq!(state & XSTATUS_OVERFLOWED, 0, "{why}");
                }
            });
        }
    }
}

/// lines that left every cache still conflict: a write set with a load, a read set with a store.
#[test]
fn evicted_lines_still_conflict() {
    for writes in [false, true] {
        for word in [0, 1, 500, 999] {
            let first = |bare: &mut Bare| {
                let first = |bare: &mut Bare| {
                    touch(bare, 1000, writes);
                    bare.tell_and_spin(1);
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log_csr(CSR_CONFLICT);
                bare.wait_for(ANSWER, 1);
            };
            let second = |bare: &mut Bare| {
                bare.wait_for(FLAG, 1);
                if writes {
                    bare.load_word(S3, LARGE + LINE_BYTES * word);
                } else {
                    bare.store(LARGE + LINE_BYTES * word, 0);
                }
                bare.log(S3);
                bare.store(ANSWER, 1);
            };
            let build = |bare: &mut Bare| {
                small_caches(bare);
                on_harts(&[&first, &second])(bare);
            };
            everywhere(2, build, |logs| {
                let why = format!("{:?}: word {word}, {writes}", logs.gear);
                assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, LARGE + LINE_BYTES * word], "{why}");
                assert_eq!(logs.words::<1>(1), [0], "{why}");
            });
        }
    }
}

/// and they are as good in the manager's eyes: the older one is not asked to give way.
#[test]
fn evicted_lines_win_as_others_do() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            touch(bare, 1000, true);
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.swap(S3, LARGE, 0, 1);
        bare.log(S3);
        let again = |bare: &mut Bare| bare.outside(|bare| bare.store(ANSWER, 1));
        bare.attempt(S2, |bare| bare.load_word(S3, LARGE), again);
        bare.end();
        bare.log(S2);
    };
    let build = |bare: &mut Bare| {
        small_caches(bare);
        bare.board.transactions.manager = Manager::Timestamp;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        assert_eq!(logs.words::<1>(0), [0], "{:?}", logs.gear);
        assert_eq!(logs.words::<2>(1), [REFUSED, CONFLICT], "{:?}", logs.gear);
    });
}

/// in best-effort mode the replacement of a line of either set restarts, in the gear that has
/// caches; by a handler's accesses it restarts when the frame is popped.
#[test]
fn best_effort_is_bounded_by_the_first_level_cache() {
    for granularity in Granularity::ALL {
        for (writes, suspended) in [(false, false), (true, false), (true, true)] {
            let build = |bare: &mut Bare| {
                small_caches(bare);
                bare.board.transactions.mode = Mode::BestEffort;
                bare.board.transactions.granularity = granularity;
                bare.set_word(A, 1);
                let first = |bare: &mut Bare| {
                    bare.store(A, 5);
                    if suspended {
                        bare.outside(|bare| {
                            touch(bare, 100, false);
                            bare.note_csr(0, 0, CSR_STATUS);
                            bare.load_word(S3, A);
                            bare.note(0, 1, S3);
                        });
                    } else {
                        touch(bare, 100, writes);
                    }
                };
                bare.attempt(S2, first, |_| ());
                bare.load_word(S5, A);
                bare.end();
                bare.log(S2);
                bare.log(S5);
                bare.log_csr(CSR_BACKOFF);
                bare.finish();
            };
            everywhere(1, build, |logs| {
                let why = format!("{:?} {granularity:?}: {writes} {suspended}", logs.gear);
                let words: [u64; 3] = logs.words(0);
                if logs.gear == Gear::Timed {
                    assert_eq!(words, [CAPACITY, 1, 0], "{why}");
                    if suspended {
                        assert_eq!((logs.note(0, 0) & XSTATUS_DOOMED, logs.note(0, 1)), (XSTATUS_DOOMED, 1), "{why}");
                    }
                } else if suspended {
                    // The handler's own load of A is what it lost to.
                    assert_eq!(words, [NONTRANSACTIONAL, 1, words[2]], "{why}");
                } else {
                    assert_eq!(words, [0, 5, 0], "{why}");
                }
            });
        }
    }
}

/// what fits commits, and so does what another hart's cache replaces.
#[test]
fn best_effort_is_enough_for_what_fits() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            touch(bare, 8, true);
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.load(S0, LARGE + (1 << 20));
        bare.load(S3, 400);
        let again = bare.code.here();
        bare.push(sd(S3, S0, 0));
        bare.push(addi(S0, S0, 64));
        bare.push(addi(S3, S3, -1));
        bare.code.branch(1, S3, ZERO, again);
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.mode = Mode::BestEffort;
        bare.board.cache.second.size_bytes = 16 << 10;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| assert_eq!(logs.words::<1>(0), [0], "{:?}", logs.gear));
}

/// in best-effort mode a trap makes the transaction lose at once, with its own cause, whatever comes
/// later; `xpush` does not.
#[test]
fn best_effort_does_not_outlive_a_trap() {
    for interrupt in [false, true] {
        let build = |bare: &mut Bare| {
            bare.board.transactions.mode = Mode::BestEffort;
            bare.set_bits(CSR_SIP, SOFTWARE);
            bare.set_csr(CSR_SIE, SOFTWARE);
            bare.set_word(A, 1);
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.outside(|bare| bare.note_csr(0, 0, CSR_STATUS));
                bare.trap(|bare| if interrupt { bare.set_bits(CSR_SSTATUS, SIE) } else { bare.push(EBREAK) });
                bare.note_csr(0, 1, CSR_STATUS);
                bare.note_csr(0, 2, CSR_SIZE);
                bare.note_csr(0, 3, CSR_TRAP);
                bare.load_word(S3, A);
                bare.note(0, 4, S3);
                bare.store(A, 6);
                bare.return_here();
                bare.spin();
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_word(A);
            bare.log_csr(CSR_BACKOFF);
            bare.log_csr(CSR_RESTARTS);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let notes: [u64; 5] = logs.notes(0);
            let depth = 1 << XSTATUS_DEPTH_SHIFT;
            assert_eq!(notes[0], XSTATUS_SUSPENDED | depth, "{:?}", logs.gear);
            let lost = XSTATUS_SUSPENDED | XSTATUS_DOOMED | depth | INTERRUPTED << XSTATUS_STATUS_SHIFT;
            assert_eq!(notes[1..], [lost, 0, XTRAP_PREVIOUS, 1], "{:?}", logs.gear);
            assert_eq!(logs.words::<4>(0), [INTERRUPTED, 6, 0, 1], "{:?} {interrupt}", logs.gear);
        });
    }
}

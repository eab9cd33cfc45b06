//! xpush, xpop, and the fate of suspended transactions: sections 6, 7.5, 7.6 and 9.1 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;

/// Enough of the registers to see that an instruction changes none.
const WATCHED: [u32; 8] = [1, 2, S3, S4, S5, A0, A1, 27];

fn set_watched(bare: &mut Bare) {
    for register in WATCHED {
        bare.load(register, 0x5555_0000 + u64::from(register));
    }
}

/// [X-44]: a suspended transaction keeps its depth, its sets and its undo log; what the hart does
/// meanwhile is no part of it, and neither instruction changes a register.
#[test]
fn a_suspended_transaction_is_left_as_it_is() {
    let build = |bare: &mut Bare| {
        set_watched(bare);
        let first = |bare: &mut Bare| {
            bare.store(A, 1);
            bare.begin(ZERO);
            bare.load_word(T2, B);
            bare.suspend();
            bare.transaction_id(T0);
            bare.note(0, 0, T0);
            for (index, number) in [CSR_STATUS, CSR_SIZE, CSR_FRAMES].into_iter().enumerate() {
                bare.note_csr(0, 1 + index as u64, number);
            }
            for (index, register) in WATCHED.into_iter().enumerate() {
                bare.note(0, 4 + index as u64, register);
            }
            // Outside: neither is in the sets.
            bare.store(C, 3);
            bare.load_word(T2, C + 8);
            bare.resume();
            for (index, register) in WATCHED.into_iter().enumerate() {
                bare.outside(|bare| bare.note(0, 12 + index as u64, register));
            }
            bare.read_csr(S6, CSR_STATUS);
            bare.read_csr(S7, CSR_SIZE);
            bare.outside(|bare| {
                bare.note(0, 20, S6);
                bare.note(0, 21, S7);
            });
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log_word(A);
        bare.log_word(C);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let notes: [u64; 22] = logs.notes(0);
        assert_eq!(notes[..4], [0, XSTATUS_SUSPENDED | 2 << XSTATUS_DEPTH_SHIFT, 2, 1], "{:?}", logs.gear);
        for (index, register) in WATCHED.into_iter().enumerate() {
            let value = 0x5555_0000 + u64::from(register);
            assert_eq!([notes[4 + index], notes[12 + index]], [value; 2], "{:?}: x{register}", logs.gear);
        }
        assert_eq!(notes[20..], [XSTATUS_ACTIVE | 2 << XSTATUS_DEPTH_SHIFT, 2], "{:?}", logs.gear);
        assert_eq!(logs.words::<2>(0), [0, 3], "{:?}: the store outside stays", logs.gear);
    });
}

/// empty frames are pushed and popped, and 64 are a context full.
#[test]
fn a_context_holds_64_frames() {
    let begin = Control::Begin.encode(S3, 0);
    let build = |bare: &mut Bare| {
        bare.load(S4, 64);
        let again = bare.code.here();
        bare.suspend();
        bare.push(addi(S4, S4, -1));
        bare.code.branch(1, S4, ZERO, again);
        bare.trap(|bare| bare.suspend());
        bare.trap(|bare| bare.push(begin));
        bare.log_csr(CSR_FRAMES);
        // With 63 there is room for a transaction, and for what suspends it.
        bare.resume();
        bare.log_csr(CSR_FRAMES);
        bare.begin(ZERO);
        bare.store(A, 7);
        bare.trap(|bare| bare.push(EBREAK));
        bare.log_csr(CSR_FRAMES);
        bare.log_csr(CSR_TRAP);
        bare.resume();
        bare.end();
        bare.load(S4, 63);
        let again = bare.code.here();
        bare.resume();
        bare.transaction_id(T0);
        bare.push(add(S5, S5, T0));
        bare.push(addi(S4, S4, -1));
        bare.code.branch(1, S4, ZERO, again);
        bare.log(S5);
        bare.log_csr(CSR_FRAMES);
        bare.trap(|bare| bare.resume());
        bare.log_word(A);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.traps(2), [illegal(XPUSH), illegal(begin)], "{:?}", logs.gear);
        let words: [u64; 27] = logs.words(0);
        assert_eq!(words[10..12], [64, 63], "{:?}", logs.gear);
        assert_eq!(words[12], 3, "{:?}: the breakpoint", logs.gear);
        assert_eq!(words[17..21], [64, 1, 0, 0], "{:?}", logs.gear);
        assert_eq!((words[21], words[22]), illegal(XPOP), "{:?}", logs.gear);
        assert_eq!(words[26], 7, "{:?}", logs.gear);
    });
}

/// transactions suspended one within another are resumed in the opposite order, and each is its own.
#[test]
fn transactions_are_suspended_one_within_another() {
    let words = [A, B, C];
    let build = |bare: &mut Bare| {
        bare.begin(ZERO);
        bare.transaction_id(S3);
        bare.store(A, 1);
        bare.suspend();
        let first = |bare: &mut Bare| {
            bare.store(B, 2);
            bare.suspend();
            bare.begin(ZERO);
            bare.transaction_id(S5);
            bare.store(C, 3);
            bare.end();
            bare.log_csr(CSR_FRAMES);
            bare.resume();
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.transaction_id(S4);
        bare.read_csr(S7, CSR_FRAMES);
        bare.store(B, 4);
        bare.end();
        bare.resume();
        bare.transaction_id(S6);
        bare.push(addi(LOG_POINTER, LOG_POINTER, 8));
        bare.end();
        bare.push(r_type(OP, S6, 0, S6, S3, 0x20));
        for register in [S2, S7, S6] {
            bare.log(register);
        }
        for word in words {
            bare.log_word(word);
        }
        bare.log_csr(CSR_FRAMES);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.words::<8>(0), [2, EXPLICIT, 1, 0, 1, 4, 3, 0], "{:?}", logs.gear);
    });
}

/// [X-23], [X-78]: a suspended transaction that loses changes nothing of what the hart does until
/// its frame is popped, and restarts then.
#[test]
fn a_suspended_loser_restarts_when_it_is_popped() {
    let first = |bare: &mut Bare| {
        bare.load(S4, 1);
        let first = |bare: &mut Bare| {
            bare.load(S4, 2);
            bare.store(A, 5);
            bare.load_word(T2, B);
            bare.begin(ZERO);
            bare.suspend();
            bare.store(FLAG, 1);
            bare.wait_for(ANSWER, 1);
            for (index, number) in [CSR_STATUS, CSR_SIZE, CSR_FRAMES, CSR_RESTARTS].into_iter().enumerate() {
                bare.note_csr(0, index as u64, number);
            }
            bare.note(0, 4, S4);
            bare.load_word(T2, A);
            bare.note(0, 5, T2);
            bare.resume();
            // Not executed.
            bare.suspend();
            bare.load(T2, 1);
            bare.note(0, 6, T2);
            bare.resume();
            bare.spin();
        };
        bare.attempt(S2, first, |_| ());
        bare.read_csr(S5, CSR_STATUS);
        bare.read_csr(S6, CSR_FRAMES);
        bare.end();
        for register in [S2, S4, S5, S6] {
            bare.log(register);
        }
        bare.log_csr(CSR_RESTARTS);
        bare.log_csr(CSR_CONFLICT);
        bare.log_csr(CSR_WINNER);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.store(B, 9);
        // The loser's sets are empty, so nobody loses to this.
        bare.store(A, 6);
        bare.store(ANSWER, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        let notes: [u64; 7] = logs.notes(0);
        let lost = XSTATUS_SUSPENDED | XSTATUS_DOOMED | 1 << XSTATUS_DEPTH_SHIFT;
        assert_eq!(notes[0], lost | NONTRANSACTIONAL << XSTATUS_STATUS_SHIFT, "{:?}", logs.gear);
        assert_eq!(notes[1..], [0, 1, 0, 2, 6, 0], "{:?}", logs.gear);
        let state = XSTATUS_ACTIVE | 1 << XSTATUS_DEPTH_SHIFT | NONTRANSACTIONAL << XSTATUS_STATUS_SHIFT;
        assert_eq!(logs.words::<7>(0), [NONTRANSACTIONAL, 1, state, 0, 1, B, 0], "{:?}", logs.gear);
    });
}

/// the status word tells the first thing that made a suspended transaction lose.
#[test]
fn the_first_loss_counts() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.load_word(T2, B);
            bare.suspend();
            // A transaction of this hart takes A, then another hart's store takes B: the second has nobody to meet.
            bare.begin(ZERO);
            bare.store(A, 6);
            bare.end();
            bare.store(FLAG, 1);
            bare.wait_for(ANSWER, 1);
            bare.resume();
            bare.spin();
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log_csr(CSR_CONFLICT);
        bare.log_word(A);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.store(B, 9);
        bare.store(ANSWER, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        assert_eq!(logs.words::<3>(0), [CONFLICT, A, 6], "{:?}", logs.gear);
    });
}

/// under every manager, and whatever the priorities, a hart wins against what is suspended in its
/// own context: with its transactions, with `xcas`, and with plain accesses as with those of anybody.
#[test]
fn a_hart_wins_against_its_own_suspended_transaction() {
    let read = |bare: &mut Bare| bare.load_word(S3, A);
    let write = |bare: &mut Bare| {
        bare.load_word(S3, A);
        bare.store(A, 6);
    };
    let test = |bare: &mut Bare| bare.test(S3, A, 1);
    let add = |bare: &mut Bare| {
        bare.load(T0, A);
        bare.push(amo_add(S3, T0, ZERO));
    };
    let swap = |bare: &mut Bare| bare.swap(S3, A, 1, 7);
    // An access, what it finds (for xtest and xcas, what they answer), what is in memory at the end.
    let accesses: [(Part, u64, u64); 5] =
        [(&read, 1, 1), (&write, 1, 6), (&test, 1, 1), (&add, 1, 1), (&swap, SWAPPED, 7)];
    for (index, (access, found, end)) in accesses.into_iter().enumerate() {
        for in_transaction in [false, true] {
            let build = |bare: &mut Bare| {
                bare.set_word(A, 1);
                bare.set_csr(CSR_PRIORITY, 9);
                let first = |bare: &mut Bare| {
                    bare.store(A, 5);
                    bare.store(B, 5);
                    bare.store(C, 5);
                    bare.suspend();
                    bare.set_csr(CSR_PRIORITY, 2);
                    if in_transaction {
                        bare.begin(S4);
                        access(bare);
                        bare.transaction_id(S5);
                        bare.end();
                        bare.note(0, 1, S5);
                    } else {
                        access(bare);
                    }
                    bare.note(0, 0, S3);
                    bare.resume();
                    bare.spin();
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                for word in [A, B, C] {
                    bare.log_word(word);
                }
                bare.log_csr(CSR_CONFLICT);
                bare.log_csr(CSR_WINNER);
                bare.finish();
            };
            under_every_manager(1, build, |manager, logs| {
                let why = format!("{}: {:?}, access {index}, {in_transaction}", manager.name(), logs.gear);
                let [answer, winner] = logs.notes(0);
                assert_eq!(answer, found, "{why}");
                let cause = if in_transaction { CONFLICT } else { NONTRANSACTIONAL };
                assert_eq!(logs.words::<6>(0), [cause, end, 0, 0, A, winner], "{why}");
            });
        }
    }
}

/// against other harts, a suspended transaction conflicts as an active one does. Under `timestamp` it is the
/// older one, and wins against another hart's transaction.
#[test]
fn a_suspended_transaction_wins_as_an_active_one_does() {
    let first = |bare: &mut Bare| {
        bare.attempt(
            S2,
            |bare| {
                bare.store(A, 5);
                bare.meet(1);
            },
            |_| (),
        );
        bare.end();
        bare.log(S2);
        bare.log_word(A);
        bare.wait_for(C, 1);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.attempt(S2, |bare| bare.load_word(S3, A), |bare| bare.outside(|bare| bare.store(ANSWER, 1)));
        bare.end();
        bare.log(S2);
        bare.store(C, 1);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.manager = concord_htm::manager::Manager::Timestamp;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        assert_eq!(logs.words::<2>(0), [0, 5], "{:?}", logs.gear);
        assert_eq!(logs.words::<1>(1), [CONFLICT], "{:?}", logs.gear);
    });
}

/// above a suspended transaction that has not lost, a requester wins against whatever is suspended on other harts, so that
/// no two handlers wait for what each other interrupted; not against what is active, and not above an empty frame or a loser.
#[test]
fn handlers_do_not_wait_for_what_handlers_interrupted() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Below {
        Nothing,
        EmptyFrame,
        Loser,
        Transaction,
    }
    for below in [Below::Nothing, Below::EmptyFrame, Below::Loser, Below::Transaction] {
        for holder_is_suspended in [false, true] {
            let first = |bare: &mut Bare| {
                let first = |bare: &mut Bare| {
                    bare.store(A, 5);
                    if holder_is_suspended {
                        bare.meet(1);
                    } else {
                        bare.outside(|bare| bare.store(FLAG, 1));
                        bare.poll(ANSWER, 1);
                    }
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.wait_for(C, 1);
            };
            let second = |bare: &mut Bare| {
                bare.wait_for(FLAG, 1);
                if below == Below::Transaction || below == Below::Loser {
                    bare.begin(ZERO);
                    bare.store(B, 5);
                }
                if below != Below::Nothing {
                    bare.suspend();
                }
                if below == Below::Loser {
                    bare.store(B, 6);
                }
                let again = |bare: &mut Bare| bare.outside(|bare| bare.store(ANSWER, 1));
                bare.attempt(S2, |bare| bare.load_word(S3, A), again);
                bare.end();
                bare.store(ANSWER, 1);
                bare.log(S2);
                if below != Below::Nothing {
                    bare.push(XDROP);
                }
                bare.store(C, 1);
            };
            let build = |bare: &mut Bare| {
                bare.board.transactions.manager = concord_htm::manager::Manager::Timestamp;
                on_harts(&[&first, &second])(bare);
            };
            everywhere(2, build, |logs| {
                let wins = below == Below::Transaction && holder_is_suspended;
                let expected = if wins { ([CONFLICT], [0]) } else { ([0], [CONFLICT]) };
                let why = format!("{:?}: {below:?}, holder suspended {holder_is_suspended}", logs.gear);
                assert_eq!((logs.words::<1>(0), logs.words::<1>(1)), expected, "{why}");
            });
        }
    }
}

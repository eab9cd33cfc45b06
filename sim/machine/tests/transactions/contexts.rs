//! xcontext and xdrop: sections 7.7 and 8 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;

/// a context is put away with its frames, and comes back with them; to write the present id does nothing.
#[test]
fn contexts_are_put_away_and_come_back() {
    let ids = [7, u64::MAX, 1 << 40];
    let build = |bare: &mut Bare| {
        // The own context with two frames, 7 with a transaction, u64::MAX with an empty frame, 1 << 40 with none.
        bare.suspend();
        bare.suspend();
        bare.set_csr(CSR_CONTEXT, ids[0]);
        bare.begin(ZERO);
        bare.store(A, 1);
        bare.suspend();
        bare.set_csr(CSR_CONTEXT, ids[1]);
        bare.suspend();
        for id in [ids[2], ids[0], ids[0], 0, ids[1]] {
            bare.set_csr(CSR_CONTEXT, id);
            bare.log_csr(CSR_CONTEXT);
            bare.log_csr(CSR_FRAMES);
        }
        bare.set_csr(CSR_CONTEXT, ids[0]);
        bare.resume();
        bare.end();
        bare.log_csr(CSR_FRAMES);
        bare.log_word(A);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let expected = [ids[2], 0, ids[0], 1, ids[0], 1, 0, 2, ids[1], 1, 0, 1];
        assert_eq!(logs.words::<12>(0), expected, "{:?}", logs.gear);
    });
}

/// a context that is current elsewhere cannot be taken, and both harts have a context 0.
#[test]
fn a_context_is_current_on_one_hart() {
    let write = csr(CSRRW, ZERO, CSR_CONTEXT, S3);
    let first = |bare: &mut Bare| {
        bare.set_csr(CSR_CONTEXT, 9);
        bare.suspend();
        bare.meet_plainly(1);
        bare.set_csr(CSR_CONTEXT, 0);
        bare.meet_plainly(2);
    };
    let second = |bare: &mut Bare| {
        bare.suspend();
        bare.wait_for(FLAG, 1);
        bare.load(S3, 9);
        bare.trap(|bare| bare.push(write));
        bare.log_csr(CSR_CONTEXT);
        bare.log_csr(CSR_FRAMES);
        bare.store(ANSWER, 1);
        bare.wait_for(FLAG, 2);
        bare.push(write);
        bare.log_csr(CSR_CONTEXT);
        bare.set_csr(CSR_CONTEXT, 0);
        bare.log_csr(CSR_FRAMES);
        bare.store(ANSWER, 2);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        let words: [u64; 9] = logs.words(1);
        assert_eq!((words[0], words[1]), illegal(write), "{:?}", logs.gear);
        assert_eq!(words[5..], [0, 1, 9, 1], "{:?}", logs.gear);
    });
}

/// a context goes to another hart with its transaction: it commits there, or restarts there.
#[test]
fn a_context_moves_to_another_hart() {
    for loses in [false, true] {
        let first = |bare: &mut Bare| {
            bare.load(S4, 44);
            bare.set_csr(CSR_CONTEXT, 9);
            bare.begin(S2);
            // The second hart goes on from here when it restarts.
            let restarted = bare.code.label();
            bare.code.branch(1, S2, ZERO, restarted);
            bare.store(A, 5);
            bare.load(S4, 45);
            bare.suspend();
            bare.set_csr(CSR_CONTEXT, 0);
            if loses {
                bare.store(A, 6);
            }
            bare.store(FLAG, 1);
            bare.wait_for(ANSWER, 1);
            bare.log_word(A);
            bare.log_csr(CSR_RESTARTS);
            let over = bare.code.label();
            bare.code.jump(ZERO, over);
            bare.code.bind(restarted);
            // On hart 1: the log's pointer is hart 0's, and the notes are at known places.
            bare.read_csr(S5, CSR_STATUS);
            bare.end();
            bare.note(1, 0, S2);
            bare.note(1, 1, S4);
            bare.note_csr(1, 2, CSR_RESTARTS);
            bare.note_csr(1, 3, CSR_CONTEXT);
            bare.store(ANSWER, 1);
            bare.rest();
            bare.code.bind(over);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.load(S4, 46);
            bare.set_csr(CSR_CONTEXT, 9);
            bare.note_csr(1, 4, CSR_FRAMES);
            bare.resume();
            bare.end();
            bare.note(1, 1, S4);
            bare.note_csr(1, 2, CSR_RESTARTS);
            bare.note_csr(1, 3, CSR_CONTEXT);
            bare.store(ANSWER, 1);
        };
        everywhere(2, on_harts(&[&first, &second]), |logs| {
            let why = format!("{:?} loses {loses}", logs.gear);
            assert_eq!(logs.words::<2>(0), [if loses { 6 } else { 5 }, 0], "{why}");
            let expected = if loses { [NONTRANSACTIONAL, 44, 1, 9, 1] } else { [0, 46, 0, 9, 1] };
            assert_eq!(logs.notes(1), expected, "{why}");
        });
    }
}

/// in a context that is not current, a suspended transaction is as any other: under `timestamp`, its own hart's
/// younger one loses against it.
#[test]
fn a_transaction_in_another_context_is_no_longer_the_harts_own() {
    let build = |bare: &mut Bare| {
        bare.board.transactions.manager = Manager::Timestamp;
        bare.begin(ZERO);
        bare.store(A, 5);
        bare.suspend();
        bare.set_csr(CSR_CONTEXT, 3);
        bare.attempt(S2, |bare| bare.load_word(S3, A), |_| ());
        bare.end();
        bare.swap(S4, A, 0, 9);
        bare.set_csr(CSR_CONTEXT, 0);
        bare.resume();
        bare.end();
        bare.log(S2);
        bare.log(S4);
        bare.log_word(A);
        bare.finish();
    };
    everywhere(1, build, |logs| assert_eq!(logs.words::<3>(0), [CONFLICT, REFUSED, 5], "{:?}", logs.gear));
}

/// there is room for 1,024 contexts that are not current and hold frames, and they keep them.
#[test]
fn there_are_many_contexts() {
    const CONTEXTS: u64 = 1024;
    let build = |bare: &mut Bare| {
        for round in 0..2 {
            bare.load(S3, 1);
            bare.load(S4, CONTEXTS + 1);
            let again = bare.code.here();
            bare.csrw(CSR_CONTEXT, S3);
            if round == 0 {
                bare.suspend();
            } else {
                bare.resume();
            }
            bare.push(addi(S3, S3, 1));
            bare.code.branch(1, S3, S4, again);
            bare.set_csr(CSR_CONTEXT, 0);
            bare.log(S3);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| assert_eq!(logs.words::<2>(0), [CONTEXTS + 1; 2], "{:?}", logs.gear));
}

/// a dropped transaction is rolled back and at an end; an empty frame is only removed; one that lost already
/// is at an end without a restart.
#[test]
fn frames_are_dropped() {
    let build = |bare: &mut Bare| {
        bare.load(S4, 1);
        let first = |bare: &mut Bare| {
            bare.load(S4, 2);
            bare.store(A, 5);
            bare.store(B, 5);
            bare.suspend();
            bare.suspend();
            // The empty one, then the transaction.
            bare.push(XDROP);
            bare.note_csr(0, 0, CSR_FRAMES);
            bare.push(XDROP);
        };
        bare.attempt(S2, first, |bare| bare.load(S4, 3));
        bare.transaction_id(T0);
        bare.log(T0);
        bare.log_csr(CSR_FRAMES);
        bare.log(S4);
        bare.log_word(A);
        // One that lost: A is what the winner wrote.
        bare.begin(ZERO);
        bare.store(A, 7);
        bare.suspend();
        bare.store(A, 8);
        bare.log_csr(CSR_STATUS);
        bare.push(XDROP);
        bare.log_csr(CSR_FRAMES);
        bare.log_word(A);
        bare.log_word(B);
        bare.log_csr(CSR_RESTARTS);
        bare.log_csr(CSR_WINNER);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 10] = logs.words(0);
        assert_eq!(logs.note(0, 0), 1, "{:?}", logs.gear);
        assert_eq!(words[..4], [0, 0, 2, 0], "{:?}", logs.gear);
        assert_eq!(words[4] & 0xff, XSTATUS_SUSPENDED | XSTATUS_DOOMED, "{:?}", logs.gear);
        assert_eq!(words[5..], [0, 8, 0, 0, 0], "{:?}", logs.gear);
    });
}

/// the registers of the last conflict stay what they were.
#[test]
fn dropping_tells_of_no_conflict() {
    let build = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.suspend();
            bare.begin(ZERO);
            bare.store(A, 6);
            bare.end();
            bare.resume();
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        let log = |bare: &mut Bare| {
            for number in [CSR_CONFLICT, CSR_WINNER, CSR_RESTARTS] {
                bare.log_csr(number);
            }
        };
        log(bare);
        bare.begin(ZERO);
        bare.store(B, 7);
        bare.suspend();
        bare.push(XDROP);
        log(bare);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 6] = logs.words(0);
        assert_eq!((words[0], words[2]), (A, 1), "{:?}", logs.gear);
        assert_eq!(words[..3], words[3..], "{:?}", logs.gear);
    });
}

/// there must be a frame, and no active transaction.
#[test]
fn what_cannot_be_dropped_is_not() {
    let build = |bare: &mut Bare| {
        bare.trap(|bare| bare.push(XDROP));
        bare.suspend();
        bare.begin(ZERO);
        bare.trap(|bare| bare.push(XDROP));
        bare.log_csr(CSR_FRAMES);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.traps(2), [illegal(XDROP); 2], "{:?}", logs.gear);
        assert_eq!(logs.words::<11>(0)[10], 2, "{:?}", logs.gear);
    });
}

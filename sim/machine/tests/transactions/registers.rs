//! What the registers say: section 8 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::Granularity;

/// and the fields that are read-only zero: what software wrote, and hardware counted, survives a restart.
#[test]
fn counters_survive_restarts() {
    let build = |bare: &mut Bare| {
        for number in [CSR_PRIORITY, CSR_RESTARTS, CSR_BACKOFF, CSR_TRAP] {
            bare.set_csr(number, u64::MAX);
            bare.log_csr(number);
        }
        bare.set_csr(CSR_BACKOFF, 10);
        bare.set_csr(CSR_RESTARTS, 20);
        let first = |bare: &mut Bare| {
            bare.set_csr(CSR_BACKOFF, 30);
            bare.set_csr(CSR_RESTARTS, 0xfffe);
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log_csr(CSR_BACKOFF);
        bare.log_csr(CSR_RESTARTS);
        // it saturates.
        bare.attempt(S2, |bare| bare.restart(0), |_| ());
        bare.end();
        bare.log_csr(CSR_RESTARTS);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let expected = [0xff, 0xffff, u64::MAX, 1, 30, 0xffff, 0xffff];
        assert_eq!(logs.words::<7>(0), expected, "{:?}", logs.gear);
    });
}

/// `xstack` is the checkpoint's stack pointer where an S-mode transaction is suspended.
#[test]
fn xstack_is_where_a_restart_would_go_back_to() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_ENABLE, XENABLE_USER);
        bare.load(2, 0x8020_1230);
        bare.begin(ZERO);
        bare.load(2, 0x8020_1000);
        bare.read_csr(S3, CSR_STACK);
        bare.outside(|bare| {
            bare.note(0, 0, S3);
            bare.note_csr(0, 1, CSR_STACK);
            // The most recent frame that holds one.
            bare.suspend();
            bare.note_csr(0, 2, CSR_STACK);
            bare.load(2, 0x8020_1500);
            bare.begin(ZERO);
            bare.read_csr(S3, CSR_STACK);
            bare.suspend();
            bare.note(0, 3, S3);
            bare.note_csr(0, 4, CSR_STACK);
            bare.resume();
            bare.end();
            bare.resume();
        });
        bare.end();
        bare.log_csr(CSR_STACK);
        bare.trap(|bare| {
            bare.user(|bare| {
                bare.begin(ZERO);
                bare.push(EBREAK);
            })
        });
        bare.log_csr(CSR_STACK);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let (none, first) = (u64::MAX, 0x8020_1230);
        assert_eq!(logs.notes(0), [none, first, first, none, 0x8020_1500], "{:?}", logs.gear);
        let words: [u64; 7] = logs.words(0);
        assert_eq!((words[0], words[6]), (none, none), "{:?}", logs.gear);
    });
}

/// each state has its bits, the size is that of the subject, and its begin time stays.
#[test]
fn the_subject_is_the_active_or_the_last_suspended_transaction() {
    let build = |bare: &mut Bare| {
        let note = |bare: &mut Bare, index: u64| {
            for (place, number) in [CSR_STATUS, CSR_SIZE, CSR_BEGIN_TIME].into_iter().enumerate() {
                bare.read_csr(S3 + place as u32, number);
            }
            bare.transaction_id(S6);
            let active = bare.code.label();
            bare.push(addi(S7, S6, 0));
            bare.code.branch(0, S6, ZERO, active);
            bare.suspend();
            bare.code.bind(active);
            for place in 0..3 {
                bare.note(0, 3 * index + place, S3 + place as u32);
            }
            let inactive = bare.code.label();
            bare.code.branch(0, S7, ZERO, inactive);
            bare.resume();
            bare.code.bind(inactive);
        };
        note(bare, 0);
        bare.begin(ZERO);
        bare.store(A, 1);
        bare.load_word(T2, A);
        bare.load_word(T2, A + 4);
        bare.load_word(T2, B);
        note(bare, 1);
        bare.suspend();
        note(bare, 2);
        bare.suspend();
        note(bare, 3);
        bare.attempt(S2, |bare| bare.restart(0x2200), |_| ());
        bare.store(C, 1);
        note(bare, 4);
        bare.suspend();
        note(bare, 5);
        bare.resume();
        bare.end();
        note(bare, 6);
        bare.resume();
        bare.resume();
        note(bare, 7);
        bare.end();
        note(bare, 8);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let gear = logs.gear;
        let notes: [u64; 27] = logs.notes(0);
        let found: Vec<(u64, u64)> = notes.chunks(3).map(|note| (without_overflow(note[0]), note[1])).collect();
        let times: Vec<u64> = notes.chunks(3).map(|note| note[2]).collect();
        let depth = 1 << XSTATUS_DEPTH_SHIFT;
        let status = 0x2203 << XSTATUS_STATUS_SHIFT;
        let (active, suspended) = (XSTATUS_ACTIVE | depth, XSTATUS_SUSPENDED | depth);
        // The word at A + 4 is that of A and that of A + 8.
        let expected = [
            (0, 0),
            (active, 3),
            (suspended, 3),
            (suspended, 3),
            (active | status, 1),
            (suspended | status, 1),
            (suspended, 3),
            (active, 3),
            (0, 0),
        ];
        assert_eq!(found, expected, "{gear:?}");
        let (outer, inner) = (times[1], times[4]);
        assert!(0 < outer && outer < inner, "{gear:?}");
        assert_eq!(times, [0, outer, outer, outer, inner, inner, outer, outer, outer], "{gear:?}");
    });
}

/// with no subject, the status word and the begin time are those of the hart's last transaction.
#[test]
fn the_last_transaction_leaves_its_status_and_its_begin_time() {
    let build = |bare: &mut Bare| {
        bare.attempt(S2, |bare| bare.restart(0x3300), |_| ());
        bare.read_csr(S3, CSR_BEGIN_TIME);
        bare.end();
        bare.log_csr(CSR_STATUS);
        bare.log_csr(CSR_BEGIN_TIME);
        bare.log(S3);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 3] = logs.words(0);
        assert_eq!(words[..2], [0x3303 << XSTATUS_STATUS_SHIFT, words[2]], "{:?}", logs.gear);
    });
}

/// the size counts granules, which are lines where the board says so.
#[test]
fn the_size_counts_granules() {
    let kinds = [
        (Granularity::Word32, [1, 2, 4, 6, 6, 8]),
        (Granularity::Word, [1, 1, 2, 4, 4, 5]),
        (Granularity::Line, [1, 1, 1, 2, 2, 2]),
    ];
    for (granularity, expected) in kinds {
        let build = |bare: &mut Bare| {
            bare.board.transactions.granularity = granularity;
            bare.load(S0, A);
            bare.begin(ZERO);
            let accesses = [
                i_type(LOAD, T0, 0, S0, 3),
                s_type(STORE, 0, S0, ZERO, 7),
                ld(T0, S0, 8),
                // Over two lines.
                sd(ZERO, S0, 60),
                ld(T0, S0, 60),
                sd(ZERO, S0, 72),
            ];
            for (index, access) in accesses.into_iter().enumerate() {
                bare.push(access);
                bare.read_csr(S2 + index as u32, CSR_SIZE);
            }
            bare.end();
            for index in 0..6 {
                bare.log(S2 + index);
            }
            bare.finish();
        };
        everywhere(1, build, |logs| assert_eq!(logs.words::<6>(0), expected, "{:?} {granularity:?}", logs.gear));
    }
}

/// a loser's hart says where it lost and to whom, and how long it backed off; restarts of other causes leave both
/// registers alone. With sets by line, the word is the one that the requester accessed.
#[test]
fn a_loser_learns_where_and_to_whom_it_lost() {
    for granularity in Granularity::ALL {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.store(A + 8, 5);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.read_csr(S4, CSR_CYCLE);
            bare.read_csr(S5, CSR_BEGIN_TIME);
            bare.end();
            let log = |bare: &mut Bare| {
                for number in [CSR_CONFLICT, CSR_WINNER, CSR_BACKOFF] {
                    bare.log_csr(number);
                }
            };
            log(bare);
            bare.attempt(S2, |bare| bare.restart(0), |_| ());
            bare.end();
            log(bare);
            bare.push(r_type(OP, S4, 0, S4, S5, 0x20));
            bare.log(S4);
            bare.wait_for(ANSWER, 1);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.begin(ZERO);
            bare.transaction_id(S3);
            bare.load_word(S4, A + 8);
            bare.end();
            bare.log(S3);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = Manager::RequesterWins;
            bare.board.transactions.granularity = granularity;
            bare.board.transactions.backoff_base_cycles = 1 << 16;
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            let [winner] = logs.words(1);
            let words: [u64; 7] = logs.words(0);
            let (backed_off, passed) = (words[2], words[6]);
            assert_eq!(words[..6], [A + 8, winner, backed_off, A + 8, winner, backed_off], "{:?}", logs.gear);
            assert!(0 < backed_off && backed_off <= passed, "{:?}: {backed_off} {passed}", logs.gear);
        });
    }
}

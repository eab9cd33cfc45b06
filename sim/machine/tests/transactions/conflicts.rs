//! Who conflicts with whom, and who wins: sections 2 and 9 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;
use concord_htm::policy::{Backoff, Granularity};

/// another hart's plain accesses win under every manager, see what was committed, and their
/// transaction is back at its begin before it does anything more.
#[test]
fn plain_accesses_of_another_hart_win() {
    let accesses: [(Part, u64); 7] = [
        (&|bare| bare.push(ld(S3, S0, 0)), 1),
        (&|bare| bare.push(i_type(LOAD, S3, 4, S0, 0)), 1),
        (&|bare| bare.push(ld(S3, S0, -4)), 1 << 32),
        (&|bare| bare.push(amo_add(S3, S0, ZERO)), 1),
        (&|bare| bare.push(lr(S3, S0)), 1),
        (&|bare| bare.push(Width::Double.encode_test(S3, S0, S1)), 1),
        // A store to half of the word: the other half is what was committed.
        (
            &|bare| {
                bare.push(s_type(STORE, 2, S0, S1, 4));
                bare.push(ld(S3, S0, 0));
            },
            1 << 32 | 1,
        ),
    ];
    for (index, (access, found)) in accesses.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, 255);
            let first = |bare: &mut Bare| {
                bare.store(A, 0x5555_5555_5555_5555);
                bare.store(B, 5);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_word(B);
            bare.wait_for(ANSWER, 1);
        };
        let second = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 1);
            bare.wait_for(FLAG, 1);
            access(bare);
            bare.log(S3);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.set_word(A, 1);
            on_harts(&[&first, &second])(bare);
        };
        under_every_manager(2, build, |manager, logs| {
            let why = format!("{} {:?}: access {index}", manager.name(), logs.gear);
            assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, 0], "{why}");
            assert_eq!(logs.words::<1>(1), [found], "{why}");
        });
    }
}

/// a plain store, an AMO and an SC make readers lose, by either of two words.
#[test]
fn plain_stores_of_another_hart_win_against_readers() {
    let stores: [Part; 5] = [
        &|bare| bare.push(s_type(STORE, 0, S0, S1, 7)),
        &|bare| bare.push(sd(S1, S0, -4)),
        &|bare| bare.push(sd(S1, S0, 4)),
        &|bare| bare.push(amo_add(S3, S0, ZERO)),
        &|bare| {
            let again = bare.code.here();
            bare.push(lr(S3, S0));
            bare.push(sc(S4, S0, S1));
            bare.code.branch(1, S4, ZERO, again);
        },
    ];
    for (index, store) in stores.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.load_word(S3, A);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_CONFLICT);
        };
        let second = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 9);
            bare.wait_for(FLAG, 1);
            store(bare);
        };
        under_every_manager(2, on_harts(&[&first, &second]), |manager, logs| {
            let why = format!("{} {:?}: store {index}", manager.name(), logs.gear);
            assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, A], "{why}");
        });
    }
}

/// readers of one word do not conflict, nor do writers of different granules.
#[test]
fn readers_and_strangers_do_not_conflict() {
    for (granularity, distance) in [(Granularity::Word32, 8), (Granularity::Word, 8), (Granularity::Line, 64)] {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.load_word(S3, A);
                bare.store(B, 5);
                bare.outside(|bare| bare.store(FLAG, 1));
                bare.poll(ANSWER, 1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.load_word(S3, A);
            bare.begin(S2);
            bare.load_word(S3, A);
            bare.store(B + distance, 6);
            bare.end();
            bare.store(B + 2 * distance, 6);
            bare.log(S2);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.granularity = granularity;
            on_harts(&[&first, &second])(bare);
        };
        under_every_manager(2, build, |manager, logs| {
            let why = format!("{} {:?} {granularity:?}", manager.name(), logs.gear);
            assert_eq!((logs.words::<1>(0), logs.words::<1>(1)), ([0], [0]), "{why}");
        });
    }
}

/// by line, another word of the line conflicts, whoever asks.
#[test]
fn by_line_the_words_of_a_line_conflict() {
    for in_transaction in [false, true] {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(A + 8, 5);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_CONFLICT);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            if in_transaction {
                bare.begin(ZERO);
            }
            bare.load_word(S3, A + 48);
            if in_transaction {
                bare.end();
            }
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.granularity = Granularity::Line;
            bare.board.transactions.manager = Manager::RequesterWins;
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            let cause = if in_transaction { CONFLICT } else { NONTRANSACTIONAL };
            assert_eq!(logs.words::<2>(0), [cause, A + 48], "{:?}", logs.gear);
        });
    }
}

/// a plain access to a word beside those in a set does not conflict, and does not open the line either: the next
/// one, to a word in the set, does. Whoever had the line first.
#[test]
fn a_word_beside_opens_no_door() {
    for writes in [false, true] {
        for had_before in [false, true] {
            let first = |bare: &mut Bare| {
                if had_before {
                    bare.wait_for(ANSWER, 3);
                }
                let first = |bare: &mut Bare| {
                    if writes {
                        bare.store(A, 5);
                    } else {
                        bare.load_word(S3, A);
                    }
                    bare.outside(|bare| bare.store(FLAG, 1));
                    bare.poll(ANSWER, 1);
                    bare.outside(|bare| bare.note_csr(0, 0, CSR_RESTARTS));
                    bare.tell_and_spin(2);
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log_csr(CSR_CONFLICT);
                bare.wait_for(ANSWER, 2);
            };
            let second = |bare: &mut Bare| {
                bare.load(S0, A);
                if had_before {
                    bare.push(sd(ZERO, S0, 0));
                    bare.store(ANSWER, 3);
                }
                bare.wait_for(FLAG, 1);
                bare.push(ld(S3, S0, 8));
                bare.push(sd(S3, S0, 16));
                bare.store(ANSWER, 1);
                bare.wait_for(FLAG, 2);
                bare.push(ld(S3, S0, 8));
                bare.push(sd(S3, S0, 16));
                bare.push(if writes { ld(S3, S0, 0) } else { sd(S3, S0, 0) });
                bare.log(S3);
                bare.store(ANSWER, 2);
            };
            everywhere(2, on_harts(&[&first, &second]), |logs| {
                let why = format!("{:?}: {writes} {had_before}", logs.gear);
                assert_eq!(logs.note(0, 0), 0, "{why}");
                assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, A], "{why}");
                assert_eq!(logs.words::<1>(1), [0], "{why}");
            });
        }
    }
}

/// an access that meets two holders wins against both or takes neither down. The requester's priority is
/// between theirs, or above both. They meet at one word, at two words of a line, and at two lines.
#[test]
fn an_access_wins_against_all_or_none() {
    let places = [(A, A, 0), (A, A + 8, 4), (A + 56, A + 64, 60)];
    for (low_word, high_word, offset) in places {
        for (priority, wins) in [(5, false), (9, true)] {
            let holder = |hart: u64, priority: u64, word: u64| {
                move |bare: &mut Bare| {
                    bare.set_csr(CSR_PRIORITY, priority);
                    let first = |bare: &mut Bare| {
                        bare.load_word(S3, word);
                        bare.outside(|bare| {
                            bare.load(T0, FLAG);
                            bare.load(T1, 1);
                            bare.push(amo_add(ZERO, T0, T1));
                        });
                        bare.poll(ANSWER, 1);
                    };
                    bare.attempt(S2, first, |_| ());
                    bare.end();
                    bare.note(hart, 0, S2);
                    bare.load(T0, C);
                    bare.load(T1, 1);
                    bare.push(amo_add(ZERO, T0, T1));
                }
            };
            let first = |bare: &mut Bare| {
                bare.set_csr(CSR_PRIORITY, priority);
                bare.load(S0, A);
                bare.load(S1, u64::MAX);
                bare.wait_for(FLAG, 2);
                let again = |bare: &mut Bare| bare.outside(|bare| bare.store(ANSWER, 1));
                bare.attempt(S2, |bare| bare.push(sd(S1, S0, offset)), again);
                bare.end();
                bare.log(S2);
                bare.push(ld(T0, S0, offset));
                bare.log(T0);
                bare.store(ANSWER, 1);
                bare.wait_for(C, 2);
            };
            let (low, high) = (holder(1, 3, low_word), holder(2, 8, high_word));
            let build = |bare: &mut Bare| {
                bare.board.transactions.manager = Manager::OsPrio;
                on_harts(&[&first, &low, &high])(bare);
            };
            everywhere(3, build, |logs| {
                let why = format!("{:?}: offset {offset}, priority {priority}", logs.gear);
                let (own, theirs) = if wins { ([0, u64::MAX], CONFLICT) } else { ([CONFLICT, 0], 0) };
                assert_eq!(logs.words::<2>(0), own, "{why}");
                assert_eq!((logs.note(1, 0), logs.note(2, 0)), (theirs, theirs), "{why}");
            });
        }
    }
}

/// a requester that loses has not stored. Under os-prio the priority that counts is that of the begin.
#[test]
fn a_requester_that_loses_changes_nothing() {
    let accesses: [Part; 4] = [
        &|bare| bare.push(sd(S1, S0, 0)),
        &|bare| bare.push(amo_add(S3, S0, S1)),
        // Two words, of which the holder has the second.
        &|bare| bare.push(sd(S1, S0, -4)),
        &|bare| bare.push(Width::Double.encode_compare_and_swap(S3, S0, ZERO, S1)),
    ];
    for (index, access) in accesses.into_iter().enumerate() {
        let first = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, 4);
            bare.begin(S2);
            bare.store(A + 8, 5);
            bare.outside(|bare| {
                bare.set_csr(CSR_PRIORITY, 0);
                bare.store(FLAG, 1);
            });
            bare.poll(ANSWER, 1);
            bare.end();
            bare.log(S2);
            bare.log_word(A);
            bare.log_word(A + 8);
        };
        let second = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, 3);
            bare.load(S0, A + 8);
            bare.load(S1, u64::MAX);
            bare.wait_for(FLAG, 1);
            let again = |bare: &mut Bare| bare.outside(|bare| bare.store(ANSWER, 1));
            bare.attempt(S2, access, again);
            bare.end();
            bare.log(S2);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = Manager::OsPrio;
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            assert_eq!(logs.words::<3>(0), [0, 0, 5], "{:?}: access {index}", logs.gear);
        });
    }
}

/// a requester that waits, which polka makes it do, has done nothing yet, and takes an interrupt where it waits.
#[test]
fn a_waiting_requester_can_be_interrupted() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            for word in 0..30 {
                bare.store(C + 8 * word, 5);
            }
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.wait_for(FLAG, 2);
    };
    let second = |bare: &mut Bare| {
        bare.set_csr(CSR_SIE, TIMER);
        bare.wait_for(FLAG, 1);
        bare.load(S9, 0);
        bare.trap(|bare| {
            bare.read_csr(S3, CSR_TIME);
            bare.push(addi(S3, S3, 100));
            bare.csrw(CSR_STIMECMP, S3);
            bare.load(S0, A);
            bare.load(S1, 9);
            bare.begin(S2);
            bare.push(sd(S1, S0, 64));
            // On from here an interrupt may come, and the next instruction is known.
            let here = bare.code.label();
            bare.code.jump(S6, here);
            bare.code.bind(here);
            bare.set_bits(CSR_SSTATUS, SIE);
            bare.push(sd(S1, S0, 0));
            bare.end();
        });
        let done = bare.code.label();
        bare.code.branch(1, S9, ZERO, done);
        bare.log(S6);
        bare.log_csr(CSR_STATUS);
        bare.log_csr(CSR_SIZE);
        bare.set_csr(CSR_STIMECMP, u64::MAX);
        bare.store(ANSWER, 1);
        bare.load(S9, 1);
        bare.push(SRET);
        bare.code.bind(done);
        bare.log(S2);
        bare.log_word(A);
        bare.store(FLAG, 2);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.manager = Manager::Polka;
        bare.board.transactions.backoff_base_cycles = 1 << 20;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        let words: [u64; 15] = logs.words(1);
        let gear = logs.gear;
        assert_eq!(words[0], INTERRUPT | 5, "{gear:?}");
        // The constant's load and the CSR's write are two instructions.
        assert_eq!(words[2], words[5] + 8, "{gear:?}: sepc");
        let waiting = XSTATUS_SUSPENDED | XSTATUS_STALLED | 1 << XSTATUS_DEPTH_SHIFT;
        assert_eq!([without_overflow(words[6]), words[7]], [waiting, 1], "{gear:?}");
        // The second trap is none: the store waited no longer, once the holder had committed.
        assert_eq!(words[8], NO_TRAP, "{gear:?}");
        assert_eq!(words[13..], [0, 9], "{gear:?}");
        assert_eq!(logs.words::<1>(0), [0], "{gear:?}");
    });
}

/// a transaction never sees two words that no serial order gives it, not even on its way to a restart.
#[test]
fn a_doomed_transaction_sees_nothing_impossible() {
    const ROUNDS: u64 = 5000;
    let first = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, B);
        bare.load(S8, FLAG);
        let again = bare.code.here();
        let fine = bare.code.label();
        bare.begin(ZERO);
        bare.push(ld(S3, S0, 0));
        bare.push(ld(S4, S1, 0));
        bare.push(ld(S5, S0, 0));
        bare.push(ld(S6, S1, 0));
        // Nobody else writes in between, as far as a transaction can tell.
        bare.push(r_type(OP, S7, 4, S3, S5, 0));
        bare.push(r_type(OP, T0, 4, S4, S6, 0));
        bare.push(r_type(OP, S7, 6, S7, T0, 0));
        bare.code.branch(0, S7, ZERO, fine);
        bare.suspend();
        bare.load(T0, 1);
        bare.note(0, 0, T0);
        bare.resume();
        bare.code.bind(fine);
        bare.end();
        bare.push(ld(T0, S8, 0));
        bare.code.branch(0, T0, ZERO, again);
        bare.log_csr(CSR_RESTARTS);
    };
    let second = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, B);
        bare.load(S3, ROUNDS);
        let again = bare.code.here();
        bare.push(sd(S3, S0, 0));
        bare.push(sd(S3, S1, 0));
        bare.push(addi(S3, S3, -1));
        bare.code.branch(1, S3, ZERO, again);
        bare.store(FLAG, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        assert_eq!(logs.note(0, 0), 0, "{:?}: a word changed under a transaction", logs.gear);
        assert!(logs.words::<1>(0)[0] > 0, "{:?}: they never met", logs.gear);
    });
}

/// a transaction that lost to another one backs off until that one has committed; after a lost
/// conflict under the default policy it goes on at once.
#[test]
fn a_loser_backs_off_until_the_winner_has_committed() {
    for backoff in Backoff::ALL {
        let loser = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.tell_and_spin(1);
            };
            let again = |bare: &mut Bare| {
                bare.outside(|bare| {
                    bare.load_word(S3, B);
                    bare.note(0, 0, S3);
                });
            };
            bare.attempt(S2, first, again);
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_BACKOFF);
        };
        let winner = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.begin(ZERO);
            bare.store(A, 6);
            bare.load(S3, 10_000);
            let again = bare.code.here();
            bare.push(addi(S3, S3, -1));
            bare.code.branch(1, S3, ZERO, again);
            bare.outside(|bare| bare.store(B, 1));
            bare.end();
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.backoff = backoff;
            bare.board.transactions.manager = Manager::RequesterWins;
            on_harts(&[&loser, &winner])(bare);
        };
        everywhere(2, build, |logs| {
            let why = format!("{} {:?}", backoff.name(), logs.gear);
            let [status, backoff_cycles] = logs.words(0);
            assert_eq!(status, CONFLICT, "{why}");
            let waits = backoff == Backoff::Winner;
            assert_eq!(logs.note(0, 0), u64::from(waits), "{why}: the winner's end was near");
            // 65,536 cycles were the bound.
            let expected = if waits { 10_000..60_000 } else { 0..64 };
            assert!(expected.contains(&backoff_cycles), "{why}: xbackoff {backoff_cycles}");
        });
    }
}

/// a winner that does not go on before the loser does holds it no longer than the bound.
#[test]
fn a_loser_does_not_back_off_for_ever() {
    let loser = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.tell_and_spin(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log_csr(CSR_BACKOFF);
        bare.store(ANSWER, 1);
    };
    let winner = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.begin(ZERO);
        bare.store(A, 6);
        bare.outside(|bare| bare.wait_for(ANSWER, 1));
        bare.end();
    };
    let build = |bare: &mut Bare| {
        let transactions = &mut bare.board.transactions;
        (transactions.backoff, transactions.manager) = (Backoff::Winner, Manager::RequesterWins);
        transactions.backoff_base_cycles = 4;
        on_harts(&[&loser, &winner])(bare);
    };
    everywhere(2, build, |logs| {
        let [backoff_cycles] = logs.words(0);
        assert!((4096..4100).contains(&backoff_cycles), "{:?}: xbackoff {backoff_cycles}", logs.gear);
    });
}

/// transfers between accounts in opposite orders, watched by a hart that reads them in a transaction: every
/// manager gets all of them done, and nobody sees money that is not there.
#[test]
fn transfers_are_atomic_and_come_to_an_end() {
    const ROUNDS: u64 = 60;
    let transfers = |from: u64, to: u64, done: u64| {
        move |bare: &mut Bare| {
            bare.load(S0, from);
            bare.load(S1, to);
            bare.load(S3, ROUNDS);
            let again = bare.code.here();
            bare.begin(ZERO);
            bare.push(ld(T0, S0, 0));
            bare.push(addi(T0, T0, -1));
            bare.push(sd(T0, S0, 0));
            bare.push(ld(T0, S1, 0));
            bare.push(addi(T0, T0, 1));
            bare.push(sd(T0, S1, 0));
            bare.end();
            bare.push(addi(S3, S3, -1));
            bare.code.branch(1, S3, ZERO, again);
            bare.store(done, 1);
        }
    };
    let watch = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, B);
        bare.load(S7, 0);
        let again = bare.code.here();
        bare.begin(ZERO);
        bare.push(ld(S3, S0, 0));
        bare.push(ld(S4, S1, 0));
        bare.end();
        bare.push(add(S3, S3, S4));
        bare.push(addi(S3, S3, -1000));
        bare.push(r_type(OP, S7, 6, S7, S3, 0));
        bare.load_word(S4, FLAG);
        bare.load_word(S5, ANSWER);
        bare.push(r_type(OP, S4, 7, S4, S5, 0));
        bare.code.branch(0, S4, ZERO, again);
        bare.log(S7);
        bare.log_word(A);
        bare.log_word(B);
    };
    let build = |bare: &mut Bare| {
        bare.set_word(A, 500);
        bare.set_word(B, 500);
        on_harts(&[&watch, &transfers(A, B, FLAG), &transfers(B, A, ANSWER)])(bare);
    };
    under_every_manager(3, build, |manager, logs| {
        assert_eq!(logs.words::<3>(0), [0, 500, 500], "{} {:?}", manager.name(), logs.gear);
    });
}

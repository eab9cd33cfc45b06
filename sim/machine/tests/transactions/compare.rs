//! xtest and xcas: sections 7.7 and 7.8 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;

/// both compare as many low bits as they are wide, and `xcas` stores as many.
#[test]
fn comparisons_are_as_wide_as_they_say() {
    const VALUE: u64 = 0x8877_6655_4433_2211;
    const NEW: u64 = 0xa1b2_c3d4_e5f6_0718;
    for in_transaction in [false, true] {
        for (width, _) in Width::ALL {
            let bits = 8 * width.size_bytes();
            let mask = u64::MAX >> (64 - bits);
            let build = |bare: &mut Bare| {
                bare.set_word(A, VALUE);
                bare.set_word(A + 8, VALUE);
                bare.load(S0, A);
                bare.load(S1, A + 8);
                if in_transaction {
                    bare.begin(ZERO);
                }
                // The bits above the width are ignored; each bit below counts.
                for (index, flipped) in [!mask, 1, 1 << (bits - 1)].into_iter().enumerate() {
                    bare.load(T1, VALUE ^ flipped);
                    bare.load(T2, NEW);
                    let target = if index == 0 { S0 } else { S1 };
                    bare.push(width.encode_test(S2 + index as u32, target, T1));
                    bare.push(width.encode_compare_and_swap(S5 + index as u32, target, T1, T2));
                }
                if in_transaction {
                    bare.end();
                }
                for register in [S2, S3, S4, S5, S6, S7] {
                    bare.log(register);
                }
                bare.log_word(A);
                bare.log_word(A + 8);
                bare.finish();
            };
            everywhere(1, build, |logs| {
                let stored = VALUE & !mask | NEW & mask;
                let expected = [1, 0, 0, SWAPPED, DIFFERED, DIFFERED, stored, VALUE];
                assert_eq!(logs.words::<8>(0), expected, "{:?}: {bits} bits, {in_transaction}", logs.gear);
            });
        }
    }
}

/// a word joins the read set by `xtest` when it is equal, and by `xcas` in any case; the write set by an
/// `xcas` that swaps.
#[test]
fn comparisons_join_sets_by_their_outcome() {
    let probe = |bare: &mut Bare| {
        // Each of the words, from another hart, by an xcas that would swap: refused where it is in a set.
        for word in [A, B, C, C + 0x40] {
            bare.swap(S3, word, 0, 0);
            bare.log(S3);
        }
        // And by a load, which does not conflict with a read set.
        bare.load_word(S3, C);
    };
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.test(S3, A, 1);
            bare.read_csr(S4, CSR_SIZE);
            bare.test(S3, B, 0);
            bare.read_csr(S5, CSR_SIZE);
            bare.swap(S3, C, 1, 2);
            bare.read_csr(S6, CSR_SIZE);
            bare.swap(S3, C + 0x40, 0, 3);
            bare.read_csr(S7, CSR_SIZE);
            bare.meet(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        for register in [S2, S4, S5, S6, S7] {
            bare.log(register);
        }
        bare.log_word(C + 0x40);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        probe(bare);
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.manager = Manager::Timestamp;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        assert_eq!(logs.words::<6>(0), [0, 0, 1, 2, 3, 3], "{:?}", logs.gear);
        assert_eq!(logs.words::<4>(1), [SWAPPED, REFUSED, REFUSED, REFUSED], "{:?}", logs.gear);
    });
}

/// an `xcas` inside a transaction is rolled back with it.
#[test]
fn a_swap_is_rolled_back() {
    let build = |bare: &mut Bare| {
        bare.set_word(A, 4);
        let first = |bare: &mut Bare| {
            bare.swap(S3, A, 4, 5);
            bare.outside(|bare| bare.note(0, 0, S3));
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log_word(A);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!((logs.note(0, 0), logs.words::<1>(0)), (SWAPPED, [4]), "{:?}", logs.gear);
    });
}

/// they are checked as a load and as an AMO, also where nothing would be stored, and before that their
/// alignment.
#[test]
fn comparisons_are_checked() {
    let test = |width: Width| width.encode_test(S3, S0, S1);
    let swap = |width: Width| width.encode_compare_and_swap(S3, S0, S1, S1);
    const UART: u64 = 0x1000_0000;
    // An instruction, an address, the trap's cause. The data differs from what is in s1.
    let checks = [
        (test(Width::Half), DATA + 1, 4),
        (test(Width::Word), DATA + 2, 4),
        (test(Width::Double), DATA + 4, 4),
        (swap(Width::Half), DATA + 1, 6),
        (swap(Width::Word), DATA + 2, 6),
        (swap(Width::Double), DATA + 4, 6),
        (test(Width::Byte), UART + 5, 5),
        (swap(Width::Byte), UART + 7, 7),
        (test(Width::Double), NOWHERE, 5),
        (swap(Width::Double), NOWHERE, 7),
        // Read-only, execute-only, absent, and misaligned on an absent page.
        (test(Width::Double), WINDOW, NO_TRAP),
        (swap(Width::Double), WINDOW, 15),
        (test(Width::Double), WINDOW + 0x1000, 13),
        (swap(Width::Double), WINDOW + 0x1000, 15),
        (test(Width::Double), WINDOW + 0x2000, 13),
        (swap(Width::Double), WINDOW + 0x2000, 15),
        (test(Width::Double), WINDOW + 0x2001, 4),
        (swap(Width::Double), WINDOW + 0x2001, 6),
    ];
    for in_transaction in [false, true] {
        let build = |bare: &mut Bare| {
            bare.map(0, READ);
            bare.map(1, EXECUTE);
            bare.load(S1, 0x5a5a_5a5a_5a5a_5a5a);
            for (index, (instruction, address, _)) in checks.into_iter().enumerate() {
                if index == 10 {
                    bare.translate();
                }
                bare.load(S0, address);
                if in_transaction {
                    bare.begin(ZERO);
                }
                bare.trap(|bare| {
                    bare.push(instruction);
                    if in_transaction {
                        // Where there is no trap the handler's part is done here.
                        bare.suspend();
                    }
                });
                if in_transaction {
                    bare.resume();
                    bare.end();
                }
            }
            bare.finish();
        };
        everywhere(1, build, |logs| {
            for (index, (cause, value)) in logs.traps(checks.len()).into_iter().enumerate() {
                let (instruction, address, expected) = checks[index];
                let expected = (expected, if expected == NO_TRAP { NO_TRAP } else { address });
                assert_eq!((cause, value), expected, "{:?}: {instruction:#x} {in_transaction}", logs.gear);
            }
        });
    }
}

/// outside a transaction `xtest` is a plain load, which wins against every manager's favourite.
#[test]
fn a_plain_test_wins_under_every_manager() {
    let first = |bare: &mut Bare| {
        bare.set_csr(CSR_PRIORITY, 200);
        let first = |bare: &mut Bare| {
            bare.store(A, 5);
            bare.tell_and_spin(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.wait_for(ANSWER, 1);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        // Equal to the committed value, not to the transaction's.
        bare.test(S3, A, 0);
        bare.log(S3);
        bare.store(ANSWER, 1);
    };
    under_every_manager(2, on_harts(&[&first, &second]), |manager, logs| {
        assert_eq!(logs.words::<1>(0), [NONTRANSACTIONAL], "{} {:?}", manager.name(), logs.gear);
        assert_eq!(logs.words::<1>(1), [1], "{} {:?}", manager.name(), logs.gear);
    });
}

/// inside a transaction `xtest` and `xcas` are transactional loads, which win or lose as the manager says.
/// The holder is the older, the larger, and, under os-prio, the less important one.
#[test]
fn a_transactional_comparison_wins_as_the_manager_says() {
    for with_swap in [false, true] {
        let first = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, 1);
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                for word in 0..4 {
                    bare.store(B + 8 * word, 5);
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
            bare.set_csr(CSR_PRIORITY, 2);
            bare.wait_for(FLAG, 1);
            let first = |bare: &mut Bare| {
                if with_swap {
                    bare.swap(S3, A, 0, 9);
                } else {
                    bare.test(S3, A, 0);
                }
                bare.outside(|bare| bare.note(1, 0, S3));
            };
            let again = |bare: &mut Bare| bare.load(S3, 77);
            bare.attempt(S2, first, again);
            bare.end();
            bare.store(ANSWER, 1);
            bare.log(S2);
            bare.log(S3);
            bare.store(FLAG, 2);
        };
        under_every_manager(2, on_harts(&[&first, &second]), |manager, logs| {
            let why = format!("{} {:?} {with_swap}", manager.name(), logs.gear);
            let found = if with_swap { SWAPPED } else { 1 };
            match manager {
                Manager::Timestamp | Manager::SizeMatters | Manager::RequesterStalls => {
                    assert_eq!(logs.words::<1>(0), [0], "{why}");
                    assert_eq!(logs.words::<2>(1), [CONFLICT, 77], "{why}");
                }
                Manager::OsPrio | Manager::Polka | Manager::RequesterWins => {
                    assert_eq!(logs.words::<1>(0), [CONFLICT], "{why}");
                    assert_eq!(logs.words::<2>(1), [0, found], "{why}");
                }
            }
        });
    }
}

/// an `xcas` outside a transaction is refused as long as the manager favours the holder. Here the holder
/// is older and larger; what the priorities are, the case says.
#[test]
fn an_xcas_outside_is_arbitrated() {
    // The priority of the hart with the xcas (the holder's is 5), by manager; answers of the first tries.
    let cases = [
        (Manager::Timestamp, 9, [REFUSED; 12]),
        (Manager::SizeMatters, 9, [REFUSED; 12]),
        (Manager::OsPrio, 5, [REFUSED; 12]),
        (Manager::OsPrio, 4, [REFUSED; 12]),
        (Manager::OsPrio, 6, [SWAPPED, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        // Polka's answer changes with the number of tries, but comes at once each time.
        (Manager::Polka, 9, [REFUSED; 12]),
        (Manager::RequesterStalls, 9, [REFUSED; 12]),
        (Manager::RequesterWins, 0, [SWAPPED, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ];
    for (manager, priority, answers) in cases {
        let first = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, 5);
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                for word in 0..20 {
                    bare.store(C + 8 * word, 5);
                }
                bare.outside(|bare| bare.store(FLAG, 1));
                bare.poll(ANSWER, 1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_WINNER);
            bare.log_word(C);
            bare.store(FLAG, 2);
            bare.wait_for(ANSWER, 2);
            bare.log_word(A);
        };
        let second = |bare: &mut Bare| {
            bare.set_csr(CSR_PRIORITY, priority);
            bare.wait_for(FLAG, 1);
            for _ in answers {
                bare.swap(S3, A, 0, 9);
                bare.log(S3);
            }
            bare.store(ANSWER, 1);
            bare.wait_for(FLAG, 2);
            // Committed: no conflict is left.
            bare.swap(S3, A, 5, 6);
            bare.log(S3);
            bare.store(ANSWER, 2);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = manager;
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            let why = format!("{} {priority} {:?}", manager.name(), logs.gear);
            let words: [u64; 13] = logs.words(1);
            let won = words[..12].contains(&SWAPPED);
            if manager == Manager::Polka {
                let place = words[..12].iter().position(|answer| *answer == SWAPPED).expect("it wins in the end");
                assert!(place > 0 && words[..place].iter().all(|answer| *answer == REFUSED), "{why}: {words:?}");
            } else {
                assert_eq!(words[..12], answers, "{why}");
            }
            let expected = if won { [NONTRANSACTIONAL, 0, 0, 9] } else { [0, 0, 5, 6] };
            assert_eq!(logs.words::<4>(0), expected, "{why}");
            assert_eq!(words[12], if won { DIFFERED } else { SWAPPED }, "{why}");
        });
    }
}

/// an `xcas` that differs conflicts as a load does: not with a read set.
#[test]
fn an_xcas_that_differs_makes_no_reader_lose() {
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
        bare.wait_for(FLAG, 1);
        bare.swap(S3, A, 1, 9);
        bare.log(S3);
        bare.begin(ZERO);
        bare.swap(S3, A, 1, 9);
        bare.end();
        bare.log(S3);
        bare.store(ANSWER, 1);
    };
    under_every_manager(2, on_harts(&[&first, &second]), |manager, logs| {
        assert_eq!(logs.words::<1>(0), [0], "{} {:?}", manager.name(), logs.gear);
        assert_eq!(logs.words::<2>(1), [DIFFERED; 2], "{} {:?}", manager.name(), logs.gear);
    });
}

/// without a conflict it is a plain compare-and-swap, which other harts' cannot split.
#[test]
fn swaps_of_two_harts_all_count() {
    const ROUNDS: u64 = 200;
    let add = |bare: &mut Bare| {
        bare.load(S0, A);
        bare.load(S1, ROUNDS);
        let again = bare.code.here();
        bare.push(ld(T0, S0, 0));
        bare.push(addi(T1, T0, 1));
        bare.push(Width::Double.encode_compare_and_swap(T2, S0, T0, T1));
        bare.code.branch(1, T2, ZERO, again);
        bare.push(addi(S1, S1, -1));
        bare.code.branch(1, S1, ZERO, again);
    };
    let first = |bare: &mut Bare| {
        add(bare);
        bare.wait_for(FLAG, 1);
        bare.log_word(A);
    };
    let second = |bare: &mut Bare| {
        add(bare);
        bare.store(FLAG, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        assert_eq!(logs.words::<1>(0), [2 * ROUNDS], "{:?}", logs.gear);
    });
}

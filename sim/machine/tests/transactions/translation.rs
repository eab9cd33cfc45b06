//! Page tables, walkers, user pages and code: section 12 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;

const OLD: u64 = DATA + 0x1000;
const NEW: u64 = DATA + 0x2000;

/// Page 0 of the window is the old page, which holds 1; the new one holds 2. Both have a function that returns the same in s4.
fn map_old(bare: &mut Bare) {
    bare.set_word(entry_address(0), entry(OLD, READ | WRITE | EXECUTE));
    for (page, value) in [(OLD, 1), (NEW, 2)] {
        bare.set_word(page, value);
        bare.set_code(page + 64, &[addi(S4, ZERO, value as i64), i_type(JALR, 0, 0, 1, 0)]);
    }
}

fn remap(bare: &mut Bare) {
    bare.store(entry_address(0), entry(NEW, READ | WRITE | EXECUTE));
    bare.push(SFENCE_VMA_ALL);
}

/// Loads from the window's first word, into s3, and calls its function.
fn use_window(bare: &mut Bare) {
    bare.load(S0, WINDOW);
    bare.push(ld(S3, S0, 0));
    bare.push(i_type(JALR, 1, 0, S0, 64));
}

/// a transaction translates by the entries that it wrote, and after its restart nobody does.
#[test]
fn translations_of_a_rolled_back_entry_are_forgotten() {
    for warm in [false, true] {
        let build = |bare: &mut Bare| {
            map_old(bare);
            bare.translate();
            if warm {
                use_window(bare);
            }
            let first = |bare: &mut Bare| {
                remap(bare);
                use_window(bare);
                bare.store(WINDOW + 8, 7);
                bare.read_csr(S5, CSR_SIZE);
                bare.outside(|bare| {
                    for (index, register) in [S3, S4, S5].into_iter().enumerate() {
                        bare.note(0, index as u64, register);
                    }
                });
                // Once more, as the translation may have gone with the suspension.
                use_window(bare);
                bare.restart(0);
            };
            bare.attempt(S2, first, |_| ());
            use_window(bare);
            bare.end();
            bare.log(S2);
            bare.log(S3);
            bare.log(S4);
            bare.log_word(NEW + 8);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            // The entry, the word read, and the word written; not what the walk read.
            assert_eq!(logs.notes(0), [2, 2, 3], "{:?} {warm}", logs.gear);
            assert_eq!(logs.words::<4>(0), [EXPLICIT, 1, 1, 0], "{:?} {warm}", logs.gear);
        });
    }
}

/// while it is suspended its hart does not translate by its entries either: a walk reads the old one, and wins.
#[test]
fn a_suspended_transactions_entries_are_not_used() {
    for uses in [false, true] {
        let build = |bare: &mut Bare| {
            map_old(bare);
            bare.translate();
            let first = |bare: &mut Bare| {
                remap(bare);
                use_window(bare);
                bare.outside(|bare| {
                    if uses {
                        use_window(bare);
                        bare.note(0, 0, S3);
                        bare.note(0, 1, S4);
                    }
                });
                use_window(bare);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log(S3);
            bare.log(S4);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            if uses {
                assert_eq!(logs.notes(0), [1, 1], "{:?}", logs.gear);
                assert_eq!(logs.words::<1>(0), [NONTRANSACTIONAL], "{:?}", logs.gear);
            } else {
                assert_eq!(logs.words::<3>(0), [0, 2, 2], "{:?}", logs.gear);
            }
        });
    }
}

/// another hart's walk reads the committed entry, and makes the transaction that wrote it lose; for data and code.
#[test]
fn another_harts_walk_wins() {
    for fetches in [false, true] {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                remap(bare);
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_csr(CSR_CONFLICT);
            bare.wait_for(ANSWER, 1);
        };
        let second = |bare: &mut Bare| {
            bare.translate();
            bare.wait_for(FLAG, 1);
            bare.load(S0, WINDOW);
            if fetches {
                bare.push(i_type(JALR, 1, 0, S0, 64));
                bare.log(S4);
            } else {
                bare.push(ld(S3, S0, 0));
                bare.log(S3);
            }
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            map_old(bare);
            on_harts(&[&first, &second])(bare);
        };
        under_every_manager(2, build, |manager, logs| {
            let why = format!("{} {:?} {fetches}", manager.name(), logs.gear);
            assert_eq!(logs.words::<2>(0), [NONTRANSACTIONAL, entry_address(0)], "{why}");
            assert_eq!(logs.words::<1>(1), [1], "{why}");
        });
    }
}

/// an entry that a walk read is in no set, so another hart may write it.
#[test]
fn a_walk_joins_no_set() {
    let first = |bare: &mut Bare| {
        bare.translate();
        let first = |bare: &mut Bare| {
            use_window(bare);
            bare.read_csr(S5, CSR_SIZE);
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log(S5);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.store(entry_address(0), 0);
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        map_old(bare);
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| assert_eq!(logs.words::<2>(0), [0, 1], "{:?}", logs.gear));
}

/// the bits that a walk sets stay set, unless the transaction wrote that entry.
#[test]
fn accessed_and_dirty_bits_are_not_rolled_back() {
    const BITS: u64 = 0xc0;
    for writes_entry in [false, true] {
        let build = |bare: &mut Bare| {
            let clean = entry(OLD, READ | WRITE) & !BITS;
            bare.set_word(entry_address(0), clean);
            bare.translate();
            let first = |bare: &mut Bare| {
                if writes_entry {
                    bare.store(entry_address(0), entry(NEW, READ | WRITE) & !BITS);
                    bare.push(SFENCE_VMA_ALL);
                }
                bare.store(WINDOW, 5);
                bare.load_word(S3, entry_address(0));
                bare.outside(|bare| bare.note(0, 0, S3));
                bare.restart(0);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log_word(entry_address(0));
            bare.load(T1, clean);
            bare.log(T1);
            bare.log_word(OLD);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            assert_eq!(logs.note(0, 0) & BITS, BITS, "{:?}", logs.gear);
            let [after, clean, word] = logs.words(0);
            let expected = if writes_entry { clean } else { clean | BITS };
            assert_eq!((after, word), (expected, 0), "{:?}: {writes_entry}", logs.gear);
        });
    }
}

/// they conflict with every transaction but the hart's active one: another hart's, and the hart's own suspended one.
#[test]
fn accessed_bits_conflict_with_readers() {
    let first = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.load_word(S3, entry_address(0));
            bare.tell_and_spin(1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.wait_for(ANSWER, 1);
    };
    let second = |bare: &mut Bare| {
        bare.translate();
        bare.wait_for(FLAG, 1);
        bare.load_word(S3, WINDOW);
        // And its own, suspended; then active, where there is no conflict.
        for (index, active) in [false, true].into_iter().enumerate() {
            let first = |bare: &mut Bare| {
                bare.load_word(S3, entry_address(1 + index as u64));
                let access = |bare: &mut Bare| bare.load_word(S4, WINDOW + 0x1000 * (1 + index as u64));
                if active {
                    access(bare);
                } else {
                    bare.outside(access);
                }
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
        }
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        for page in 0..3 {
            bare.set_word(entry_address(page), entry(OLD, READ | WRITE) & !0xc0);
        }
        on_harts(&[&first, &second])(bare);
    };
    under_every_manager(2, build, |manager, logs| {
        assert_eq!(logs.words::<1>(0), [NONTRANSACTIONAL], "{} {:?}", manager.name(), logs.gear);
        assert_eq!(logs.words::<2>(1), [NONTRANSACTIONAL, 0], "{} {:?}", manager.name(), logs.gear);
    });
}

/// sets are of physical words: two pages that show the same one are the same, in supervisor mode on a user
/// page as well.
#[test]
fn sets_are_of_physical_words() {
    let first = |bare: &mut Bare| {
        bare.translate();
        bare.set_bits(CSR_SSTATUS, SUM);
        let first = |bare: &mut Bare| {
            bare.store(WINDOW, 5);
            bare.load_word(S3, WINDOW + 0x1000);
            bare.load_word(S4, OLD);
            bare.read_csr(S5, CSR_SIZE);
            bare.outside(|bare| {
                for (index, register) in [S3, S4, S5].into_iter().enumerate() {
                    bare.note(0, index as u64, register);
                }
                bare.store(FLAG, 1);
            });
            bare.spin();
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
        bare.log_csr(CSR_CONFLICT);
        bare.log_word(WINDOW + 0x1000);
        bare.wait_for(ANSWER, 1);
    };
    let second = |bare: &mut Bare| {
        bare.translate();
        bare.set_bits(CSR_SSTATUS, SUM);
        bare.wait_for(FLAG, 1);
        bare.load_word(S3, WINDOW + 0x1000);
        bare.log(S3);
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        bare.set_word(entry_address(0), entry(OLD, READ | WRITE | USER));
        bare.set_word(entry_address(1), entry(OLD, READ | WRITE | USER));
        bare.set_word(OLD, 1);
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        assert_eq!(logs.notes(0), [5, 5, 1], "{:?}", logs.gear);
        assert_eq!(logs.words::<3>(0), [NONTRANSACTIONAL, OLD, 1], "{:?}", logs.gear);
        assert_eq!(logs.words::<1>(1), [1], "{:?}", logs.gear);
    });
}

/// with SUM off, a supervisor's access to a user page that the transaction has in its sets still faults, and with
/// it on every word is rolled back.
#[test]
fn user_pages_are_checked_and_rolled_back() {
    let build = |bare: &mut Bare| {
        bare.set_word(entry_address(0), entry(OLD, READ | WRITE | USER));
        bare.translate();
        bare.set_bits(CSR_SSTATUS, SUM);
        let first = |bare: &mut Bare| {
            for word in 0..10 {
                bare.store(WINDOW + 8 * word, 5);
            }
            bare.clear_bits(CSR_SSTATUS, SUM);
            bare.trap(|bare| bare.store(WINDOW, 6));
            bare.push(addi(S9, ZERO, 1));
            bare.note(0, 0, S9);
            bare.note_csr(0, 1, CSR_SCAUSE);
            bare.resume();
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.read_csr(S3, CSR_SSTATUS);
        bare.end();
        bare.load(T0, SUM);
        bare.push(r_type(OP, S3, 7, S3, T0, 0));
        bare.log(S3);
        for word in 0..10 {
            bare.log_word(OLD + 8 * word);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.notes(0), [1, 15], "{:?}", logs.gear);
        let words: [u64; 11] = logs.words(0);
        assert_eq!((words[0], &words[1..]), (SUM, &[0; 10][..]), "{:?}", logs.gear);
    });
}

/// code that a transaction wrote, and ran, is what it was after the rollback and a fence.
#[test]
fn code_is_rolled_back() {
    let build = |bare: &mut Bare| {
        bare.set_code(DATA, &[addi(S4, ZERO, 1), i_type(JALR, 0, 0, 1, 0)]);
        bare.load(S0, DATA);
        bare.push(i_type(JALR, 1, 0, S0, 0));
        let first = |bare: &mut Bare| {
            bare.load(T1, u64::from(addi(S4, ZERO, 2)));
            bare.push(s_type(STORE, 2, S0, T1, 0));
            bare.push(FENCE_I);
            bare.push(i_type(JALR, 1, 0, S0, 0));
            bare.outside(|bare| bare.note(0, 0, S4));
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.push(FENCE_I);
        bare.push(i_type(JALR, 1, 0, S0, 0));
        bare.end();
        bare.log(S4);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!((logs.note(0, 0), logs.words::<1>(0)), (2, [1]), "{:?}", logs.gear);
    });
}

/// a fetch may see uncommitted code, and makes nobody lose; nobody's set grows by it.
#[test]
fn a_fetch_makes_nobody_lose() {
    let first = |bare: &mut Bare| {
        bare.load(S0, DATA);
        let first = |bare: &mut Bare| {
            bare.load(T1, u64::from(addi(S4, ZERO, 2)));
            bare.push(s_type(STORE, 2, S0, T1, 0));
            bare.outside(|bare| bare.store(FLAG, 1));
            bare.poll(ANSWER, 1);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.load(S0, DATA);
        bare.wait_for(FLAG, 1);
        bare.push(FENCE_I);
        bare.begin(ZERO);
        bare.push(i_type(JALR, 1, 0, S0, 0));
        bare.read_csr(S5, CSR_SIZE);
        bare.end();
        bare.log(S5);
        bare.store(ANSWER, 1);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.manager = Manager::RequesterWins;
        bare.set_code(DATA, &[addi(S4, ZERO, 1), i_type(JALR, 0, 0, 1, 0)]);
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        assert_eq!((logs.words::<1>(0), logs.words::<1>(1)), ([0], [0]), "{:?}", logs.gear);
    });
}

/// a restart goes back to the begin's mode and permissions in full: from S-mode to U-mode, and from SUM on to off, and the
/// other way about.
#[test]
fn a_restart_goes_back_to_the_begins_permissions() {
    // User code beyond the window, and the pages it may and may not touch.
    let code = WINDOW + 0x3000;
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_ENABLE, XENABLE_USER);
        bare.map(0, READ | WRITE);
        bare.map(1, READ | WRITE | USER);
        bare.map(3, READ | EXECUTE | USER);
        bare.set_code(
            DATA + 0x3000,
            &[
                Control::Begin.encode(S2, 0),
                // beqz s2, +8; then the supervisor's page; else the system call.
                b_type(0, S2, ZERO, 8),
                ld(S3, S0, 0),
                ECALL,
            ],
        );
        bare.load(S0, WINDOW);
        bare.load(S1, WINDOW + 0x1000);
        bare.translate();
        bare.trap(|bare| bare.enter_user(code));
        // The restart takes the handler's registers back too, so the second trap comes out here as the first one did, and its
        // record takes the place of the first one's.
        let restarted = bare.code.label();
        bare.code.branch(1, S2, ZERO, restarted);
        // In S-mode, inside the user's transaction: what it may load now, it may not after the restart.
        bare.set_csr(CSR_TRAP, 0);
        bare.resume();
        bare.push(ld(S3, S0, 0));
        bare.restart(0);
        bare.code.bind(restarted);
        bare.resume();
        bare.end();
        for before in [0, SUM] {
            bare.clear_bits(CSR_SSTATUS, SUM);
            bare.set_bits(CSR_SSTATUS, before);
            bare.trap(|bare| {
                let first = |bare: &mut Bare| {
                    if before == 0 {
                        bare.set_bits(CSR_SSTATUS, SUM);
                        bare.push(ld(S3, S1, 0));
                    } else {
                        bare.clear_bits(CSR_SSTATUS, SUM);
                    }
                    bare.restart(0);
                };
                bare.attempt(S2, first, |_| ());
                bare.push(ld(S3, S1, 0));
                bare.suspend();
            });
            bare.resume();
            bare.end();
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let traps = logs.traps(3);
        let expected = [(13, WINDOW), (13, WINDOW + 0x1000), (NO_TRAP, NO_TRAP)];
        assert_eq!(traps, expected, "{:?}", logs.gear);
    });
}

//! Encodings, user mode, and the registers' accesses: sections 4, 7, 8 and 16 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::policy::Mode;

const SUPERVISOR_READ_WRITE: [u32; 6] = [CSR_PRIORITY, CSR_RESTARTS, CSR_BACKOFF, CSR_CONTEXT, CSR_TRAP, CSR_ENABLE];
const SUPERVISOR_READ_ONLY: [u32; 4] = [CSR_STACK, CSR_FRAMES, CSR_CONFLICT, CSR_WINNER];
const USER_READ_ONLY: [u32; 3] = [CSR_STATUS, CSR_SIZE, CSR_BEGIN_TIME];

/// One of each instruction; xrestart, xtest and xcas with registers of which none is the address.
fn instructions() -> Vec<u32> {
    let mut instructions = vec![
        Control::Begin.encode(S3, 0),
        XEND,
        Control::Restart.encode(0, S1),
        Control::TransactionId.encode(S3, 0),
        XPUSH,
        XPOP,
        XDROP,
    ];
    for (width, _) in Width::ALL {
        instructions.push(width.encode_test(S3, S0, S1));
        instructions.push(width.encode_compare_and_swap(S3, S0, S1, S1));
    }
    instructions
}

/// what the table of encodings does not name, or has a bit too many, is illegal, inside a transaction as outside.
#[test]
fn other_encodings_are_illegal() {
    let mut words = Vec::new();
    let controls = [Control::Begin, Control::End, Control::TransactionId, Control::Push, Control::Pop, Control::Drop];
    for control in controls {
        let word = control.encode(0, 0);
        // A bit of the immediate, at both of its ends; a source that there is none of.
        words.extend([word | 1 << 20, word | 1 << 31, word | S0 << 15]);
    }
    for control in [Control::End, Control::Restart, Control::Push, Control::Pop, Control::Drop] {
        words.push(control.encode(0, 0) | S3 << 7);
    }
    words.extend([Control::Restart.encode(0, S0) | 1 << 25, OPCODE_CUSTOM_0 | 7 << 12]);
    for (width, _) in Width::ALL {
        let (test, swap) = (width.encode_test(S3, S0, S1), width.encode_compare_and_swap(S3, S0, S1, S1));
        words.extend([test | 1 << 25, test | 1 << 31, swap | 1 << 25, swap | 1 << 26]);
        words.extend([test | 4 << 12, swap | 4 << 12]);
    }
    assert!(words.len() < 50);
    for in_transaction in [false, true] {
        let build = |bare: &mut Bare| {
            bare.load(S0, A);
            for word in &words {
                if in_transaction {
                    bare.begin(ZERO);
                }
                bare.trap(|bare| bare.push(*word));
                if in_transaction {
                    bare.resume();
                    bare.end();
                }
            }
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let expected: Vec<(u64, u64)> = words.iter().map(|word| illegal(*word)).collect();
            assert_eq!(logs.traps(words.len()), expected, "{:?} {in_transaction}", logs.gear);
        });
    }
}

/// user mode has nothing of the extension until `xenable` gives it, and the registers of S-mode never.
/// Among the latter is the priority register.
#[test]
fn user_mode_has_what_it_is_given() {
    let accesses = |registers: &[u32]| -> Vec<u32> {
        let both = |number: &u32| [csr(CSRRS, S3, *number, 0), csr(CSRRW, S3, *number, S1)];
        registers.iter().flat_map(both).collect()
    };
    let reads: Vec<u32> = USER_READ_ONLY.iter().map(|number| csr(CSRRS, S3, *number, 0)).collect();
    let supervisor = [accesses(&SUPERVISOR_READ_WRITE), accesses(&SUPERVISOR_READ_ONLY)].concat();
    let cases = [(0, instructions()), (0, reads), (0, supervisor.clone()), (XENABLE_USER, supervisor)];
    for (enable, words) in cases {
        let build = |bare: &mut Bare| {
            bare.load(S0, A);
            bare.load(S1, 5);
            bare.set_csr(CSR_ENABLE, enable);
            for word in &words {
                bare.trap(|bare| bare.user(|bare| bare.push(*word)));
            }
            bare.log_csr(CSR_PRIORITY);
            bare.log_csr(CSR_FRAMES);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let expected: Vec<(u64, u64)> = words.iter().map(|word| illegal(*word)).collect();
            assert_eq!(logs.traps(words.len()), expected, "{:?} xenable {enable}", logs.gear);
            let words: Vec<u64> = logs.words::<128>(0)[5 * words.len()..][..2].to_vec();
            assert_eq!(words, [0, 0], "{:?}", logs.gear);
        });
    }
}

/// with `xenable.U`, user mode runs transactions as S-mode does; what S-mode or a trap suspended it
/// leaves alone, and it drops nothing.
#[test]
fn user_mode_runs_transactions_when_it_may() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_ENABLE, u64::MAX);
        bare.log_csr(CSR_ENABLE);
        bare.trap(|bare| {
            bare.user(|bare| {
                let first = |bare: &mut Bare| {
                    bare.store(A, 1);
                    bare.test(S3, A, 1);
                    bare.swap(S4, B, 0, 2);
                    bare.read_csr(S5, CSR_SIZE);
                    bare.transaction_id(S6);
                    bare.suspend();
                    for (index, register) in [S3, S4, S5].into_iter().enumerate() {
                        bare.note(0, index as u64, register);
                    }
                    bare.note_csr(0, 3, CSR_STATUS);
                    bare.resume();
                    bare.restart(0x0900);
                };
                bare.attempt(S2, first, |_| ());
                bare.store(C, 3);
                bare.end();
                bare.read_csr(S7, CSR_BEGIN_TIME);
                bare.push(EBREAK);
            })
        });
        for word in [A, B, C] {
            bare.log_word(word);
        }
        bare.log(S2);
        // A frame of S-mode's, and one of a trap's.
        bare.suspend();
        bare.trap(|bare| bare.user(|bare| bare.resume()));
        bare.trap(|bare| bare.user(|bare| bare.push(XDROP)));
        bare.resume();
        bare.trap(|bare| {
            bare.user(|bare| {
                bare.begin(ZERO);
                bare.push(EBREAK);
            })
        });
        bare.trap(|bare| bare.user(|bare| bare.resume()));
        bare.resume();
        bare.end();
        // A frame of its own stays its own over a trap; dropping it is not allowed.
        bare.trap(|bare| {
            bare.user(|bare| {
                bare.begin(ZERO);
                bare.suspend();
                bare.push(XDROP);
            })
        });
        bare.trap(|bare| {
            bare.user(|bare| {
                bare.resume();
                bare.end();
                bare.push(EBREAK);
            })
        });
        bare.log_csr(CSR_FRAMES);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let gear = logs.gear;
        let state = XSTATUS_SUSPENDED | 1 << XSTATUS_DEPTH_SHIFT;
        assert_eq!(logs.notes(0), [1, SWAPPED, 2, state], "{gear:?}");
        let words: [u64; 41] = logs.words(0);
        assert_eq!(words[0], 1, "{gear:?}: xenable's other bits are read-only zero");
        assert_eq!(words[1], 3, "{gear:?}: the breakpoint");
        assert_eq!(words[6..10], [0, 0, 3, 0x0903], "{gear:?}");
        let traps: Vec<(u64, u64)> = words[10..40].chunks(5).map(|record| (record[0], record[1])).collect();
        assert_eq!(traps[..2], [illegal(XPOP), illegal(XDROP)], "{gear:?}");
        assert_eq!(traps[2].0, 3, "{gear:?}");
        assert_eq!(traps[3..5], [illegal(XPOP), illegal(XDROP)], "{gear:?}");
        assert_eq!((traps[5].0, words[40]), (3, 0), "{gear:?}");
    });
}

/// user mode makes at most 32 frames.
#[test]
fn user_mode_leaves_frames_for_handlers() {
    for frames in [31, 32] {
        let fill = |bare: &mut Bare| {
            bare.load(S4, frames);
            let again = bare.code.here();
            bare.suspend();
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
        };
        let build = |bare: &mut Bare| {
            bare.set_csr(CSR_ENABLE, XENABLE_USER);
            fill(bare);
            bare.trap(|bare| {
                bare.user(|bare| {
                    bare.begin(ZERO);
                    bare.push(EBREAK);
                })
            });
            bare.log_csr(CSR_FRAMES);
            if frames == 31 {
                // It was suspended by the trap.
                bare.resume();
                bare.end();
            }
            bare.trap(|bare| {
                bare.user(|bare| {
                    bare.suspend();
                    bare.push(EBREAK);
                })
            });
            bare.log_csr(CSR_FRAMES);
            // S-mode has its 64 all the same.
            bare.suspend();
            bare.begin(ZERO);
            bare.end();
            bare.log_csr(CSR_FRAMES);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let words: [u64; 13] = logs.words(0);
            let (begin, push) = ((words[0], words[5]), (words[6], words[11]));
            let expected = if frames == 31 { ((3, 32), (3, 32)) } else { ((2, 32), (2, 32)) };
            assert_eq!((begin, push), expected, "{:?}: {frames} frames", logs.gear);
            assert_eq!(words[12], 33, "{:?}", logs.gear);
        });
    }
}

/// read-only registers cannot be written; what only reads them may name them.
#[test]
fn read_only_registers_are_read_only() {
    let build = |bare: &mut Bare| {
        for number in SUPERVISOR_READ_ONLY.into_iter().chain(USER_READ_ONLY) {
            bare.trap(|bare| bare.push(csr(CSRRW, ZERO, number, ZERO)));
            bare.trap(|bare| bare.push(csr(CSRRS, S3, number, S1)));
            // CSRRCI with an immediate of 0.
            bare.trap(|bare| bare.push(csr(7, S3, number, 0)));
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        for (index, record) in logs.traps(21).into_iter().enumerate() {
            let expected = if index % 3 == 2 { NO_TRAP } else { 2 };
            assert_eq!(record.0, expected, "{:?}: {index}", logs.gear);
        }
    });
}

/// every register has its reset value when a hart starts, and when it is started again.
#[test]
fn registers_are_reset_when_a_hart_starts() {
    let log_all = |bare: &mut Bare| {
        for (number, _) in CSRS {
            bare.log_csr(number);
        }
        bare.transaction_id(T0);
        bare.log(T0);
    };
    let build = |bare: &mut Bare| {
        let other = bare.code.label();
        log_all(bare);
        for round in 1..=2 {
            bare.start_hart(1, other);
            bare.wait_for(FLAG, round);
            let again = bare.code.here();
            bare.sbi_quietly(SBI_HART, 2, &[1]);
            bare.load(T0, 1);
            bare.code.branch(1, A1, T0, again);
        }
        bare.finish();
        bare.code.bind(other);
        bare.begin_hart();
        // The second start logs behind the first.
        bare.load_word(S3, ANSWER);
        bare.push(add(LOG_POINTER, LOG_POINTER, S3));
        log_all(bare);
        bare.store(ANSWER, 8 * (CSRS.len() as u64 + 1));
        // Then everything is made different, as far as it can be without leaving frames behind.
        let first = |bare: &mut Bare| {
            bare.store(A, 1);
            bare.outside(|bare| {
                bare.begin(ZERO);
                bare.store(A, 1);
                bare.end();
            });
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        for number in SUPERVISOR_READ_WRITE {
            bare.set_csr(number, 3);
        }
        bare.load_word(S3, FLAG);
        bare.push(addi(S3, S3, 1));
        bare.load(T0, FLAG);
        bare.push(sd(S3, T0, 0));
        bare.sbi(SBI_HART, 1, &[]);
        bare.rest();
    };
    everywhere(2, build, |logs| {
        let reset: Vec<u64> = CSRS.iter().map(|(number, _)| if *number == CSR_STACK { u64::MAX } else { 0 }).collect();
        let expected = [reset, vec![0]].concat();
        assert_eq!(logs.words::<14>(0).to_vec(), expected, "{:?}: hart 0", logs.gear);
        let words: [u64; 28] = logs.words(1);
        assert_eq!(words[..14], expected, "{:?}: hart 1", logs.gear);
        assert_eq!(words[14..], expected, "{:?}: hart 1, started again", logs.gear);
    });
}

/// on a board without the extension its instructions and registers are illegal, in S-mode too.
#[test]
fn without_the_extension_nothing_of_it_exists() {
    let mut words = instructions();
    let registers = [&SUPERVISOR_READ_WRITE[..], &SUPERVISOR_READ_ONLY, &USER_READ_ONLY].concat();
    words.extend(registers.iter().map(|number| csr(CSRRS, S3, *number, 0)));
    words.extend(SUPERVISOR_READ_WRITE.iter().map(|number| csr(CSRRW, S3, *number, S1)));
    let build = |bare: &mut Bare| {
        bare.board.transactions.mode = Mode::None;
        bare.load(S0, A);
        bare.load(S1, 1);
        for word in &words {
            bare.trap(|bare| bare.push(*word));
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let expected: Vec<(u64, u64)> = words.iter().map(|word| illegal(*word)).collect();
        assert_eq!(logs.traps(words.len()), expected, "{:?}", logs.gear);
    });
}

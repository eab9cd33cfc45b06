//! Traps and the return from them: sections 7.9 and 7.10 of docs/xmetatm.md, and interrupted back-off (section 6).

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::*;
use concord_htm::manager::Manager;

/// exceptions and interrupts suspend the active transaction, and the handler is no part of it.
#[test]
fn a_trap_suspends() {
    let traps: [(Part, u64); 6] = [
        (&|bare| bare.push(EBREAK), 3),
        (&|bare| bare.push(0xffff_ffff), 2),
        (&|bare| bare.load_word(S3, NOWHERE), 5),
        (&|bare| bare.store(NOWHERE, 0), 7),
        (&|bare| bare.push(i_type(JALR, ZERO, 0, ZERO, 0)), 1),
        (&|bare| bare.set_bits(CSR_SSTATUS, SIE), INTERRUPT | 1),
    ];
    for (trap, cause) in traps {
        let build = |bare: &mut Bare| {
            bare.set_bits(CSR_SIP, SOFTWARE);
            bare.set_csr(CSR_SIE, SOFTWARE);
            bare.begin(ZERO);
            bare.transaction_id(S3);
            bare.begin(ZERO);
            bare.store(A, 1);
            bare.trap(trap);
            bare.transaction_id(T0);
            bare.log(T0);
            for number in [CSR_STATUS, CSR_SIZE, CSR_FRAMES, CSR_TRAP] {
                bare.log_csr(number);
            }
            bare.store(B, 2);
            bare.resume();
            bare.transaction_id(S4);
            bare.read_csr(S5, CSR_SIZE);
            bare.end();
            bare.end();
            bare.push(r_type(OP, S4, 0, S4, S3, 0x20));
            bare.log(S4);
            bare.log(S5);
            bare.log_word(A);
            bare.log_word(B);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let words: [u64; 14] = logs.words(0);
            assert_eq!(words[0], cause, "{:?}", logs.gear);
            let state = XSTATUS_SUSPENDED | 2 << XSTATUS_DEPTH_SHIFT;
            assert_eq!(words[5..], [0, state, 1, 1, XTRAP_PREVIOUS, 0, 1, 1, 2], "{:?}: {cause:#x}", logs.gear);
        });
    }
}

/// a trap outside a transaction pushes nothing and clears PT, whatever is suspended.
#[test]
fn a_trap_outside_suspends_nothing() {
    let build = |bare: &mut Bare| {
        for suspended in [false, true] {
            if suspended {
                bare.begin(ZERO);
                bare.suspend();
            }
            bare.set_csr(CSR_TRAP, u64::MAX);
            bare.log_csr(CSR_TRAP);
            bare.trap(|bare| bare.push(EBREAK));
            bare.log_csr(CSR_TRAP);
            bare.log_csr(CSR_FRAMES);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 16] = logs.words(0);
        assert_eq!([words[0], words[6], words[7]], [1, 0, 0], "{:?}", logs.gear);
        assert_eq!([words[8], words[14], words[15]], [1, 0, 1], "{:?}", logs.gear);
    });
}

/// what faults stores nothing, not even its part that does not fault, and joins no set.
#[test]
fn a_faulting_access_has_no_part_in_the_transaction() {
    const PATTERN: u64 = 0x8877_6655_4433_2211;
    let accesses: [(Part, u64); 10] = [
        // The last words of a page whose successor is read-only, and absent.
        (&|bare| bare.push(sd(S1, S0, -4)), 15),
        (&|bare| bare.push(sd(S1, S4, -4)), 15),
        (&|bare| bare.push(ld(S5, S4, -4)), 13),
        (&|bare| bare.push(sd(S1, S0, 0)), 15),
        (&|bare| bare.push(amo_add(S5, S0, S1)), 15),
        (&|bare| bare.push(lr(S5, S4)), 13),
        (&|bare| bare.push(Width::Double.encode_test(S5, S4, S1)), 13),
        (&|bare| bare.push(Width::Double.encode_compare_and_swap(S5, S0, S1, S1)), 15),
        (
            &|bare| {
                bare.push(addi(S0, S0, -4));
                bare.push(amo_add(S5, S0, S1));
            },
            6,
        ),
        (
            &|bare| {
                bare.push(addi(S0, S0, -4));
                bare.push(Width::Double.encode_test(S5, S0, S1));
            },
            4,
        ),
    ];
    for (index, (access, cause)) in accesses.into_iter().enumerate() {
        let build = |bare: &mut Bare| {
            bare.map(0, READ | WRITE);
            bare.map(1, READ);
            bare.translate();
            bare.load(S0, WINDOW + 0x1000);
            bare.load(S1, PATTERN);
            bare.load(S4, WINDOW + 0x2000);
            bare.begin(ZERO);
            bare.store(A, 1);
            bare.trap(access);
            bare.log_csr(CSR_SIZE);
            bare.resume();
            bare.end();
            bare.log_word(DATA + 0xff8);
            bare.log_word(DATA + 0x1000);
            bare.log_word(DATA + 0x1ff8);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let words: [u64; 9] = logs.words(0);
            assert_eq!(words[0], cause, "{:?}: access {index}", logs.gear);
            assert_eq!(words[5..], [1, 0, 0, 0], "{:?}: access {index}", logs.gear);
        });
    }
}

/// it makes nobody lose either, though its first part alone would have won.
#[test]
fn a_faulting_access_makes_nobody_lose() {
    for in_transaction in [false, true] {
        let first = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.translate();
            bare.load(S0, WINDOW + 0x1000);
            if in_transaction {
                bare.begin(ZERO);
            }
            bare.trap(|bare| bare.push(sd(S0, S0, -4)));
            if in_transaction {
                bare.resume();
                bare.end();
            }
            bare.store(ANSWER, 1);
            bare.wait_for(FLAG, 2);
        };
        let second = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(DATA + 0xff8, 5);
                bare.outside(|bare| bare.store(FLAG, 1));
                bare.poll(ANSWER, 1);
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_word(DATA + 0xff8);
            bare.store(FLAG, 2);
        };
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = Manager::RequesterWins;
            bare.map(0, READ | WRITE);
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            assert_eq!(logs.traps(1), [(15, WINDOW + 0x1000)], "{:?}", logs.gear);
            assert_eq!(logs.words::<2>(1), [0, 5], "{:?}: {in_transaction}", logs.gear);
        });
    }
}

/// the checkpoint is that of the begin, whatever traps wrote into the same registers later; `sret`
/// resumes, clears PT, and returns.
#[test]
fn a_trap_leaves_the_checkpoint_alone() {
    let csrs = [CSR_SEPC, CSR_SCAUSE, CSR_STVAL, CSR_SSTATUS];
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_SEPC, 0x1234);
        bare.set_csr(CSR_SCAUSE, 1);
        bare.set_csr(CSR_STVAL, 2);
        bare.set_csr(CSR_SSTATUS, SUM | 1 << 13);
        let first = |bare: &mut Bare| {
            bare.store(A, 1);
            bare.trap(|bare| bare.push(EBREAK));
            bare.return_here();
            bare.outside(|bare| {
                bare.note_csr(0, 0, CSR_STATUS);
                bare.note_csr(0, 1, CSR_TRAP);
                bare.note_csr(0, 2, CSR_FRAMES);
            });
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        for (index, number) in csrs.into_iter().enumerate() {
            bare.read_csr(S3 + index as u32, number);
        }
        bare.end();
        for (index, _) in csrs.iter().enumerate() {
            bare.log(S3 + index as u32);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let [state, trap, frames] = logs.notes(0);
        // Noted with the transaction suspended once more, in a frame of its own.
        assert_eq!([state, trap, frames], [XSTATUS_SUSPENDED | 1 << XSTATUS_DEPTH_SHIFT, 0, 1], "{:?}", logs.gear);
        assert_eq!(logs.words::<4>(0), [0x1234, 1, 2, SUM | 1 << 13 | 2 << 32], "{:?}", logs.gear);
    });
}

/// `sret` with PT = 0 goes on in the active transaction, and leaves suspended ones alone.
#[test]
fn a_return_without_pt_leaves_transactions_alone() {
    let build = |bare: &mut Bare| {
        bare.begin(ZERO);
        bare.suspend();
        bare.set_bits(CSR_SSTATUS, SPP);
        bare.return_here();
        bare.log_csr(CSR_FRAMES);
        bare.begin(ZERO);
        bare.begin(ZERO);
        bare.store(A, 1);
        bare.set_bits(CSR_SSTATUS, SPP);
        bare.return_here();
        bare.read_csr(S3, CSR_STATUS);
        bare.read_csr(S4, CSR_FRAMES);
        bare.end();
        bare.end();
        bare.resume();
        bare.end();
        bare.log(S3);
        bare.log(S4);
        bare.log_word(A);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let state = XSTATUS_ACTIVE | 2 << XSTATUS_DEPTH_SHIFT;
        assert_eq!(logs.words::<4>(0), [1, state, 1, 1], "{:?}", logs.gear);
    });
}

/// with PT = 1 `sret` drops an empty frame, and returns as ever.
#[test]
fn a_return_with_pt_drops_an_empty_frame() {
    let build = |bare: &mut Bare| {
        bare.suspend();
        bare.set_csr(CSR_TRAP, 1);
        bare.clear_bits(CSR_SSTATUS, SIE);
        bare.set_bits(CSR_SSTATUS, SPP | SPIE);
        bare.return_here();
        bare.log_csr(CSR_FRAMES);
        bare.log_csr(CSR_TRAP);
        bare.transaction_id(T0);
        bare.log(T0);
        bare.read_csr(T0, CSR_SSTATUS);
        bare.push(i_type(OP_IMM, T0, 7, T0, (SIE | SPIE) as i64));
        bare.log(T0);
        bare.finish();
    };
    everywhere(1, build, |logs| assert_eq!(logs.words::<4>(0), [0, 0, 0, SIE | SPIE], "{:?}", logs.gear));
}

/// `sret` of a transaction that lost meanwhile restarts it, with every register of the checkpoint.
#[test]
fn a_return_to_a_loser_restarts_it() {
    for trap_before in [0, 1] {
        let build = |bare: &mut Bare| {
            bare.set_csr(CSR_TRAP, trap_before);
            bare.set_csr(CSR_SEPC, 0x1234);
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.trap(|bare| bare.push(EBREAK));
                bare.store(A, 6);
                bare.return_here();
                // Not reached.
                bare.suspend();
                bare.load(T0, 1);
                bare.note(0, 0, T0);
                bare.resume();
                bare.spin();
            };
            bare.attempt(S2, first, |_| ());
            for (index, number) in [CSR_TRAP, CSR_SEPC, CSR_FRAMES].into_iter().enumerate() {
                bare.read_csr(S3 + index as u32, number);
            }
            bare.end();
            for register in [S2, S3, S4, S5] {
                bare.log(register);
            }
            bare.log_word(A);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            assert_eq!(logs.note(0, 0), 0, "{:?}", logs.gear);
            let expected = [NONTRANSACTIONAL, trap_before, 0x1234, 0, 6];
            assert_eq!(logs.words::<5>(0), expected, "{:?}", logs.gear);
        });
    }
}

/// with PT = 1 `sret` is illegal where a transaction is active, and where there is no frame.
#[test]
fn a_return_with_pt_and_nothing_to_resume_is_illegal() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_TRAP, 1);
        bare.trap(|bare| bare.push(SRET));
        bare.suspend();
        bare.begin(ZERO);
        bare.set_csr(CSR_TRAP, 1);
        bare.trap(|bare| bare.push(SRET));
        bare.log_csr(CSR_FRAMES);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.traps(2), [illegal(SRET); 2], "{:?}", logs.gear);
        assert_eq!(logs.words::<11>(0)[10], 2, "{:?}", logs.gear);
    });
}

/// U-mode has no `sret`, whatever PT says and `xenable` allows.
#[test]
fn user_mode_does_not_return() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_ENABLE, XENABLE_USER);
        for suspended in [false, true] {
            bare.trap(|bare| {
                bare.user(|bare| {
                    bare.begin(ZERO);
                    if suspended {
                        bare.suspend();
                    }
                    bare.push(SRET);
                })
            });
            bare.log_csr(CSR_FRAMES);
            bare.resume();
            bare.end();
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 12] = logs.words(0);
        for record in words.chunks(6) {
            assert_eq!((record[0], record[1]), illegal(SRET), "{:?}", logs.gear);
            assert_eq!(record[5], 1);
        }
    });
}

/// a system call served inside the user's transaction: part of it when it commits, and gone with it, back to
/// U-mode, when it does not.
#[test]
fn a_system_call_may_be_part_of_the_users_transaction() {
    let build = |bare: &mut Bare| {
        let (kernel, user_goes_on) = (bare.code.label(), bare.code.label());
        bare.set_csr(CSR_ENABLE, XENABLE_USER);
        bare.load(S3, 1);
        bare.code.jump(28, kernel);
        // The handler comes here: by the first call in the transaction, and by the second outside.
        let over = bare.code.label();
        bare.code.bind(kernel);
        bare.load_address(28, over);
        bare.user(|bare| {
            bare.begin(S2);
            bare.store(A, 1);
            bare.push(ECALL);
            bare.code.bind(user_goes_on);
            bare.store(C, 3);
            bare.end();
            bare.push(EBREAK);
        });
        bare.code.bind(over);
        let finished = bare.code.label();
        bare.read_csr(S4, CSR_SCAUSE);
        bare.load(S5, 3);
        bare.code.branch(0, S4, S5, finished);
        bare.note(0, 0, S4);
        bare.note_csr(0, 1, CSR_TRAP);
        bare.set_csr(CSR_TRAP, 0);
        bare.resume();
        bare.store(B, 2);
        // The first time it restarts, which the user finds in S2.
        let serve = bare.code.label();
        bare.code.branch(1, S2, ZERO, serve);
        bare.restart(0x0700);
        bare.code.bind(serve);
        bare.read_csr(S6, CSR_SEPC);
        bare.push(addi(S6, S6, 4));
        bare.csrw(CSR_SEPC, S6);
        bare.clear_bits(CSR_SSTATUS, SPP);
        bare.push(SRET);
        bare.code.bind(finished);
        bare.push(addi(LOG_POINTER, LOG_POINTER, 40));
        bare.log(S2);
        for word in [A, B, C] {
            bare.log_word(word);
        }
        bare.log_csr(CSR_FRAMES);
        bare.log_csr(CSR_RESTARTS);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.notes(0), [8, 1], "{:?}: the call", logs.gear);
        let words: Vec<u64> = logs.words::<60>(0).to_vec();
        let begin = words.iter().position(|word| *word == 0x0703).expect("the status of the restart");
        assert_eq!(words[begin + 1..begin + 6], [1, 2, 3, 0, 1], "{:?}", logs.gear);
        // U-mode: the breakpoint behind the commit came from there.
        let breakpoint = words.chunks(5).find(|record| record[0] == 3).expect("the user's breakpoint");
        assert_eq!(breakpoint[3] & SPP, 0, "{:?}", logs.gear);
    });
}

/// the interrupt-enable bit goes back with a restart, and what is pending is taken then.
#[test]
fn a_restart_puts_the_interrupt_enable_bit_back() {
    for enabled in [false, true] {
        let build = |bare: &mut Bare| {
            bare.set_csr(CSR_SIE, SOFTWARE);
            bare.trap(|bare| {
                if enabled {
                    bare.set_bits(CSR_SSTATUS, SIE);
                }
                let first = |bare: &mut Bare| {
                    if enabled {
                        bare.clear_bits(CSR_SSTATUS, SIE);
                    } else {
                        bare.set_bits(CSR_SSTATUS, SIE);
                        bare.clear_bits(CSR_SSTATUS, SIE);
                        bare.set_bits(CSR_SSTATUS, SIE);
                    }
                    bare.outside(|bare| {
                        bare.clear_bits(CSR_SSTATUS, SIE);
                        bare.set_bits(CSR_SIP, SOFTWARE);
                    });
                    bare.restart(0);
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
            });
            bare.log(S2);
            bare.log_csr(CSR_FRAMES);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let words: [u64; 7] = logs.words(0);
            if enabled {
                assert_eq!((words[0], words[5], words[6]), (INTERRUPT | 1, EXPLICIT, 1), "{:?}", logs.gear);
            } else {
                assert_eq!((words[0], words[5], words[6]), (NO_TRAP, EXPLICIT, 0), "{:?}", logs.gear);
            }
        });
    }
}

/// an interrupt ends a back-off: it finds the address behind the begin and the transaction suspended and
/// stalled, and what was left of the back-off is dropped.
#[test]
fn an_interrupt_ends_a_back_off() {
    let first = |bare: &mut Bare| {
        bare.set_csr(CSR_SIE, TIMER);
        bare.load(S9, 0);
        bare.trap(|bare| {
            bare.read_csr(S3, CSR_TIME);
            bare.push(addi(S3, S3, 400));
            bare.csrw(CSR_STIMECMP, S3);
            bare.set_bits(CSR_SSTATUS, SIE);
            let here = bare.code.label();
            bare.code.jump(S6, here);
            bare.code.bind(here);
            bare.begin(S2);
            let restarted = bare.code.label();
            bare.code.branch(1, S2, ZERO, restarted);
            bare.store(A, 5);
            bare.tell_and_spin(1);
            bare.code.bind(restarted);
            bare.read_csr(S8, CSR_CYCLE);
            bare.end();
        });
        let done = bare.code.label();
        bare.code.branch(1, S9, ZERO, done);
        bare.read_csr(S4, CSR_TIME);
        bare.read_csr(S7, CSR_CYCLE);
        bare.log_csr(CSR_STATUS);
        bare.log(S3);
        bare.log(S4);
        bare.log(S6);
        bare.log_csr(CSR_BACKOFF);
        bare.log_csr(CSR_BEGIN_TIME);
        bare.set_csr(CSR_STIMECMP, u64::MAX);
        bare.load(S9, 1);
        // Back to behind the begin; the body of the trap ends without one then.
        bare.push(SRET);
        bare.code.bind(done);
        bare.log(S7);
        bare.log(S8);
        bare.log(S2);
    };
    let second = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.store(A, 6);
    };
    let build = |bare: &mut Bare| {
        bare.board.transactions.backoff_base_cycles = 1 << 20;
        on_harts(&[&first, &second])(bare);
    };
    everywhere(2, build, |logs| {
        let words: [u64; 19] = logs.words(0);
        let gear = logs.gear;
        assert_eq!(words[0], INTERRUPT | 5, "{gear:?}");
        let [state, timer, taken, begin, backed_off, begin_cycle] = words[5..11].try_into().unwrap();
        assert_eq!(words[2], begin + 4, "{gear:?}: sepc");
        let stalled = XSTATUS_SUSPENDED | XSTATUS_STALLED | 1 << XSTATUS_DEPTH_SHIFT;
        assert_eq!(without_overflow(state), stalled | NONTRANSACTIONAL << XSTATUS_STATUS_SHIFT, "{gear:?}");
        assert!((timer..timer + 20).contains(&taken), "{gear:?}: {timer} {taken}");
        let [handler_cycle, again_cycle, status] = words[16..].try_into().unwrap();
        assert!(backed_off > 0 && backed_off <= handler_cycle - begin_cycle, "{gear:?}: xbackoff {backed_off}");
        assert!(again_cycle - handler_cycle < 20_000, "{gear:?}: {handler_cycle} {again_cycle}");
        assert_eq!(status, NONTRANSACTIONAL, "{gear:?}");
    });
}

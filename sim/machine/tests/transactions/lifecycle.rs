//! Begin, commit, nest and restart: sections 5 to 7.4 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::hint::Hint;
use concord_abi::htm::*;

/// [X-99]: a transaction begins with 0, an id and empty sets, sees its own stores, and leaves
/// nothing but its stores when it commits.
#[test]
fn a_transaction_begins_and_commits() {
    let build = |bare: &mut Bare| {
        bare.load(S2, 77);
        bare.read_csr(S8, CSR_CYCLE);
        bare.begin(S2);
        bare.read_csr(S9, CSR_CYCLE);
        bare.read_csr(S3, CSR_STATUS);
        bare.read_csr(S4, CSR_SIZE);
        bare.transaction_id(S5);
        bare.store(A, 5);
        bare.load_word(S6, A);
        bare.read_csr(S7, CSR_BEGIN_TIME);
        bare.end();
        for register in [S2, S3, S4, S5, S6] {
            bare.log(register);
        }
        bare.log_csr(CSR_STATUS);
        bare.log_csr(CSR_SIZE);
        bare.log_csr(CSR_FRAMES);
        bare.transaction_id(T0);
        bare.log(T0);
        bare.log_word(A);
        for register in [S8, S7, S9] {
            bare.log(register);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 13] = logs.words(0);
        assert_eq!(words[..3], [0, XSTATUS_ACTIVE | 1 << XSTATUS_DEPTH_SHIFT, 0], "{:?}", logs.gear);
        assert_ne!(words[3], 0);
        assert_eq!(words[4..10], [5, 0, 0, 0, 0, 5], "{:?}", logs.gear);
        assert!(words[10] < words[11] && words[11] <= words[12], "{:?}: begin time {words:?}", logs.gear);
    });
}

/// the status word of `xrestart` is made of its operand, at whatever depth, and nothing backs off.
#[test]
fn an_explicit_restart_gives_its_cause_and_code() {
    let operands = [0, 3, 4, 0x0704, 0xff05, 0xffff_ffff_ffff_0104, 0xffff_ffff_ffff_ffff, 0x1_0000_0004];
    let build = |bare: &mut Bare| {
        for operand in operands {
            for depth in [1, 3] {
                let first = |bare: &mut Bare| {
                    for _ in 1..depth {
                        bare.begin(S3);
                    }
                    bare.restart(operand);
                };
                bare.attempt(S2, first, |_| ());
                bare.read_csr(S3, CSR_STATUS);
                bare.end();
                bare.log(S2);
                bare.log(S3);
            }
        }
        bare.log_csr(CSR_BACKOFF);
        bare.log_csr(CSR_RESTARTS);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 34] = logs.words(0);
        for (index, pair) in words[..32].chunks(2).enumerate() {
            let operand = operands[index / 2];
            let cause = if operand & 0xff == 4 { NEED_EXCLUSIVE } else { EXPLICIT };
            let status = operand & 0xff00 | cause;
            let state = XSTATUS_ACTIVE | 1 << XSTATUS_DEPTH_SHIFT | status << XSTATUS_STATUS_SHIFT;
            assert_eq!(pair, [status, state], "{:?}: operand {operand:#x}", logs.gear);
        }
        assert_eq!(words[32..], [0, 16]);
    });
}

/// every register of the checkpoint comes back, and no other.
#[test]
fn a_restart_puts_the_registers_back() {
    let csrs = [CSR_SSTATUS, CSR_SIE, CSR_SSCRATCH, CSR_SEPC, CSR_SCAUSE, CSR_STVAL, CSR_FCSR, CSR_TRAP];
    let before = [SUM | SPIE | SPP | 3 << 13, TIMER, 0x1234, 0x8000_0010, 7, 0x77, 0xa1, 1];
    let inside = [MXR | 3 << 13, SOFTWARE | EXTERNAL, 0x4321, 0x8000_0020, 8, 0x88, 0x42, 0];
    let value = |register: u32| 0x1111_0000_0000_0000 + u64::from(register);
    let build = |bare: &mut Bare| {
        bare.push(addi(1, LOG_POINTER, 0));
        bare.set_csr(CSR_RESTARTS, 40);
        for (number, value) in csrs.into_iter().zip(before) {
            bare.set_csr(number, value);
        }
        for register in 0..32 {
            bare.load(T0, value(register) * 3);
            // FMV.D.X
            bare.push(r_type(OP_FP, register, 0, T0, 0, 0x79));
        }
        // The floating-point registers' state is one of sstatus' fields, and dirty by now.
        for register in 2..31 {
            bare.load(register, value(register));
        }
        let (restarted, done) = (bare.code.label(), bare.code.label());
        bare.begin(S2);
        bare.code.branch(1, S2, ZERO, restarted);
        for (number, value) in csrs.into_iter().zip(inside) {
            bare.set_csr(number, value);
        }
        bare.set_csr(CSR_BACKOFF, 1000);
        for register in 0..32 {
            bare.push(r_type(OP_FP, register, 0, ZERO, 0, 0x79));
        }
        for register in 1..32 {
            bare.load(register, 0xdead);
        }
        bare.push(Control::Begin.encode(S3, 0));
        bare.push(Control::Restart.encode(0, T0));
        bare.code.jump(0, done);
        bare.code.bind(restarted);
        for register in 1..32 {
            bare.push(sd(register, LOG_POINTER, 8 * i64::from(register)));
        }
        for register in 0..32 {
            bare.push(s_type(STORE_FP, 3, LOG_POINTER, register, 256 + 8 * i64::from(register)));
        }
        bare.push(addi(LOG_POINTER, LOG_POINTER, 512));
        for number in csrs {
            bare.log_csr(number);
        }
        bare.log_csr(CSR_BACKOFF);
        bare.log_csr(CSR_RESTARTS);
        bare.end();
        bare.code.bind(done);
        bare.set_csr(CSR_SIE, 0);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 74] = logs.words(0);
        for register in 2..31 {
            // The operand of the restart was 0xdead.
            let expected = if register == S2 { 0xde00 | EXPLICIT } else { value(register) };
            assert_eq!(words[register as usize], expected, "{:?}: x{register}", logs.gear);
        }
        assert_eq!(words[1], words[31], "{:?}: the log's pointer", logs.gear);
        for register in 0..32 {
            assert_eq!(words[32 + register as usize], value(register) * 3, "{:?}: f{register}", logs.gear);
        }
        let read_only = 1 << 63 | 2 << 32;
        assert_eq!(words[64] & !read_only, before[0], "{:?}: sstatus", logs.gear);
        assert_eq!(words[65..72], before[1..], "{:?}", logs.gear);
        assert_eq!(words[72..], [1000, 41], "{:?}: xbackoff and xrestarts", logs.gear);
    });
}

/// the counters run on over a restart.
#[test]
fn time_does_not_go_back() {
    let counters = [CSR_CYCLE, CSR_TIME, CSR_INSTRET];
    let build = |bare: &mut Bare| {
        let first = |bare: &mut Bare| {
            bare.load(S4, 500);
            let again = bare.code.here();
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
            bare.outside(|bare| {
                for (index, counter) in counters.into_iter().enumerate() {
                    bare.note_csr(0, index as u64, counter);
                }
            });
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        for counter in counters {
            bare.log_csr(counter);
        }
        bare.end();
        bare.finish();
    };
    everywhere(1, build, |logs| {
        for (index, counter) in logs.words::<3>(0).into_iter().enumerate() {
            let before = logs.note(0, index);
            assert!(before > 0 && counter >= before, "{:?}: {before} {counter}", logs.gear);
        }
    });
}

/// whatever stored, in whatever width, every word is what it was.
#[test]
fn a_restart_puts_memory_back() {
    let pattern = |index: u64| 0x0101_0101_0101_0101 * (index + 1);
    const WORDS: u64 = 40;
    let build = |bare: &mut Bare| {
        for index in 0..WORDS {
            bare.set_word(A + 8 * index, pattern(index));
        }
        let first = |bare: &mut Bare| {
            bare.load(S3, A);
            bare.load(S4, 0xfeed_f00d_dead_beef);
            for (offset, width) in [(0, 0), (10, 1), (20, 2), (24, 3)] {
                bare.push(s_type(STORE, width, S3, S4, offset));
            }
            // Misaligned: over two words, over two lines, and each once more.
            for (offset, width) in [(37, 3), (61, 2), (60, 3), (124, 3), (60, 3), (127, 1)] {
                bare.push(s_type(STORE, width, S3, S4, offset));
            }
            bare.push(addi(S5, S3, 136));
            bare.push(lr(T0, S5));
            bare.push(sc(T0, S5, S4));
            bare.push(addi(S5, S3, 144));
            bare.push(amo_add(T0, S5, S4));
            // AMOSWAP.W of the word's upper half.
            bare.push(addi(S5, S3, 156));
            bare.push(r_type(AMO, T0, 2, S5, S4, 0x01 << 2));
            bare.push(ld(T1, S3, 160));
            bare.push(addi(S5, S3, 160));
            bare.push(Width::Double.encode_compare_and_swap(T0, S5, T1, S4));
            bare.push(addi(S5, S3, 170));
            bare.push(i_type(LOAD, T1, 1, S5, 0));
            bare.push(Width::Half.encode_compare_and_swap(T0, S5, T1, S4));
            // FMV.D.X, FSD and FSW.
            bare.push(r_type(OP_FP, 1, 0, S4, 0, 0x79));
            bare.push(s_type(STORE_FP, 3, S3, 1, 184));
            bare.push(s_type(STORE_FP, 2, S3, 1, 196));
            // C.SD x13, 0(x8), and the word behind it twice.
            bare.push(addi(S0, S3, 208));
            bare.push(addi(13, S4, 0));
            bare.code.push_compressed(0xe014);
            bare.code.push_compressed(0x0001);
            bare.push(sd(S4, S3, 216));
            bare.push(sd(ZERO, S3, 216));
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.end();
        bare.load(S3, A);
        for index in 0..WORDS {
            bare.push(ld(T0, S3, 8 * index as i64));
            bare.log(T0);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; WORDS as usize] = logs.words(0);
        for (index, word) in words.into_iter().enumerate() {
            assert_eq!(word, pattern(index as u64), "{:?}: word {index}", logs.gear);
        }
    });
}

/// an inner begin is counted and nothing more, and so is an inner end.
#[test]
fn nesting_is_flat() {
    let build = |bare: &mut Bare| {
        bare.load(S4, 1);
        let first = |bare: &mut Bare| {
            bare.load(S4, 2);
            bare.store(A, 2);
            bare.load(S3, 99);
            bare.begin(S3);
            bare.load(S4, 3);
            bare.store(A, 3);
            bare.outside(|bare| {
                bare.note(0, 0, S3);
                bare.note_csr(0, 1, CSR_STATUS);
            });
            bare.end();
            bare.outside(|bare| {
                bare.note_csr(0, 2, CSR_STATUS);
                bare.transaction_id(T0);
            });
            // The inner end committed nothing, and the inner begin took no checkpoint.
            bare.restart(0);
        };
        bare.attempt(S2, first, |_| ());
        bare.load_word(S5, A);
        bare.end();
        for register in [S2, S4, S5] {
            bare.log(register);
        }
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let depth = |depth: u64| XSTATUS_SUSPENDED | depth << XSTATUS_DEPTH_SHIFT;
        assert_eq!(logs.notes(0), [0, depth(2), depth(1)], "{:?}", logs.gear);
        assert_eq!(logs.words::<3>(0), [EXPLICIT, 1, 0], "{:?}", logs.gear);
    });
}

/// depth 255 is the deepest; one more restarts the transaction.
#[test]
fn nesting_ends_at_depth_255() {
    for depth in [255, 256] {
        let build = |bare: &mut Bare| {
            let nest = |bare: &mut Bare| {
                bare.store(A, 1);
                bare.load(S4, depth - 1);
                let again = bare.code.here();
                bare.begin(S3);
                bare.push(addi(S4, S4, -1));
                bare.code.branch(1, S4, ZERO, again);
            };
            bare.attempt(S2, nest, |_| ());
            bare.load_word(S6, A);
            bare.read_csr(S5, CSR_STATUS);
            // Out again: as many ends as there are depths.
            bare.push(i_type(OP_IMM, S4, 5, S5, 8));
            bare.push(i_type(OP_IMM, S4, 7, S4, 0xff));
            let again = bare.code.here();
            bare.transaction_id(S7);
            bare.end();
            bare.push(addi(S4, S4, -1));
            bare.code.branch(1, S4, ZERO, again);
            bare.transaction_id(S8);
            for register in [S2, S5, S6, S8] {
                bare.log(register);
            }
            bare.log_csr(CSR_BACKOFF);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let state = |depth: u64, status: u64| {
                XSTATUS_ACTIVE | depth << XSTATUS_DEPTH_SHIFT | status << XSTATUS_STATUS_SHIFT
            };
            let expected = match depth {
                255 => [0, state(255, 0), 1, 0, 0],
                _ => [TOO_DEEP, state(1, TOO_DEEP), 0, 0, 0],
            };
            assert_eq!(logs.words::<5>(0), expected, "{:?}: {depth}", logs.gear);
        });
    }
}

/// an id is given once, on whatever hart, and a transaction keeps it, and its begin time, over restarts.
#[test]
fn ids_are_given_once() {
    let transactions = |bare: &mut Bare| {
        for _ in 0..3 {
            let first = |bare: &mut Bare| {
                bare.transaction_id(S4);
                bare.read_csr(S5, CSR_BEGIN_TIME);
                bare.outside(|bare| {
                    bare.log(S4);
                    bare.log(S5);
                });
                bare.restart(0);
            };
            bare.attempt(S2, first, |_| ());
            bare.transaction_id(S4);
            bare.read_csr(S5, CSR_BEGIN_TIME);
            bare.end();
            // The log's pointer went back with the restart.
            bare.push(addi(LOG_POINTER, LOG_POINTER, 16));
            bare.log(S4);
            bare.log(S5);
        }
    };
    let first = |bare: &mut Bare| {
        transactions(bare);
        bare.wait_for(FLAG, 1);
    };
    let second = |bare: &mut Bare| {
        transactions(bare);
        bare.store(FLAG, 1);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        let mut ids = Vec::new();
        for hart in 0..2 {
            for record in logs.words::<12>(hart).chunks(4) {
                assert_eq!(record[..2], record[2..], "{:?}: id and begin time", logs.gear);
                ids.push(record[0]);
            }
        }
        ids.push(0);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 7, "{:?}: {ids:?}", logs.gear);
    });
}

/// what needs a transaction is illegal without an active one, also when some are suspended.
#[test]
fn what_needs_a_transaction_is_illegal_outside() {
    let restart = Control::Restart.encode(0, S3);
    let build = |bare: &mut Bare| {
        bare.trap(|bare| bare.end());
        bare.trap(|bare| bare.push(restart));
        bare.trap(|bare| bare.resume());
        bare.begin(ZERO);
        bare.suspend();
        bare.trap(|bare| bare.end());
        bare.trap(|bare| bare.push(restart));
        bare.transaction_id(T0);
        bare.log(T0);
        bare.resume();
        // And what must have none.
        bare.trap(|bare| bare.resume());
        bare.log_csr(CSR_FRAMES);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let outside = [XEND, restart, XPOP, XEND, restart].map(illegal);
        assert_eq!(logs.traps(5), outside, "{:?}", logs.gear);
        let words: [u64; 32] = logs.words(0);
        assert_eq!(words[25], 0, "{:?}: no id while suspended", logs.gear);
        assert_eq!((words[26], words[27]), illegal(XPOP), "{:?}", logs.gear);
        assert_eq!(words[31], 1, "{:?}: the trap suspended it", logs.gear);
    });
}

/// x0 takes a result and drops it.
#[test]
fn results_may_be_dropped() {
    let build = |bare: &mut Bare| {
        let done = bare.code.label();
        bare.begin(ZERO);
        bare.push(addi(S2, ZERO, 0));
        bare.read_csr(S3, CSR_RESTARTS);
        bare.code.branch(1, S3, ZERO, done);
        bare.transaction_id(ZERO);
        bare.test(ZERO, A, 0);
        bare.swap(ZERO, B, 0, 7);
        bare.outside(|bare| bare.note_csr(0, 0, CSR_SIZE));
        bare.restart(0x0500);
        bare.code.bind(done);
        bare.read_csr(S4, CSR_STATUS);
        bare.swap(ZERO, B, 0, 8);
        bare.end();
        for register in [S2, S3, S4] {
            bare.log(register);
        }
        bare.log_word(B);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.note(0, 0), 2, "{:?}: the words that were read and swapped", logs.gear);
        let state = XSTATUS_ACTIVE | 1 << XSTATUS_DEPTH_SHIFT | (0x0500 | EXPLICIT) << XSTATUS_STATUS_SHIFT;
        assert_eq!(logs.words::<4>(0), [0, 1, state, 8], "{:?}", logs.gear);
    });
}

/// a change of gear inside a transaction leaves its sets, its undo log and its checkpoint.
#[test]
fn a_transaction_outlives_a_change_of_gear() {
    let hint = |hint: Hint| i_type(OP_IMM, 0, 2, ZERO, hint as i64);
    for gears in [[Hint::GearTimed, Hint::GearFunctional], [Hint::GearFunctional, Hint::GearTimed]] {
        let first = |bare: &mut Bare| {
            bare.push(hint(gears[1]));
            let first = |bare: &mut Bare| {
                bare.store(A, 5);
                bare.load_word(S3, B);
                bare.push(hint(gears[0]));
                bare.load_word(S4, A);
                bare.store(A, 6);
                bare.store(C, 6);
                bare.read_csr(S5, CSR_SIZE);
                bare.push(hint(gears[1]));
                bare.outside(|bare| {
                    bare.note(0, 0, S4);
                    bare.note(0, 1, S5);
                });
                bare.tell_and_spin(1);
            };
            bare.attempt(S2, first, |bare| bare.push(hint(gears[0])));
            bare.load_word(S6, A);
            bare.store(C + 8, 7);
            bare.end();
            bare.log(S2);
            bare.log(S6);
            for word in [A, C, C + 8] {
                bare.log_word(word);
            }
            bare.log_csr(CSR_CONFLICT);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            bare.push(hint(gears[0]));
            bare.store(B, 1);
        };
        everywhere(2, on_harts(&[&first, &second]), |logs| {
            assert_eq!(logs.notes(0), [5, 3], "{:?} {gears:?}", logs.gear);
            assert_eq!(logs.words::<6>(0), [NONTRANSACTIONAL, 0, 0, 0, 7, B], "{:?} {gears:?}", logs.gear);
        });
    }
}

/// instructions of the extension may lie across two pages.
#[test]
fn instructions_may_lie_across_two_pages() {
    let instructions = [
        Control::Begin.encode(S2, 0),
        Width::Double.encode_test(S3, S0, S1),
        Width::Double.encode_compare_and_swap(S4, S0, ZERO, S1),
        XPUSH,
        XPOP,
        XEND,
    ];
    let build = |bare: &mut Bare| {
        // Each at the end of its page, and a return behind it.
        for (page, instruction) in instructions.into_iter().enumerate() {
            bare.set_code(DATA + 0x1000 * page as u64 + 0xffe, &[instruction, i_type(JALR, 0, 0, 1, 0)]);
        }
        bare.load(S0, ANSWER + 0x2000);
        bare.load(S1, 7);
        let call = |bare: &mut Bare, index: u64| {
            bare.load(T0, DATA + 0x1000 * index + 0xffe);
            bare.push(i_type(JALR, 1, 0, T0, 0));
        };
        let done = bare.code.label();
        for index in [0, 1, 2] {
            call(bare, index);
            if index == 0 {
                let begun = bare.code.label();
                bare.code.branch(0, S2, ZERO, begun);
                bare.load_word(S5, ANSWER + 0x2000);
                call(bare, 5);
                bare.code.jump(ZERO, done);
                bare.code.bind(begun);
            }
        }
        call(bare, 3);
        bare.note(0, 0, S3);
        bare.note(0, 1, S4);
        bare.note_csr(0, 2, CSR_STATUS);
        call(bare, 4);
        bare.restart(0);
        bare.code.bind(done);
        bare.log(S2);
        bare.log(S5);
        bare.transaction_id(T0);
        bare.log(T0);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        assert_eq!(logs.notes(0), [0, SWAPPED, XSTATUS_SUSPENDED | 1 << XSTATUS_DEPTH_SHIFT], "{:?}", logs.gear);
        assert_eq!(logs.words::<3>(0), [EXPLICIT, 0, 0], "{:?}", logs.gear);
    });
}

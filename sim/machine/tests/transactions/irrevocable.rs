//! What is cancelled inside a transaction, and what is not: section 10 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::hint::Hint;
use concord_abi::htm::*;

const UART: u64 = 0x1000_0000;
const CSR_SENVCFG: u32 = 0x10a;

/// [X-24]: at depth 3, device accesses and SBI calls have no effect, and restart.
#[test]
fn irrevocable_acts_are_cancelled_at_any_depth() {
    let call = |extension: u64, function: u64, arguments: &'static [u64]| {
        move |bare: &mut Bare| bare.sbi_quietly(extension, function, arguments)
    };
    let character = call(SBI_CONSOLE, 2, &[0x41]);
    let reset = call(SBI_RESET, 0, &[0, 0]);
    let interrupt = call(SBI_IPI, 0, &[1, 0]);
    let timer = call(SBI_TIME, 0, &[0]);
    let fence = call(SBI_FENCE, 0, &[1, 0]);
    let (start, stop) = (call(SBI_HART, 0, &[1, CODE, 0]), call(SBI_HART, 1, &[]));
    let unknown = call(u64::MAX, 0, &[]);
    let acts: [Part; 13] = [
        &|bare| {
            bare.load(T0, UART);
            bare.load(T1, 0x42);
            bare.push(s_type(STORE, 0, T0, T1, 0));
        },
        // The scratch register, read back by the check below.
        &|bare| {
            bare.load(T0, UART);
            bare.push(s_type(STORE, 0, T0, T0, 7));
        },
        &|bare| {
            bare.load(T0, UART);
            bare.push(i_type(LOAD, T1, 4, T0, 5));
        },
        // Claiming an interrupt.
        &|bare| {
            bare.load(T0, 0x0c20_1004);
            bare.push(i_type(LOAD, T1, 2, T0, 0));
        },
        &|bare| {
            // The finisher would end the run.
            bare.load(T0, 0x10_0000);
            bare.load(T1, 0x5555);
            bare.push(s_type(STORE, 2, T0, T1, 0));
        },
        &character,
        &reset,
        &interrupt,
        &timer,
        &fence,
        &start,
        &stop,
        &unknown,
    ];
    for depth in [1, 3] {
        let build = |bare: &mut Bare| {
            for (index, act) in acts.iter().enumerate() {
                let first = |bare: &mut Bare| {
                    for _ in 1..depth {
                        bare.begin(ZERO);
                    }
                    bare.store(A, 5);
                    act(bare);
                    bare.outside(|bare| bare.note(0, index as u64, LOG_POINTER));
                    bare.spin();
                };
                bare.attempt(S2, first, |_| ());
                bare.load_word(S3, A);
                bare.end();
                bare.log(S2);
                bare.log(S3);
            }
            bare.load(T0, UART);
            bare.push(i_type(LOAD, T1, 4, T0, 7));
            bare.log(T1);
            bare.log_csr(CSR_SIP);
            bare.log_csr(CSR_STIMECMP);
            bare.log_csr(CSR_BACKOFF);
            bare.sbi_quietly(SBI_HART, 2, &[1]);
            bare.log(A1);
            bare.finish();
        };
        for gear in [concord_machine::Gear::Functional, concord_machine::Gear::Timed] {
            let mut bare = Bare::new(2);
            build(&mut bare);
            let end = bare.run_to_any_end(gear);
            assert_eq!(end.outcome.end.exit, concord_abi::exit::Exit::PoweredOff, "{gear:?}: {:?}", end.outcome);
            assert_eq!(end.printed.len(), 0x2000, "{gear:?}: a character was printed inside a transaction");
            let logs = Logs::new(gear, &end.printed, 2);
            assert_eq!(logs.notes(0), [0; 13], "{gear:?}: went on behind the act");
            let words: [u64; 31] = logs.words(0);
            for pair in words[..26].chunks(2) {
                assert_eq!(pair, [NEED_EXCLUSIVE, 0], "{gear:?}");
            }
            assert_eq!(words[26..], [0, 0, u64::MAX, 0, 1], "{gear:?}");
        }
    }
}

/// what faults outside faults inside, and nothing is cancelled.
#[test]
fn accesses_that_fault_are_not_cancelled() {
    let build = |bare: &mut Bare| {
        bare.load(S0, UART);
        bare.load(S1, NOWHERE);
        let acts = [
            ld(S3, S1, 0),
            sd(S3, S1, 0),
            // Two halves, one in a device: what it raises outside.
            i_type(LOAD, S3, 2, S0, 0x7e),
            r_type(AMO, S3, 2, S0, S1, 0),
            r_type(AMO, S3, 2, S0, 0, 0x02 << 2),
        ];
        for in_transaction in [false, true] {
            for act in acts {
                if in_transaction {
                    bare.begin(S2);
                }
                bare.trap(|bare| bare.push(act));
                if in_transaction {
                    bare.resume();
                    bare.end();
                }
            }
        }
        bare.log_csr(CSR_RESTARTS);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let traps = logs.traps(10);
        assert_eq!(traps[..5], traps[5..], "{:?}", logs.gear);
        assert_eq!(traps.iter().take(2).map(|trap| trap.0).collect::<Vec<_>>(), [5, 7], "{:?}", logs.gear);
        assert!(traps.iter().all(|trap| trap.0 != NO_TRAP), "{:?}: {traps:?}", logs.gear);
        assert_eq!(logs.words::<51>(0)[50], 0, "{:?}", logs.gear);
    });
}

/// calls that only ask are answered inside.
#[test]
fn questions_are_answered_inside() {
    let questions: [(u64, u64, &[u64]); 10] = [
        (SBI_BASE, 0, &[]),
        (SBI_BASE, 1, &[]),
        (SBI_BASE, 2, &[]),
        (SBI_BASE, 3, &[SBI_TIME]),
        (SBI_BASE, 4, &[]),
        (SBI_BASE, 5, &[]),
        (SBI_BASE, 6, &[]),
        (SBI_BASE, 7, &[]),
        (SBI_HART, 2, &[0]),
        (SBI_HART, 2, &[1]),
    ];
    let build = |bare: &mut Bare| {
        for (extension, function, arguments) in questions {
            bare.sbi(extension, function, arguments);
            bare.begin(S2);
            bare.store(A, 7);
            bare.sbi_quietly(extension, function, arguments);
            bare.transaction_id(S3);
            bare.end();
            bare.push(r_type(OP, S3, 3, ZERO, S3, 0));
            for register in [A0, A1, S2, S3] {
                bare.log(register);
            }
        }
        bare.finish();
    };
    everywhere(2, build, |logs| {
        for (index, record) in logs.words::<60>(0).chunks(6).enumerate() {
            assert_eq!(record[2..], [record[0], record[1], 0, 1], "{:?}: question {index}", logs.gear);
        }
    });
}

/// writes of these registers are cancelled, whatever the value; reads are not.
#[test]
fn register_writes_that_cannot_be_undone_are_cancelled() {
    let registers = [
        CSR_SATP,
        CSR_STVEC,
        CSR_SCOUNTEREN,
        CSR_SENVCFG,
        CSR_STIMECMP,
        CSR_SIP,
        CSR_PRIORITY,
        CSR_CONTEXT,
        CSR_ENABLE,
    ];
    for number in registers {
        // The same value; another one; a bit that is set; none cleared, by register and by immediate; all cleared.
        let writes = [
            csr(CSRRW, S4, number, S3),
            csr(CSRRW, ZERO, number, S5),
            csr(CSRRS, ZERO, number, S5),
            csr(CSRRC, S4, number, S6),
            csr(5, S4, number, 0),
            csr(6, S4, number, 1),
            csr(7, ZERO, number, 1),
        ];
        // CSRRS, CSRRC, CSRRSI and CSRRCI that only read.
        let reads =
            [csr(CSRRS, S4, number, ZERO), csr(CSRRC, S4, number, ZERO), csr(6, S4, number, 0), csr(7, S4, number, 0)];
        let build = |bare: &mut Bare| {
            bare.read_csr(S3, number);
            bare.load(S5, 2);
            // A register that is not x0 and holds 0.
            bare.load(S6, 0);
            for write in writes {
                let first = |bare: &mut Bare| {
                    bare.store(A, 5);
                    bare.push(write);
                    bare.spin();
                };
                bare.load(S4, 0x77);
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log(S4);
            }
            for read in reads {
                bare.begin(S2);
                bare.push(read);
                bare.end();
                bare.push(r_type(OP, S4, 0, S4, S3, 0x20));
                bare.log(S2);
                bare.log(S4);
            }
            bare.read_csr(S4, number);
            bare.push(r_type(OP, S4, 0, S4, S3, 0x20));
            bare.log(S4);
            bare.finish();
        };
        everywhere(1, build, |logs| {
            let words: [u64; 23] = logs.words(0);
            for pair in words[..14].chunks(2) {
                assert_eq!(pair, [NEED_EXCLUSIVE, 0x77], "{:?}: {number:#x}", logs.gear);
            }
            assert_eq!(words[14..], [0; 9], "{:?}: {number:#x}", logs.gear);
        });
    }
}

/// an illegal write is illegal before it is irrevocable; only whose context it is comes after.
#[test]
fn illegal_writes_are_not_cancelled() {
    let second = |bare: &mut Bare| {
        bare.set_csr(CSR_CONTEXT, 9);
        bare.store(FLAG, 1);
    };
    let first = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.set_csr(CSR_ENABLE, XENABLE_USER);
        bare.trap(|bare| {
            bare.user(|bare| {
                bare.begin(S2);
                bare.push(csr(CSRRW, ZERO, CSR_SATP, ZERO));
            })
        });
        bare.trap(|bare| {
            bare.set_csr(CSR_TRAP, 0);
            bare.resume();
            bare.push(csr(CSRRW, ZERO, CSR_CYCLE, ZERO));
        });
        bare.resume();
        bare.end();
        bare.attempt(S2, |bare| bare.set_csr(CSR_CONTEXT, 9), |_| ());
        bare.end();
        bare.log(S2);
    };
    everywhere(2, on_harts(&[&first, &second]), |logs| {
        let words: [u64; 11] = logs.words(0);
        assert_eq!((words[0], words[5], words[10]), (2, 2, NEED_EXCLUSIVE), "{:?}", logs.gear);
    });
}

/// these take effect inside, and every register can be read.
#[test]
fn registers_of_the_checkpoint_can_be_written() {
    let written = [
        (CSR_FCSR, 0x42),
        (CSR_FFLAGS, 0x5),
        (CSR_FRM, 0x3),
        (CSR_SSTATUS, SUM | 3 << 13 | 2 << 32 | 1 << 63),
        (CSR_SIE, TIMER),
        (CSR_SSCRATCH, 0x1234),
        (CSR_SEPC, 0x8000_0010),
        (CSR_SCAUSE, 5),
        (CSR_STVAL, 0x99),
        (CSR_TRAP, 1),
        (CSR_RESTARTS, 100),
        (CSR_BACKOFF, 200),
    ];
    let others =
        [CSR_STVEC, CSR_SCOUNTEREN, CSR_SENVCFG, CSR_SIP, CSR_SATP, CSR_STIMECMP, CSR_CYCLE, CSR_TIME, CSR_INSTRET];
    let build = |bare: &mut Bare| {
        bare.begin(S2);
        for (number, value) in written {
            bare.set_csr(number, value);
            bare.log_csr(number);
        }
        for number in others.into_iter().chain(CSRS.map(|(number, _)| number)) {
            bare.read_csr(T0, number);
        }
        bare.end();
        bare.log(S2);
        for (number, _) in written.into_iter().skip(3) {
            bare.log_csr(number);
        }
        bare.set_csr(CSR_SIE, 0);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let values: Vec<u64> = written.iter().map(|(_, value)| *value).collect();
        let words: [u64; 22] = logs.words(0);
        assert_eq!(words[..12], values, "{:?}", logs.gear);
        assert_eq!(words[12], 0, "{:?}", logs.gear);
        assert_eq!(words[13..], values[3..], "{:?}: after the commit", logs.gear);
    });
}

/// fences, hints and `wfi` go through.
#[test]
fn fences_hints_and_waiting_go_on() {
    let instructions = [
        i_type(MISC_MEM, 0, 0, 0, 0xff),
        // FENCE.TSO and PAUSE.
        0x8330_000f,
        0x0100_000f,
        FENCE_I,
        SFENCE_VMA_ALL,
        SFENCE_VMA_ALL | S0 << 15,
        WFI,
        // A marker of the simulator's (SLTI x0), and another hint.
        i_type(OP_IMM, 0, 2, S0, Hint::Marker as i64),
        u_type(LUI, 0, 5),
    ];
    let build = |bare: &mut Bare| {
        // Nothing is enabled that could end a wait.
        bare.set_csr(CSR_SIE, 0);
        bare.load(S0, A);
        for instruction in instructions {
            bare.begin(S2);
            bare.store(A, 5);
            bare.push(instruction);
            bare.read_csr(S3, CSR_STATUS);
            bare.end();
            bare.log(S2);
            bare.log(S3);
        }
        // Several times over, so that a quantum's end is not what completes it.
        bare.begin(S2);
        bare.read_csr(S3, CSR_CYCLE);
        for _ in 0..20 {
            bare.push(WFI);
        }
        bare.read_csr(S4, CSR_CYCLE);
        bare.end();
        bare.push(r_type(OP, S4, 0, S4, S3, 0x20));
        bare.log(S4);
        bare.finish();
    };
    everywhere(1, build, |logs| {
        let words: [u64; 19] = logs.words(0);
        for pair in words[..18].chunks(2) {
            assert_eq!(pair, [0, XSTATUS_ACTIVE | 1 << XSTATUS_DEPTH_SHIFT], "{:?}", logs.gear);
        }
        assert!(words[18] < 2000, "{:?}: {} cycles for 20 times nothing", logs.gear, words[18]);
    });
}

//! What harts do to each other: start, stop, suspend, interrupt, fence, and break each other's reservations.

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_machine::Gear;

/// Words on lines of their own.
const FLAG: u64 = DATA + 0x4000;
const ANSWER: u64 = DATA + 0x4040;
const TARGET: u64 = DATA + 0x4080;

#[test]
fn a_hart_starts_with_its_number_and_its_argument_and_stops() {
    let build = |bare: &mut Bare| {
        let other = bare.code.label();
        for round in 1..=2 {
            bare.start_hart(1, other);
            bare.log(A0);
            bare.wait_for(FLAG, round);
            // Until it has stopped.
            let again = bare.code.here();
            bare.sbi_quietly(SBI_HART, 2, &[1]);
            bare.load(T0, 1);
            bare.code.branch(1, A1, T0, again);
        }
        bare.finish();
        bare.code.bind(other);
        bare.push(addi(S0, A0, 0));
        bare.begin_hart();
        bare.push(csr(CSRRS, S1, CSR_SATP, 0));
        bare.push(csr(CSRRS, S2, CSR_SSTATUS, 0));
        bare.push(i_type(OP_IMM, S2, 7, S2, SIE as i64));
        for register in [S0, A1, S1, S2] {
            bare.log(register);
        }
        bare.set_csr(CSR_SATP, 0);
        bare.load(T0, FLAG);
        bare.push(ld(T1, T0, 0));
        bare.push(addi(T1, T1, 1));
        bare.push(sd(T1, T0, 0));
        bare.set_bits(CSR_SSTATUS, SIE);
        bare.sbi(SBI_HART, 1, &[]);
        // Stopping does not return.
        bare.store(FLAG, 99);
        bare.rest();
    };
    in_both_gears(2, build, |logs| {
        assert_eq!(logs.words::<2>(0), [0, 0]);
        assert_eq!(logs.words::<5>(1), [1, OPAQUE, 0, 0, 0], "{:?}", logs.gear);
    });
}

#[test]
fn a_software_interrupt_wakes_a_hart_that_waits() {
    let first = |bare: &mut Bare| {
        bare.wait_for(FLAG, 1);
        bare.sbi(SBI_IPI, 0, &[1, 1]);
        bare.wait_for(ANSWER, 1);
    };
    let second = |bare: &mut Bare| {
        bare.set_csr(CSR_SIE, SOFTWARE);
        bare.log_csr(CSR_SIP);
        bare.store(FLAG, 1);
        bare.trap(|bare| bare.push(WFI));
        bare.log_csr(CSR_SIP);
        bare.trap(|bare| bare.set_bits(CSR_SSTATUS, SIE));
        bare.store(ANSWER, 1);
    };
    in_both_gears(2, on_harts(&[&first, &second]), |logs| {
        assert_eq!(logs.words::<2>(0), [0, 0]);
        let words: [u64; 8] = logs.words(1);
        assert_eq!((words[0], words[1], words[6], words[7]), (0, 0x7a7, SOFTWARE, INTERRUPT | 1), "{:?}", logs.gear);
    });
}

#[test]
fn suspended_harts_resume_here_or_start_elsewhere() {
    let build = |bare: &mut Bare| {
        let (other, elsewhere) = (bare.code.label(), bare.code.label());
        bare.start_hart(1, other);
        for round in 1..=2 {
            bare.wait_for(FLAG, round);
            // A hart that suspends itself without keeping its state says so; the other kind only looks idle.
            if round == 2 {
                let again = bare.code.here();
                bare.sbi_quietly(SBI_HART, 2, &[1]);
                bare.load(T0, 4);
                bare.code.branch(1, A1, T0, again);
                bare.sbi(SBI_HART, 0, &[1, CODE, 0]);
            }
            bare.sbi_quietly(SBI_IPI, 0, &[2, 0]);
            bare.wait_for(ANSWER, round);
        }
        bare.finish();
        bare.code.bind(other);
        bare.begin_hart();
        bare.set_csr(CSR_SIE, SOFTWARE);
        bare.store(FLAG, 1);
        bare.sbi(SBI_HART, 3, &[0, 0, 0]);
        bare.clear_bits(CSR_SIP, SOFTWARE);
        bare.store(ANSWER, 1);
        bare.load_address(S0, elsewhere);
        bare.set_bits(CSR_SSTATUS, SUM);
        bare.store(FLAG, 2);
        bare.load(A0, 0x8000_0000);
        bare.push(addi(A1, S0, 0));
        bare.load(A0 + 2, 0x77);
        bare.sbi(SBI_HART, 3, &[]);
        bare.store(ANSWER, 99);
        bare.code.bind(elsewhere);
        bare.log(A0);
        bare.log(A1);
        bare.push(csr(CSRRS, S2, CSR_SSTATUS, 0));
        bare.load(T0, SUM | SIE);
        bare.push(r_type(OP, S2, 7, S2, T0, 0));
        bare.log(S2);
        bare.store(ANSWER, 2);
        bare.rest();
    };
    in_both_gears(2, build, |logs| {
        assert_eq!(logs.words::<2>(0), [-6_i64 as u64, 0], "a suspended hart is not a stopped one");
        assert_eq!(logs.words::<5>(1), [0, 0, 1, 0x77, 0], "{:?}", logs.gear);
    });
}

/// Until the fence, the other hart goes on with the translation it has; after it, with the new one.
#[test]
fn a_remote_fence_fences() {
    for (start, size) in [(0, 0), (WINDOW, 0x1000), (WINDOW - 0x1000, 0x3000), (0, 1 << 40)] {
        let build = |bare: &mut Bare| {
            bare.map(0, READ | WRITE);
            bare.set_word(DATA, 10);
            bare.set_word(DATA + 0x1000, 11);
            on_harts(&[
                &|bare: &mut Bare| {
                    bare.wait_for(FLAG, 1);
                    bare.store(entry_address(0), entry(DATA + 0x1000, READ | WRITE));
                    bare.store(ANSWER, 1);
                    bare.wait_for(FLAG, 2);
                    bare.sbi(SBI_FENCE, 1, &[2, 0, start, size]);
                    bare.store(ANSWER, 2);
                    bare.wait_for(FLAG, 3);
                },
                &|bare: &mut Bare| {
                    bare.translate();
                    bare.load(S0, WINDOW);
                    for round in 0..3 {
                        bare.push(ld(S1, S0, 0));
                        bare.log(S1);
                        bare.store(FLAG, round + 1);
                        if round < 2 {
                            bare.wait_for(ANSWER, round + 1);
                        }
                    }
                },
            ])(bare);
        };
        in_both_gears(2, build, |logs| {
            assert_eq!(logs.words::<3>(1), [10, 10, 11], "{:?}: {start:#x} {size:#x}", logs.gear);
        });
    }
}

/// A fence of another page leaves the translation alone.
#[test]
fn a_fence_of_an_address_is_of_that_address() {
    let build = |bare: &mut Bare| {
        bare.map(0, READ | WRITE);
        bare.map(1, READ | WRITE);
        bare.set_word(DATA, 10);
        bare.set_word(DATA + 0x2000, 12);
        bare.translate();
        bare.load(S0, WINDOW);
        bare.push(ld(S1, S0, 0));
        bare.store(entry_address(0), entry(DATA + 0x2000, READ | WRITE));
        for page in [1, 0] {
            bare.load(T0, WINDOW + page * 0x1000);
            bare.push(SFENCE_VMA_ALL | T0 << 15);
            bare.push(ld(S1, S0, 0));
            bare.log(S1);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| assert_eq!(logs.words::<2>(0), [10, 12], "{:?}", logs.gear));
}

#[test]
fn code_that_another_hart_changes_runs_after_a_remote_fence() {
    let build = |bare: &mut Bare| {
        bare.set_code(DATA, &[addi(S1, ZERO, 1), i_type(JALR, 0, 0, 1, 0)]);
        on_harts(&[
            &|bare: &mut Bare| {
                bare.wait_for(FLAG, 1);
                bare.load(T0, DATA);
                bare.load(T1, u64::from(addi(S1, ZERO, 2)));
                bare.push(s_type(STORE, 2, T0, T1, 0));
                bare.sbi(SBI_FENCE, 0, &[2, 0]);
                bare.store(ANSWER, 1);
                bare.wait_for(FLAG, 2);
            },
            &|bare: &mut Bare| {
                bare.load(S0, DATA);
                for round in 1..=2 {
                    bare.push(i_type(JALR, 1, 0, S0, 0));
                    bare.log(S1);
                    bare.store(FLAG, round);
                    bare.wait_for(ANSWER, 1);
                }
            },
        ])(bare);
    };
    in_both_gears(2, build, |logs| assert_eq!(logs.words::<2>(1), [1, 2], "{:?}", logs.gear));
}

#[test]
fn a_store_conditional_needs_its_own_reservation() {
    let build = |bare: &mut Bare| {
        bare.load(S0, TARGET);
        bare.load(S1, TARGET + 64);
        bare.load(T1, 7);
        // None at all; of another line; then the right one, and a second time.
        bare.push(sc(T0, S0, T1));
        bare.log(T0);
        bare.push(lr(T2, S1));
        bare.push(sc(T0, S0, T1));
        bare.log(T0);
        bare.push(sc(T0, S1, T1));
        bare.log(T0);
        bare.push(ld(T2, S0, 0));
        bare.log(T2);
        bare.push(lr(T2, S0));
        bare.push(sc(T0, S0, T1));
        bare.log(T0);
        bare.push(ld(T2, S0, 0));
        bare.log(T2);
        bare.push(addi(T1, T1, 1));
        bare.push(sc(T0, S0, T1));
        bare.log(T0);
        bare.push(ld(T2, S0, 0));
        bare.log(T2);
        bare.finish();
    };
    in_both_gears(1, build, |logs| assert_eq!(logs.words::<8>(0), [1, 1, 1, 0, 0, 7, 1, 7], "{:?}", logs.gear));
}

#[test]
fn another_harts_store_breaks_a_reservation() {
    let stores: [fn(&mut Bare); 2] = [|bare| bare.push(sd(T0, S0, 8)), |bare| bare.push(amo_add(T0, S0, T0))];
    for store in stores {
        let first = |bare: &mut Bare| {
            bare.load(S0, TARGET);
            bare.load(S1, 5);
            bare.push(lr(S2, S0));
            bare.store(FLAG, 1);
            bare.wait_for(ANSWER, 1);
            bare.push(sc(S2, S0, S1));
            bare.log(S2);
        };
        let second = |bare: &mut Bare| {
            bare.load(S0, TARGET);
            bare.load(T0, 0);
            bare.push(ld(S1, S0, 0));
            bare.wait_for(FLAG, 1);
            bare.load(T0, 0);
            store(bare);
            bare.store(ANSWER, 1);
        };
        in_both_gears(2, on_harts(&[&first, &second]), |logs| {
            assert_eq!(logs.words::<1>(0), [1], "{:?}", logs.gear);
        });
    }
}

/// Both harts add to one counter, each in its own way; nothing is lost, and both get on.
#[test]
fn atomic_additions_of_two_harts_all_count() {
    const ROUNDS: u64 = 500;
    let reserved = |bare: &mut Bare| {
        bare.load(S0, TARGET);
        bare.load(S1, ROUNDS);
        let again = bare.code.here();
        bare.push(lr(T0, S0));
        bare.push(addi(T0, T0, 1));
        bare.push(sc(T1, S0, T0));
        bare.code.branch(1, T1, ZERO, again);
        bare.push(addi(S1, S1, -1));
        bare.code.branch(1, S1, ZERO, again);
    };
    let atomic = |bare: &mut Bare| {
        bare.load(S0, TARGET);
        bare.load(S1, ROUNDS);
        bare.load(T0, 1);
        let again = bare.code.here();
        bare.push(amo_add(ZERO, S0, T0));
        bare.push(addi(S1, S1, -1));
        bare.code.branch(1, S1, ZERO, again);
    };
    let seconds: [&dyn Fn(&mut Bare); 2] = [&reserved, &atomic];
    for second in seconds {
        let first = |bare: &mut Bare| {
            reserved(bare);
            bare.wait_for(FLAG, 1);
            bare.push(ld(S1, S0, 0));
            bare.log(S1);
        };
        let second = |bare: &mut Bare| {
            second(bare);
            bare.store(FLAG, 1);
        };
        in_both_gears(2, on_harts(&[&first, &second]), |logs| {
            assert_eq!(logs.words::<1>(0), [2 * ROUNDS], "{:?}", logs.gear);
        });
    }
}

#[test]
fn harts_that_all_stop_or_wait_are_a_deadlock() {
    for gear in [Gear::Functional, Gear::Timed] {
        let mut bare = Bare::new(2);
        bare.sbi(SBI_HART, 1, &[]);
        assert_eq!(bare.run_to_any_end(gear).outcome.end.exit, Exit::Deadlocked);
    }
}

//! Exceptions and interrupts (privileged specification, "Supervisor Cause Register", "Supervisor Interrupt Registers").

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_machine::Gear;

#[test]
fn exceptions_report_cause_and_value() {
    let build = |bare: &mut Bare| {
        bare.trap(|bare| bare.push(0xffff_ffff));
        bare.trap(|bare| {
            // Reserved: C.LUI with an immediate of zero, padded to four bytes.
            bare.code.push_compressed(0x6081);
            bare.code.push_compressed(0x0001);
        });
        bare.trap(|bare| bare.push(MRET));
        bare.load(S0, DATA + 4);
        bare.trap(|bare| bare.push(lr(S1, S0)));
        bare.trap(|bare| bare.push(amo_add(S1, S0, S1)));
        bare.load(S0, NOWHERE);
        bare.trap(|bare| bare.push(ld(S1, S0, 0)));
        bare.trap(|bare| bare.push(sd(S1, S0, 8)));
        bare.trap(|bare| bare.push(lr(S1, S0)));
        bare.trap(|bare| bare.push(amo_add(S1, S0, S1)));
        bare.trap(|bare| bare.push(i_type(JALR, 0, 0, S0, 16)));
        bare.finish();
    };
    let expected = [
        (2, 0xffff_ffff),
        (2, 0x6081),
        (2, u64::from(MRET)),
        (4, DATA + 4),
        (6, DATA + 4),
        (5, NOWHERE),
        (7, NOWHERE + 8),
        (5, NOWHERE),
        (7, NOWHERE),
        (1, NOWHERE + 16),
    ];
    in_both_gears(1, build, |logs| assert_eq!(logs.traps(10), expected, "{:?}", logs.gear));
}

#[test]
fn a_breakpoint_reports_its_address_and_a_fetch_fault_leaves_it_in_sepc() {
    let build = |bare: &mut Bare| {
        bare.trap(|bare| bare.push(EBREAK));
        bare.load(S0, NOWHERE);
        bare.trap(|bare| bare.push(i_type(JALR, 0, 0, S0, 0)));
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let records = logs.records(2);
        assert_eq!((records[0][0], records[0][1]), (3, records[0][2]));
        assert_eq!(records[1][..3], [1, NOWHERE, NOWHERE]);
    });
}

#[test]
fn page_faults_name_the_access() {
    let build = |bare: &mut Bare| {
        bare.map(0, READ);
        bare.map(1, READ | EXECUTE | USER);
        bare.translate();
        for page in [0, 1, 2] {
            bare.load(S0, WINDOW + page * 0x1000 + 0x18);
            bare.trap(|bare| bare.push(ld(S1, S0, 0)));
            bare.trap(|bare| bare.push(sd(S1, S0, 0)));
            bare.trap(|bare| bare.push(i_type(JALR, 0, 0, S0, 0)));
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let (readable, user, absent) = (WINDOW + 0x18, WINDOW + 0x1018, WINDOW + 0x2018);
        let none = 0x7a7;
        let expected = [
            (none, none),
            (15, readable),
            (12, readable),
            (13, user),
            (15, user),
            (12, user),
            (13, absent),
            (15, absent),
            (12, absent),
        ];
        assert_eq!(logs.traps(9), expected, "{:?}", logs.gear);
    });
}

/// Permission to supervisor and user pages by SUM and MXR.
#[test]
fn sum_and_mxr_open_what_they_name() {
    let build = |bare: &mut Bare| {
        bare.map(0, READ | WRITE | USER);
        bare.map(1, EXECUTE);
        bare.translate();
        let attempts = |bare: &mut Bare| {
            for page in [0, 1] {
                bare.load(S0, WINDOW + page * 0x1000);
                bare.trap(|bare| bare.push(ld(S1, S0, 0)));
                bare.trap(|bare| bare.push(sd(S1, S0, 0)));
            }
        };
        attempts(bare);
        bare.set_bits(CSR_SSTATUS, SUM);
        attempts(bare);
        bare.set_bits(CSR_SSTATUS, MXR);
        attempts(bare);
        bare.clear_bits(CSR_SSTATUS, SUM | MXR);
        attempts(bare);
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let causes: Vec<u64> = logs.traps(16).iter().map(|trap| trap.0).collect();
        let none = 0x7a7;
        let closed = [13, 15, 13, 15];
        let expected = [closed, [none, none, 13, 15], [none, none, none, 15], closed].concat();
        assert_eq!(causes, expected, "{:?}", logs.gear);
    });
}

#[test]
fn user_mode_is_kept_out() {
    // Each of these, in U-mode, is an illegal instruction: S-mode's CSRs, SRET, WFI, SFENCE.VMA.
    let instructions = [
        csr(CSRRS, T1, CSR_SSTATUS, 0),
        csr(CSRRW, T1, CSR_SATP, T1),
        csr(CSRRS, T1, CSR_SIP, 0),
        csr(CSRRS, T1, CSR_STIMECMP, 0),
        SRET,
        WFI,
        SFENCE_VMA_ALL,
    ];
    let build = |bare: &mut Bare| {
        for (index, instruction) in instructions.into_iter().enumerate() {
            bare.set_code(DATA + 16 * index as u64, &[instruction]);
            bare.trap(|bare| bare.enter_user(DATA + 16 * index as u64));
        }
        bare.set_code(DATA + 0x800, &[ECALL]);
        bare.trap(|bare| bare.enter_user(DATA + 0x800));
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        for (index, record) in logs.records(7).iter().enumerate() {
            assert_eq!(record[..3], [2, u64::from(instructions[index]), DATA + 16 * index as u64]);
            assert_eq!(record[3] & SPP, 0);
        }
        assert_eq!(logs.records(8)[7][..3], [8, 0, DATA + 0x800]);
    });
}

/// Counts as the UART's interrupt at the interrupt controller, for the S-mode context of hart 0.
fn raise_external_interrupt(bare: &mut Bare) {
    for (address, value) in [(0x0c00_0028, 1), (0x0c00_2080, 1 << 10), (0x0c20_1000, 0)] {
        bare.load(T0, address);
        bare.load(T1, value);
        bare.push(s_type(STORE, 2, T0, T1, 0));
    }
    // The transmitter is empty, and the driver wants to hear of it.
    bare.load(T0, 0x1000_0000);
    bare.load(T1, 2);
    bare.push(s_type(STORE, 0, T0, T1, 1));
}

#[test]
fn interrupts_come_in_the_order_of_their_priority_and_by_their_vectors() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_STVEC, VECTOR | 1);
        bare.set_bits(CSR_SIP, SOFTWARE);
        bare.set_csr(CSR_STIMECMP, 0);
        raise_external_interrupt(bare);
        bare.log_csr(CSR_SIP);
        let enabled = [SOFTWARE | TIMER | EXTERNAL, SOFTWARE | TIMER, TIMER];
        for enabled in enabled {
            bare.set_csr(CSR_SIE, enabled);
            bare.trap(|bare| bare.set_bits(CSR_SSTATUS, SIE));
        }
        bare.trap(|bare| bare.push(EBREAK));
        bare.set_csr(CSR_STVEC, VECTOR);
        bare.trap(|bare| bare.set_bits(CSR_SSTATUS, SIE));
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let words: [u64; 26] = logs.words(0);
        assert_eq!(words[0], SOFTWARE | TIMER | EXTERNAL);
        let traps: Vec<(u64, u64)> = words[1..].chunks(5).map(|record| (record[0], record[4])).collect();
        let expected = [(INTERRUPT | 9, 9), (INTERRUPT | 1, 1), (INTERRUPT | 5, 5), (3, 0), (INTERRUPT | 5, 0)];
        assert_eq!(traps, expected, "{:?}", logs.gear);
        // Taken with interrupts on, and off in the handler.
        assert_eq!(words[4] & (SIE | SPIE | SPP), SPIE | SPP);
    });
}

#[test]
fn interrupts_are_masked_by_sie_and_by_sstatus_in_supervisor_mode_only() {
    let build = |bare: &mut Bare| {
        bare.set_code(DATA, &[addi(0, 0, 0), EBREAK]);
        bare.set_bits(CSR_SIP, SOFTWARE);
        // Not enabled in sie: not taken, in either mode.
        bare.trap(|bare| bare.set_bits(CSR_SSTATUS, SIE));
        bare.clear_bits(CSR_SSTATUS, SIE);
        bare.trap(|bare| bare.enter_user(DATA));
        // Enabled in sie, not in sstatus: taken in U-mode only, before its first instruction.
        bare.set_csr(CSR_SIE, SOFTWARE);
        bare.trap(|bare| bare.push(addi(0, 0, 0)));
        bare.clear_bits(CSR_SSTATUS, SPIE);
        bare.trap(|bare| bare.enter_user(DATA));
        // Cleared: gone.
        bare.clear_bits(CSR_SIP, SOFTWARE);
        bare.trap(|bare| bare.set_bits(CSR_SSTATUS, SIE));
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let none = 0x7a7;
        let found: Vec<(u64, u64)> = logs.records(5).iter().map(|record| (record[0], record[2])).collect();
        let expected = [(none, none), (3, DATA + 4), (none, none), (INTERRUPT | 1, DATA), (none, none)];
        assert_eq!(found, expected, "{:?}", logs.gear);
    });
}

#[test]
fn sret_restores_what_the_trap_saved() {
    let build = |bare: &mut Bare| {
        for before in [SPP | SPIE, SPP] {
            bare.clear_bits(CSR_SSTATUS, SIE | SPIE | SPP);
            bare.set_bits(CSR_SSTATUS, before);
            let after = bare.code.label();
            bare.load_address(T0, after);
            bare.csrw(CSR_SEPC, T0);
            bare.push(SRET);
            bare.code.bind(after);
            bare.log_csr(CSR_SSTATUS);
            bare.clear_bits(CSR_SSTATUS, SIE);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let [both, one]: [u64; 2] = logs.words(0);
        assert_eq!(both & (SIE | SPIE | SPP), SIE | SPIE);
        assert_eq!(one & (SIE | SPIE | SPP), SPIE);
    });
}

#[test]
fn wfi_ends_with_a_pending_interrupt_that_sstatus_masks() {
    let build = |bare: &mut Bare| {
        bare.set_csr(CSR_SIE, TIMER);
        bare.push(csr(CSRRS, S0, CSR_TIME, 0));
        bare.push(addi(S0, S0, 1000));
        bare.csrw(CSR_STIMECMP, S0);
        bare.log_csr(CSR_SIP);
        bare.trap(|bare| bare.push(WFI));
        bare.log(S0);
        bare.log_csr(CSR_TIME);
        bare.log_csr(CSR_SIP);
        // Pending already: WFI does nothing.
        bare.push(WFI);
        bare.log_csr(CSR_TIME);
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let words: [u64; 10] = logs.words(0);
        assert_eq!(words[0], 0);
        assert_eq!(words[1], 0x7a7, "no trap");
        let (due, woke, later) = (words[6], words[7], words[9]);
        assert!((due..due + 10).contains(&woke), "{due} {woke}");
        assert_eq!(words[8], TIMER);
        assert!((woke..woke + 10).contains(&later), "{woke} {later}");
    });
}

/// A comparand that no clock ever reaches must neither fire nor upset the clock.
#[test]
fn a_timer_beyond_the_end_of_time_never_fires() {
    for time in [u64::MAX, u64::MAX / 100, u64::MAX / 100 - 1, 1 << 60] {
        for gear in [Gear::Functional, Gear::Timed] {
            let mut bare = Bare::new(1);
            bare.set_csr(CSR_SIE, TIMER);
            bare.set_csr(CSR_STIMECMP, time);
            bare.push(WFI);
            bare.finish();
            assert_eq!(bare.run_to_any_end(gear).outcome.end.exit, Exit::Deadlocked, "{time:#x} {gear:?}");
        }
    }
}

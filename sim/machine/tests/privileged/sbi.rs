//! Every SBI function and its errors (RISC-V SBI specification 2.0).

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_machine::Gear;

const NOT_SUPPORTED: u64 = -2_i64 as u64;
const INVALID_PARAMETER: u64 = -3_i64 as u64;
const INVALID_ADDRESS: u64 = -5_i64 as u64;
const ALREADY_AVAILABLE: u64 = -6_i64 as u64;
const ALL: u64 = u64::MAX;

/// Calls from hart 0 of two, of which the second never starts: extension, function, arguments, error, value.
type Call = (u64, u64, &'static [u64], u64, u64);

fn check(calls: &'static [Call]) {
    let build = |bare: &mut Bare| {
        for (extension, function, arguments, _, _) in calls {
            bare.sbi(*extension, *function, arguments);
            // Nothing that a call made pending may stay for the next.
            bare.set_csr(CSR_STIMECMP, u64::MAX);
            bare.clear_bits(CSR_SIP, SOFTWARE);
        }
        bare.finish();
    };
    in_both_gears(2, build, |logs| {
        let words: [u64; 128] = logs.words(0);
        for (index, call) in calls.iter().enumerate() {
            let found = (words[2 * index], words[2 * index + 1]);
            assert_eq!(found, (call.3, call.4), "{:?}: {:#x} {} {:x?}", logs.gear, call.0, call.1, call.2);
        }
    });
}

#[test]
fn base_knows_what_there_is() {
    check(&[
        (SBI_BASE, 0, &[], 0, 2 << 24),
        (SBI_BASE, 3, &[SBI_BASE], 0, 1),
        (SBI_BASE, 3, &[SBI_TIME], 0, 1),
        (SBI_BASE, 3, &[SBI_IPI], 0, 1),
        (SBI_BASE, 3, &[SBI_FENCE], 0, 1),
        (SBI_BASE, 3, &[SBI_HART], 0, 1),
        (SBI_BASE, 3, &[SBI_RESET], 0, 1),
        (SBI_BASE, 3, &[SBI_CONSOLE], 0, 1),
        // Performance monitoring, steal time, suspend, and the oldest console.
        (SBI_BASE, 3, &[0x0050_4d55], 0, 0),
        (SBI_BASE, 3, &[0x0053_5441], 0, 0),
        (SBI_BASE, 3, &[0x5355_5350], 0, 0),
        (SBI_BASE, 3, &[1], 0, 0),
        (SBI_BASE, 3, &[u64::MAX], 0, 0),
        (SBI_BASE, 4, &[], 0, 0),
        (SBI_BASE, 5, &[], 0, 0),
        (SBI_BASE, 6, &[], 0, 0),
        (SBI_BASE, 7, &[], NOT_SUPPORTED, 0),
        (0x0050_4d55, 0, &[], NOT_SUPPORTED, 0),
        (1, 0, &[65], NOT_SUPPORTED, 0),
        (u64::MAX, 0, &[], NOT_SUPPORTED, 0),
    ]);
}

#[test]
fn hart_masks_name_harts_that_exist() {
    check(&[
        (SBI_TIME, 0, &[0], 0, 0),
        (SBI_TIME, 1, &[0], NOT_SUPPORTED, 0),
        (SBI_IPI, 0, &[1, 0], 0, 0),
        (SBI_IPI, 0, &[3, 0], 0, 0),
        (SBI_IPI, 0, &[1, 1], 0, 0),
        (SBI_IPI, 0, &[0, 0], 0, 0),
        (SBI_IPI, 0, &[0, ALL], 0, 0),
        (SBI_IPI, 0, &[4, 0], INVALID_PARAMETER, 0),
        (SBI_IPI, 0, &[2, 1], INVALID_PARAMETER, 0),
        (SBI_IPI, 0, &[1, 2], INVALID_PARAMETER, 0),
        (SBI_IPI, 0, &[1, 64], INVALID_PARAMETER, 0),
        (SBI_IPI, 0, &[1 << 63, 1], INVALID_PARAMETER, 0),
        (SBI_IPI, 1, &[1, 0], NOT_SUPPORTED, 0),
        (SBI_FENCE, 0, &[3, 0], 0, 0),
        (SBI_FENCE, 0, &[4, 0], INVALID_PARAMETER, 0),
        (SBI_FENCE, 1, &[3, 0, 0, 0], 0, 0),
        (SBI_FENCE, 1, &[3, 0, 0, ALL], 0, 0),
        (SBI_FENCE, 1, &[1, 0, 0xffff_ffff_ffff_f000, 0x1000], 0, 0),
        (SBI_FENCE, 1, &[1, 0, ALL, 0x2000], 0, 0),
        (SBI_FENCE, 1, &[1, 0, 0x1234, 1 << 40], 0, 0),
        (SBI_FENCE, 2, &[0, ALL, 0x1000, 0x1000, 7], 0, 0),
        (SBI_FENCE, 2, &[1, 2, 0x1000, 0x1000, 7], INVALID_PARAMETER, 0),
        (SBI_FENCE, 3, &[1, 0, 0, 0], NOT_SUPPORTED, 0),
        (SBI_FENCE, 6, &[1, 0, 0, 0], NOT_SUPPORTED, 0),
    ]);
}

#[test]
fn hart_states_are_checked() {
    check(&[
        (SBI_HART, 2, &[0], 0, 0),
        (SBI_HART, 2, &[1], 0, 1),
        (SBI_HART, 2, &[2], INVALID_PARAMETER, 0),
        (SBI_HART, 2, &[ALL], INVALID_PARAMETER, 0),
        (SBI_HART, 0, &[0, CODE, 0], ALREADY_AVAILABLE, 0),
        (SBI_HART, 0, &[2, CODE, 0], INVALID_PARAMETER, 0),
        (SBI_HART, 0, &[1, NOWHERE, 0], INVALID_ADDRESS, 0),
        (SBI_HART, 0, &[1, CODE + 1, 0], INVALID_ADDRESS, 0),
        (SBI_HART, 0, &[1, ALL, 0], INVALID_ADDRESS, 0),
        (SBI_HART, 2, &[1], 0, 1),
        (SBI_HART, 3, &[1, CODE, 0], INVALID_PARAMETER, 0),
        (SBI_HART, 3, &[0x1000_0000, CODE, 0], INVALID_PARAMETER, 0),
        (SBI_HART, 3, &[0x8000_0000, NOWHERE, 0], INVALID_ADDRESS, 0),
        (SBI_HART, 3, &[0x8000_0000, CODE + 1, 0], INVALID_ADDRESS, 0),
        (SBI_HART, 3, &[0x8000_0001, CODE, 0], INVALID_PARAMETER, 0),
        (SBI_HART, 4, &[0], NOT_SUPPORTED, 0),
    ]);
}

#[test]
fn resets_and_the_console_are_checked() {
    check(&[
        (SBI_RESET, 0, &[3, 0], INVALID_PARAMETER, 0),
        (SBI_RESET, 0, &[ALL, 0], INVALID_PARAMETER, 0),
        (SBI_RESET, 0, &[0, 2], INVALID_PARAMETER, 0),
        (SBI_RESET, 0, &[1, 0xe000_0000], INVALID_PARAMETER, 0),
        (SBI_RESET, 1, &[0, 0], NOT_SUPPORTED, 0),
        (SBI_CONSOLE, 0, &[0, DATA, 0], 0, 0),
        (SBI_CONSOLE, 0, &[4, NOWHERE, 0], INVALID_PARAMETER, 0),
        (SBI_CONSOLE, 0, &[4, DATA, 1], INVALID_PARAMETER, 0),
        (SBI_CONSOLE, 0, &[ALL, DATA, 0], INVALID_PARAMETER, 0),
        (SBI_CONSOLE, 0, &[4, 0x8000_0000 + (16 << 20) - 2, 0], INVALID_PARAMETER, 0),
        // A call may write less than it was given.
        (SBI_CONSOLE, 0, &[1 << 20, 0x8000_0000, 0], 0, 64 << 10),
        (SBI_CONSOLE, 1, &[4, DATA, 0], 0, 0),
        (SBI_CONSOLE, 1, &[4, NOWHERE, 0], INVALID_PARAMETER, 0),
        (SBI_CONSOLE, 2, &[0x1_0041], 0, 0),
        (SBI_CONSOLE, 3, &[0], NOT_SUPPORTED, 0),
    ]);
}

#[test]
fn resets_end_the_run_as_they_say() {
    let ends = [
        (0, 0, Exit::PoweredOff),
        (1, 0, Exit::Reset),
        (2, 0, Exit::Reset),
        (0, 1, Exit::Failed),
        (1, 1, Exit::Failed),
    ];
    for (kind, reason, exit) in ends {
        let mut bare = Bare::new(1);
        bare.sbi(SBI_RESET, 0, &[kind, reason]);
        assert_eq!(bare.run_to_any_end(Gear::Functional).outcome.end.exit, exit, "{kind} {reason}");
    }
}

#[test]
fn the_console_prints_and_reads() {
    for gear in [Gear::Functional, Gear::Timed] {
        let mut bare = Bare::new(1);
        bare.set_bytes(DATA, b"hello");
        bare.sbi(SBI_CONSOLE, 0, &[5, DATA, 0]);
        bare.sbi(SBI_CONSOLE, 2, &[u64::from(b'!')]);
        // What was typed comes back, as much as there is.
        bare.sbi(SBI_CONSOLE, 1, &[64, DATA + 64, 0]);
        bare.push(addi(A0, A1, 0));
        bare.load(A1, DATA + 64);
        bare.sbi(SBI_CONSOLE, 0, &[]);
        bare.sbi(SBI_RESET, 0, &[0, 0]);
        bare.typed = b"typed".to_vec();
        let end = bare.run_to_any_end(gear);
        assert_eq!(String::from_utf8_lossy(&end.printed), "hello!typed");
    }
}

/// A call changes a0 and a1 and nothing else.
#[test]
fn a_call_keeps_the_other_registers() {
    let kept: Vec<u32> = (1..28).filter(|register| ![A0, A1].contains(register)).collect();
    let build = |bare: &mut Bare| {
        for register in &kept {
            bare.load(*register, 0x1000 + u64::from(*register));
        }
        bare.load(16, 3);
        bare.load(17, SBI_BASE);
        bare.push(ECALL);
        for register in &kept {
            bare.log(*register);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        for (register, word) in kept.iter().zip(logs.words::<25>(0)) {
            let expected = match register {
                16 => 3,
                17 => SBI_BASE,
                register => 0x1000 + u64::from(*register),
            };
            assert_eq!(word, expected, "x{register}");
        }
    });
}

#[test]
fn the_timer_call_sets_and_clears_the_interrupt() {
    let build = |bare: &mut Bare| {
        for time in [0, u64::MAX] {
            bare.sbi_quietly(SBI_TIME, 0, &[time]);
            bare.log_csr(CSR_SIP);
            bare.log_csr(CSR_STIMECMP);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| assert_eq!(logs.words::<4>(0), [TIMER, 0, 0, u64::MAX]));
}

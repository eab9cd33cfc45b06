//! Directed tables for each rule of the specification, and properties over all bit patterns. IEEE arithmetic of the
//! host and of SoftFloat are the oracles.

mod differential;

use super::soft::collect;
use super::*;
use proptest::prelude::*;
use softfloat_wrapper_riscv::{F32, F64, Float};

const S: u32 = 0;
const D: u32 = 1;
const RNE: u32 = 0;
const RTZ: u32 = 1;
const RDN: u32 = 2;
const RUP: u32 = 3;
const RMM: u32 = 4;
const DYN: u32 = 7;
const MODES: [(u32, RoundingMode); 5] = [
    (RNE, RoundingMode::TiesToEven),
    (RTZ, RoundingMode::TowardZero),
    (RDN, RoundingMode::TowardNegative),
    (RUP, RoundingMode::TowardPositive),
    (RMM, RoundingMode::TiesToAway),
];
const NX: u8 = FLAG_INEXACT;
const UF: u8 = FLAG_UNDERFLOW;
const OF: u8 = FLAG_OVERFLOW;
const DZ: u8 = FLAG_DIVIDE_BY_ZERO;
const NV: u8 = FLAG_INVALID;
const NAN_S: u64 = 0xffff_ffff_7fc0_0000;
const NAN_D: u64 = 0x7ff8_0000_0000_0000;
const SIGNALING_S: u64 = 0xffff_ffff_7f80_0001;
const SIGNALING_D: u64 = 0x7ff0_0000_0000_0001;

fn op(funct5: u32, format: u32, rs2: u32, rm: u32) -> u32 {
    (funct5 << 27) | (format << 25) | (rs2 << 20) | (rm << 12) | OPCODE_OP_FP
}

/// Computes any instruction, as the machine does.
fn execute(instruction: u32, operands: [u64; 3], fcsr: u8) -> Result<FloatResult, InvalidRoundingMode> {
    let [a, b, _] = operands;
    execute_inline(instruction, [a, b], fcsr).map_or_else(|| execute_by_call(instruction, operands, fcsr), Ok)
}

/// The value and the flags, which an inexact flag that was accrued before does not change.
fn run(instruction: u32, operands: [u64; 3]) -> (u64, u8) {
    assert!(form(instruction).is_some(), "{instruction:#010x} has a form");
    let with = |fflags| execute(instruction, operands, fflags).expect("static or valid rounding mode");
    let (result, accrued) = (with(0), with(NX));
    assert_eq!((accrued.value, accrued.flags | NX), (result.value, result.flags | NX), "{instruction:#010x} after NX");
    (result.value, result.flags)
}

fn s(value: f32) -> u64 {
    0xffff_ffff_0000_0000 | u64::from(value.to_bits())
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

#[test]
fn reserved_encodings_have_no_form() {
    for (why, instruction) in [
        ("static mode 5", op(funct5::ADD, S, 0, 5)),
        ("static mode 6", op(funct5::MUL, D, 0, 6)),
        ("static mode 5, fused", OPCODE_FMADD | 5 << 12),
        ("static mode 6, conversion", op(funct5::CONVERT_TO_INTEGER, S, 0, 6)),
        ("format H", op(funct5::ADD, 2, 0, 0)),
        ("format Q", op(funct5::ADD, 3, 0, 0)),
        ("format Q, fused", OPCODE_FNMADD | 3 << 25),
        ("sqrt with rs2", op(funct5::SQRT, S, 1, 0)),
        ("sign injection 3", op(funct5::SIGN_INJECT, S, 0, 3)),
        ("min/max 2", op(funct5::MIN_MAX, D, 0, 2)),
        ("comparison 3", op(funct5::COMPARE, D, 0, 3)),
        ("S to S", op(funct5::CONVERT_FORMAT, S, 0, 0)),
        ("D to D", op(funct5::CONVERT_FORMAT, D, 1, 0)),
        ("H to S", op(funct5::CONVERT_FORMAT, S, 2, 0)),
        ("integer kind 4", op(funct5::CONVERT_TO_INTEGER, S, 4, 0)),
        ("integer kind 4", op(funct5::CONVERT_FROM_INTEGER, S, 4, 0)),
        ("class with rs2", op(funct5::MOVE_TO_INTEGER_OR_CLASS, S, 1, 1)),
        ("move 2", op(funct5::MOVE_TO_INTEGER_OR_CLASS, S, 0, 2)),
        ("move to float 1", op(funct5::MOVE_FROM_INTEGER, S, 0, 1)),
        ("unassigned", op(0b11111, S, 0, 0)),
        ("another opcode", 0x33),
    ] {
        assert_eq!(form(instruction), None, "{why}: {instruction:#010x}");
    }
}

#[test]
fn forms_name_the_registers() {
    let form_of = |instruction| {
        let form = form(instruction).expect("valid");
        (form.rd_is_integer, form.rs1_is_integer, form.uses_rs2, form.uses_rs3, form.rounds)
    };
    for format in [S, D] {
        assert_eq!(form_of(op(funct5::DIV, format, 9, DYN)), (false, false, true, false, true));
        assert_eq!(form_of(op(funct5::SQRT, format, 0, DYN)), (false, false, false, false, true));
        assert_eq!(form_of(op(funct5::MIN_MAX, format, 9, 1)), (false, false, true, false, false));
        assert_eq!(form_of(op(funct5::SIGN_INJECT, format, 9, 2)), (false, false, true, false, false));
        assert_eq!(form_of(op(funct5::COMPARE, format, 9, 2)), (true, false, true, false, false));
        assert_eq!(form_of(op(funct5::CONVERT_TO_INTEGER, format, 3, 4)), (true, false, false, false, true));
        assert_eq!(form_of(op(funct5::CONVERT_FROM_INTEGER, format, 3, 4)), (false, true, false, false, true));
        assert_eq!(form_of(op(funct5::MOVE_TO_INTEGER_OR_CLASS, format, 0, 1)), (true, false, false, false, false));
        assert_eq!(form_of(op(funct5::MOVE_FROM_INTEGER, format, 0, 0)), (false, true, false, false, false));
        assert_eq!(form_of(op(funct5::CONVERT_FORMAT, format, 1 - format, 7)), (false, false, false, false, true));
        assert_eq!(form_of(OPCODE_FMSUB | format << 25), (false, false, true, true, true));
    }
}

#[test]
fn dynamic_rounding_reads_frm_and_rejects_reserved_modes() {
    let third = |rm, frm| execute(op(funct5::DIV, D, 0, rm), [d(1.0), d(3.0), 0], frm << 5);
    let (down, up) = (0x3fd5_5555_5555_5555, 0x3fd5_5555_5555_5556);
    for (frm, value) in [(0, down), (1, down), (2, down), (3, up), (4, down)] {
        assert_eq!(third(DYN, frm), Ok(FloatResult { value, flags: NX }));
    }
    for frm in 5..=7 {
        assert_eq!(third(DYN, frm), Err(InvalidRoundingMode));
        assert!(third(RNE, frm).is_ok(), "a static mode does not read frm");
        let min = op(funct5::MIN_MAX, D, 0, 0);
        assert!(execute(min, [0; 3], frm << 5).is_ok(), "an instruction that does not round does not read frm");
    }
}

#[test]
fn arithmetic_follows_the_special_cases() {
    let (inf, max, tiny) = (d(f64::INFINITY), d(f64::MAX), 1);
    for (funct5, rm, a, b, expected) in [
        (funct5::ADD, RNE, d(1.0), d(-1.0), (d(0.0), 0)),
        (funct5::ADD, RDN, d(1.0), d(-1.0), (d(-0.0), 0)),
        (funct5::ADD, RNE, d(-0.0), d(-0.0), (d(-0.0), 0)),
        (funct5::ADD, RNE, d(-0.0), d(0.0), (d(0.0), 0)),
        (funct5::SUB, RUP, d(2.5), d(2.5), (d(0.0), 0)),
        (funct5::ADD, RNE, inf, d(f64::NEG_INFINITY), (NAN_D, NV)),
        (funct5::SUB, RNE, inf, inf, (NAN_D, NV)),
        (funct5::MUL, RNE, inf, d(-0.0), (NAN_D, NV)),
        (funct5::DIV, RNE, d(0.0), d(0.0), (NAN_D, NV)),
        (funct5::DIV, RNE, inf, inf, (NAN_D, NV)),
        (funct5::DIV, RNE, d(-3.0), d(0.0), (d(f64::NEG_INFINITY), DZ)),
        (funct5::DIV, RNE, inf, d(0.0), (inf, 0)),
        (funct5::SQRT, RNE, d(-1.0), 0, (NAN_D, NV)),
        (funct5::SQRT, RNE, d(-0.0), 0, (d(-0.0), 0)),
        (funct5::SQRT, RNE, d(2.25), 0, (d(1.5), 0)),
        (funct5::SQRT, RUP, d(2.0), 0, (0x3ff6_a09e_667f_3bcd, NX)),
        (funct5::ADD, RNE, 0x7ff8_0000_0000_1234, d(1.0), (NAN_D, 0)),
        (funct5::ADD, RNE, d(1.0), SIGNALING_D, (NAN_D, NV)),
        (funct5::MUL, RNE, 0xfff8_0000_0000_0001, SIGNALING_D, (NAN_D, NV)),
        (funct5::ADD, RNE, max, max, (inf, OF | NX)),
        (funct5::ADD, RTZ, max, max, (max, OF | NX)),
        (funct5::ADD, RDN, max, max, (max, OF | NX)),
        (funct5::ADD, RMM, max, max, (inf, OF | NX)),
        (funct5::MUL, RUP, max, d(-2.0), (d(f64::MIN), OF | NX)),
        (funct5::MUL, RNE, tiny, d(0.5), (0, UF | NX)),
        (funct5::MUL, RMM, tiny, d(0.5), (tiny, UF | NX)),
        (funct5::MUL, RUP, tiny, d(0.25), (tiny, UF | NX)),
        (funct5::MUL, RNE, 2, d(0.5), (tiny, 0)),
        (funct5::ADD, RNE, tiny, 0x000f_ffff_ffff_ffff, (0x0010_0000_0000_0000, 0)),
    ] {
        let name = format!("{funct5:#07b} rm {rm} {a:#x} {b:#x}");
        let rs2 = if funct5 == funct5::SQRT { 0 } else { 1 };
        assert_eq!(run(op(funct5, D, rs2, rm), [a, b, 0]), expected, "{name}");
    }
}

/// A result that rounds up to the smallest normal number is tiny only if rounding with an unbounded exponent would
/// leave it below that number.
#[test]
fn tininess_is_detected_after_rounding() {
    let min_normal = 0x0010_0000_0000_0000;
    let multiply = op(funct5::MUL, D, 0, RNE);
    let below_one = 0x3fef_ffff_ffff_ffff;
    // (1 - 2^-53) * 2^-1022 has 53 bits: an unbounded exponent would represent it, below the smallest normal number.
    assert_eq!(run(multiply, [min_normal, below_one, 0]), (min_normal, UF | NX));
    // (1 + 2^-52) * (1 - 2^-53) * 2^-1022 is above it.
    assert_eq!(run(multiply, [min_normal + 1, below_one, 0]), (min_normal, NX));
    // (1 - 2^-58) * 2^-1022 has more than 53 bits: with an unbounded exponent it rounds to 2^-1022 or, toward zero,
    // below.
    let fused = |rm| run(OPCODE_FMADD | D << 25 | rm << 12, [d(2_f64.powi(-540)), d(-2_f64.powi(-540)), min_normal]);
    for rm in [RNE, RUP, RMM] {
        assert_eq!(fused(rm), (min_normal, NX), "rm {rm}");
    }
    for rm in [RTZ, RDN] {
        assert_eq!(fused(rm), (min_normal - 1, UF | NX), "rm {rm}");
    }
    // ((1 - 2^-53) * 2^-511)^2 rounds up to (1 - 2^-53) * 2^-1022, which is tiny.
    let scaled = 0x2000_0000_0000_0000 - 1;
    assert_eq!(run(op(funct5::MUL, D, 0, RUP), [scaled, scaled, 0]), (min_normal, UF | NX));
}

#[test]
fn singles_that_are_not_boxed_are_the_canonical_nan() {
    let one = s(1.0);
    let unboxed = 0x0000_0000_3f80_0000;
    assert_eq!(run(op(funct5::ADD, S, 0, RNE), [one, unboxed, 0]), (NAN_S, 0));
    assert_eq!(run(op(funct5::SIGN_INJECT, S, 0, 1), [unboxed, one, 0]), (0xffff_ffff_ffc0_0000, 0));
    assert_eq!(run(op(funct5::MIN_MAX, S, 0, 0), [unboxed, one, 0]), (one, 0));
    assert_eq!(run(op(funct5::COMPARE, S, 0, 2), [unboxed, unboxed, 0]), (0, 0));
    assert_eq!(run(op(funct5::MOVE_TO_INTEGER_OR_CLASS, S, 0, 1), [unboxed, 0, 0]), (1 << 9, 0));
    assert_eq!(run(op(funct5::CONVERT_FORMAT, D, 0, 0), [unboxed, 0, 0]), (NAN_D, 0));
    assert_eq!(run(op(funct5::CONVERT_TO_INTEGER, S, 0, 0), [unboxed, 0, 0]), (i32::MAX as u64, NV));
    assert_eq!(run(OPCODE_FMADD, [one, one, unboxed]), (NAN_S, 0));
    // Moves copy bits and ignore the NaN box.
    let bits = 0x1234_5678_89ab_cdef;
    assert_eq!(run(op(funct5::MOVE_TO_INTEGER_OR_CLASS, S, 0, 0), [bits, 0, 0]).0, 0xffff_ffff_89ab_cdef);
    assert_eq!(run(op(funct5::MOVE_TO_INTEGER_OR_CLASS, D, 0, 0), [bits, 0, 0]).0, bits);
    assert_eq!(run(op(funct5::MOVE_FROM_INTEGER, S, 0, 0), [bits, 0, 0]).0, 0xffff_ffff_89ab_cdef);
    assert_eq!(run(op(funct5::MOVE_FROM_INTEGER, D, 0, 0), [bits, 0, 0]).0, bits);
}

#[test]
fn sign_injection_keeps_nan_payloads() {
    let payload = 0x7ff0_0000_0000_1234;
    let negative = 1 << 63;
    assert_eq!(run(op(funct5::SIGN_INJECT, D, 0, 0), [payload, d(-1.0), 0]), (payload | negative, 0));
    assert_eq!(run(op(funct5::SIGN_INJECT, D, 0, 1), [payload, d(1.0), 0]), (payload | negative, 0));
    assert_eq!(run(op(funct5::SIGN_INJECT, D, 0, 2), [payload | negative, d(-1.0), 0]), (payload, 0));
}

#[test]
fn minimum_and_maximum_prefer_numbers_and_order_zeros() {
    let quiet = 0x7ff8_0000_0000_1234;
    for (a, b, smaller, larger, flags) in [
        (d(1.0), d(2.0), d(1.0), d(2.0), 0),
        (d(-0.0), d(0.0), d(-0.0), d(0.0), 0),
        (d(0.0), d(-0.0), d(-0.0), d(0.0), 0),
        (d(-1.0), d(f64::NEG_INFINITY), d(f64::NEG_INFINITY), d(-1.0), 0),
        (quiet, d(3.0), d(3.0), d(3.0), 0),
        (d(3.0), quiet, d(3.0), d(3.0), 0),
        (SIGNALING_D, d(3.0), d(3.0), d(3.0), NV),
        (d(3.0), SIGNALING_D, d(3.0), d(3.0), NV),
        (quiet, quiet, NAN_D, NAN_D, 0),
        (quiet, SIGNALING_D, NAN_D, NAN_D, NV),
    ] {
        assert_eq!(run(op(funct5::MIN_MAX, D, 0, 0), [a, b, 0]), (smaller, flags), "min {a:#x} {b:#x}");
        assert_eq!(run(op(funct5::MIN_MAX, D, 0, 1), [a, b, 0]), (larger, flags), "max {a:#x} {b:#x}");
    }
    assert_eq!(run(op(funct5::MIN_MAX, S, 0, 0), [SIGNALING_S, s(3.0), 0]), (s(3.0), NV));
}

#[test]
fn comparisons_signal_as_specified() {
    for (a, b, le, lt, eq) in [
        (d(1.0), d(2.0), (1, 0), (1, 0), (0, 0)),
        (d(2.0), d(1.0), (0, 0), (0, 0), (0, 0)),
        (d(-0.0), d(0.0), (1, 0), (0, 0), (1, 0)),
        (NAN_D, d(0.0), (0, NV), (0, NV), (0, 0)),
        (d(0.0), SIGNALING_D, (0, NV), (0, NV), (0, NV)),
    ] {
        for (funct3, expected) in [(0, le), (1, lt), (2, eq)] {
            assert_eq!(run(op(funct5::COMPARE, D, 0, funct3), [a, b, 0]), expected, "{funct3} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn classes_are_the_ten_of_the_table() {
    let doubles = [
        d(f64::NEG_INFINITY),
        d(-1.0),
        0x8000_0000_0000_0001,
        d(-0.0),
        d(0.0),
        0x000f_ffff_ffff_ffff,
        d(f64::MIN_POSITIVE),
        d(f64::INFINITY),
        SIGNALING_D,
        0xffff_ffff_ffff_ffff,
    ];
    let singles = [
        s(f32::NEG_INFINITY),
        s(-1.0),
        0xffff_ffff_8000_0001,
        s(-0.0),
        s(0.0),
        0xffff_ffff_007f_ffff,
        s(f32::MIN_POSITIVE),
        s(f32::INFINITY),
        SIGNALING_S,
        0xffff_ffff_ffff_ffff,
    ];
    for (format, values) in [(D, doubles), (S, singles)] {
        for (bit, value) in values.into_iter().enumerate() {
            assert_eq!(
                run(op(funct5::MOVE_TO_INTEGER_OR_CLASS, format, 0, 1), [value, 0, 0]),
                (1 << bit, 0),
                "{value:#x}"
            );
        }
    }
}

#[test]
fn conversions_to_integers_saturate_and_round() {
    const W: u32 = 0;
    const WU: u32 = 1;
    const L: u32 = 2;
    const LU: u32 = 3;
    let int_min = i32::MIN as u64;
    for (kind, rm, value, expected) in [
        (W, RNE, 2.5, (2, NX)),
        (W, RNE, 3.5, (4, NX)),
        (W, RMM, 2.5, (3, NX)),
        (W, RMM, -2.5, (-3_i64 as u64, NX)),
        (W, RTZ, -2.9, (-2_i64 as u64, NX)),
        (W, RDN, -2.1, (-3_i64 as u64, NX)),
        (W, RUP, 2.1, (3, NX)),
        (W, RUP, -0.9, (0, NX)),
        (W, RDN, 5e-324, (0, NX)),
        (W, RUP, 5e-324, (1, NX)),
        (W, RNE, -0.0, (0, 0)),
        (W, RTZ, 2147483647.9, (i32::MAX as u64, NX)),
        (W, RNE, 2147483647.5, (i32::MAX as u64, NV)),
        (W, RNE, -2147483648.5, (int_min, NX)),
        (W, RDN, -2147483648.5, (int_min, NV)),
        (W, RNE, f64::NAN, (i32::MAX as u64, NV)),
        (W, RNE, f64::INFINITY, (i32::MAX as u64, NV)),
        (W, RNE, f64::NEG_INFINITY, (int_min, NV)),
        (WU, RNE, 4294967295.0, (u64::MAX, 0)),
        (WU, RNE, 2147483648.0, (int_min, 0)),
        (WU, RNE, 4294967296.0, (u64::MAX, NV)),
        (WU, RTZ, -0.9, (0, NX)),
        (WU, RDN, -0.1, (0, NV)),
        (WU, RNE, -1.0, (0, NV)),
        (WU, RNE, f64::NAN, (u64::MAX, NV)),
        (WU, RNE, f64::NEG_INFINITY, (0, NV)),
        (L, RNE, 9223372036854775808.0, (i64::MAX as u64, NV)),
        (L, RNE, -9223372036854775808.0, (i64::MIN as u64, 0)),
        (L, RNE, -9223372036854777856.0, (i64::MIN as u64, NV)),
        (L, RNE, -f64::NAN, (i64::MAX as u64, NV)),
        (LU, RNE, 18446744073709549568.0, (18446744073709549568, 0)),
        (LU, RNE, 18446744073709551616.0, (u64::MAX, NV)),
        (LU, RNE, f64::MAX, (u64::MAX, NV)),
        (LU, RNE, f64::MIN, (0, NV)),
        (LU, RUP, 0.1, (1, NX)),
    ] {
        let instruction = op(funct5::CONVERT_TO_INTEGER, D, kind, rm);
        assert_eq!(run(instruction, [d(value), 0, 0]), expected, "kind {kind} rm {rm} {value:e}");
    }
    assert_eq!(run(op(funct5::CONVERT_TO_INTEGER, S, LU, RNE), [s(f32::MAX), 0, 0]), (u64::MAX, NV));
    assert_eq!(run(op(funct5::CONVERT_TO_INTEGER, S, L, RTZ), [s(-1.5), 0, 0]), (u64::MAX, NX));
}

#[test]
fn conversions_from_integers_and_between_formats() {
    let minus_one = u64::MAX;
    for (format, kind, rm, integer, expected) in [
        (D, 0, RNE, 0xffff_ffff, (d(-1.0), 0)),
        (D, 1, RNE, minus_one, (d(4294967295.0), 0)),
        (D, 2, RNE, (1 << 53) + 1, (d(9007199254740992.0), NX)),
        (D, 2, RUP, (1 << 53) + 1, (d(9007199254740994.0), NX)),
        (D, 3, RMM, minus_one, (d(18446744073709551616.0), NX)),
        (D, 3, RTZ, minus_one, (0x43ef_ffff_ffff_ffff, NX)),
        (S, 0, RNE, 16777217, (s(16777216.0), NX)),
        (S, 1, RMM, 16777217, (s(16777218.0), NX)),
        (S, 2, RDN, 0, (s(0.0), 0)),
    ] {
        assert_eq!(
            run(op(funct5::CONVERT_FROM_INTEGER, format, kind, rm), [integer, 0, 0]),
            expected,
            "kind {kind} {integer:#x}"
        );
    }
    let narrow = |rm, value| run(op(funct5::CONVERT_FORMAT, S, 1, rm), [value, 0, 0]);
    let widen = |value| run(op(funct5::CONVERT_FORMAT, D, 0, RNE), [value, 0, 0]);
    assert_eq!(narrow(RNE, d(1e300)), (s(f32::INFINITY), OF | NX));
    assert_eq!(narrow(RTZ, d(1e300)), (s(f32::MAX), OF | NX));
    assert_eq!(narrow(RNE, d(1e-300)), (s(0.0), UF | NX));
    assert_eq!(narrow(RUP, d(1e-300)), (0xffff_ffff_0000_0001, UF | NX));
    assert_eq!(narrow(RNE, d(0.1)), (s(0.1), NX));
    assert_eq!(narrow(RNE, 0x7ff8_0000_0000_1234), (NAN_S, 0));
    assert_eq!(narrow(RNE, SIGNALING_D), (NAN_S, NV));
    assert_eq!(widen(SIGNALING_S), (NAN_D, NV));
    assert_eq!(widen(0xffff_ffff_ffc0_1234), (NAN_D, 0));
    assert_eq!(widen(0xffff_ffff_0000_0001), (d(f64::from(f32::from_bits(1))), 0));
    assert_eq!(widen(s(-0.0)), (d(-0.0), 0));
}

#[test]
fn fused_forms_negate_product_and_addend() {
    for (opcode, expected) in [(OPCODE_FMADD, 10.0), (OPCODE_FMSUB, 2.0), (OPCODE_FNMSUB, -2.0), (OPCODE_FNMADD, -10.0)]
    {
        assert_eq!(run(opcode, [s(2.0), s(3.0), s(4.0)]), (s(expected), 0));
        let double = opcode | D << 25;
        assert_eq!(run(double, [d(2.0), d(3.0), d(4.0)]), (d(f64::from(expected)), 0));
        // Infinity times zero is invalid even when the addend is a quiet NaN.
        assert_eq!(run(double, [d(f64::INFINITY), 0, NAN_D]), (NAN_D, NV));
        assert_eq!(run(double, [d(1.0), d(1.0), NAN_D]), (NAN_D, 0));
        assert_eq!(run(double, [d(1.0), SIGNALING_D, d(1.0)]), (NAN_D, NV));
    }
    // The sign of an exact zero: -(1 * 1) + 1 is +0, and -0 only when rounding down.
    assert_eq!(run(OPCODE_FNMSUB | D << 25, [d(1.0), d(1.0), d(1.0)]), (d(0.0), 0));
    assert_eq!(run(OPCODE_FNMSUB | D << 25 | RDN << 12, [d(1.0), d(1.0), d(1.0)]), (d(-0.0), 0));
    assert_eq!(run(OPCODE_FNMADD | D << 25, [0, d(1.0), 0]), (d(-0.0), 0));
    // One rounding, not two: 1 + 2^-52 squared minus 1 + 2^-51 leaves 2^-104.
    let a = 0x3ff0_0000_0000_0001;
    assert_eq!(run(OPCODE_FMSUB | D << 25, [a, a, a + 1]), (d(2_f64.powi(-104)), 0));
}

/// Only the speed of guests depends on this.
#[test]
fn common_operations_need_no_call() {
    let is_inline = |instruction, [a, b]: [f64; 2], fflags| {
        let [double, single] = [[d(a), d(b)], [s(a as f32), s(b as f32)]];
        [(D, double), (S, single)]
            .map(|(format, operands)| execute_inline(instruction | format << 25, operands, fflags).is_some())
    };
    for fflags in [0, NX] {
        for funct5 in [funct5::ADD, funct5::SUB, funct5::MUL, funct5::DIV, funct5::COMPARE, funct5::CONVERT_TO_INTEGER]
        {
            for operands in [[1.0, 3.0], [-0.1, 3.0], [0.0, 3.0]] {
                assert_eq!(is_inline(op(funct5, 0, 0, RNE), operands, fflags), [true; 2], "{funct5:#07b} {operands:?}");
            }
        }
        assert_eq!(is_inline(op(funct5::SQRT, 0, 0, DYN), [2.0, 0.0], fflags), [true; 2]);
        assert!(execute_inline(op(funct5::CONVERT_FORMAT, S, 1, RNE), [d(0.1), 0], fflags).is_some());
        for integer in [0, 1, u64::MAX, i64::MAX as u64] {
            assert!(execute_inline(op(funct5::CONVERT_FROM_INTEGER, S, 2, RNE), [integer, 0], fflags).is_some());
        }
    }
}

#[test]
fn flags_do_not_leak_between_calls() {
    assert_eq!(run(op(funct5::DIV, D, 0, RNE), [d(1.0), 0, 0]).1, DZ);
    assert_eq!(run(op(funct5::MUL, D, 0, RTZ), [d(2.0), d(2.0), 0]), (d(4.0), 0));
    assert_eq!(run(op(funct5::CONVERT_FROM_INTEGER, D, 2, RTZ), [4, 0, 0]), (d(4.0), 0));
}

/// Bit patterns that are likely to reveal errors of arithmetic: few significant bits, neighbouring exponents,
/// subnormals, special values.
fn pattern(exponent_bits: u32, fraction_bits: u32) -> impl Strategy<Value = u64> {
    let fraction_mask = (1_u64 << fraction_bits) - 1;
    let exponent_max = (1_u64 << exponent_bits) - 1;
    let bias = exponent_max >> 1;
    let exponent = prop_oneof![
        4 => bias - 4..=bias + 4,
        2 => bias / 2..=bias + bias / 2,
        2 => 0..=exponent_max,
        1 => 0..=2_u64,
        1 => exponent_max - 2..=exponent_max,
    ];
    let fraction = prop_oneof![
        2 => any::<u64>(),
        1 => (0..64_u64, 0..64_u32).prop_map(|(value, shift)| value << shift),
        1 => (0..4_u64).prop_map(|value| value.wrapping_neg()),
        1 => any::<u64>().prop_map(move |value| value << (fraction_bits / 2)),
    ];
    (any::<bool>(), exponent, fraction).prop_map(move |(sign, exponent, fraction)| {
        (u64::from(sign) << (exponent_bits + fraction_bits)) | (exponent << fraction_bits) | (fraction & fraction_mask)
    })
}

/// All operations that round, in one format: SoftFloat's answer, and for nearest even the host's value.
fn oracle_double(funct5: u32, [a, b, _]: [u64; 3], mode: RoundingMode) -> (FloatResult, f64) {
    let (x, y) = (F64::from_bits(a), F64::from_bits(b));
    let (p, q) = (f64::from_bits(a), f64::from_bits(b));
    match funct5 {
        funct5::ADD => (collect(|| x.add(y, mode).bits()), p + q),
        funct5::SUB => (collect(|| x.sub(y, mode).bits()), p - q),
        funct5::MUL => (collect(|| x.mul(y, mode).bits()), p * q),
        funct5::DIV => (collect(|| x.div(y, mode).bits()), p / q),
        _ => (collect(|| x.sqrt(mode).bits()), p.sqrt()),
    }
}

fn oracle_single(funct5: u32, [a, b, _]: [u64; 3], mode: RoundingMode) -> (FloatResult, f32) {
    let (x, y) = (F32::from_bits(a as u32), F32::from_bits(b as u32));
    let (p, q) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    match funct5 {
        funct5::ADD => (collect(|| x.add(y, mode).bits().into()), p + q),
        funct5::SUB => (collect(|| x.sub(y, mode).bits().into()), p - q),
        funct5::MUL => (collect(|| x.mul(y, mode).bits().into()), p * q),
        funct5::DIV => (collect(|| x.div(y, mode).bits().into()), p / q),
        _ => (collect(|| x.sqrt(mode).bits().into()), p.sqrt()),
    }
}

const ROUNDED: [u32; 5] = [funct5::ADD, funct5::SUB, funct5::MUL, funct5::DIV, funct5::SQRT];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn double_arithmetic_equals_both_oracles(a in pattern(11, 52), b in pattern(11, 52)) {
        for funct5 in ROUNDED {
            let rs2 = u32::from(funct5 != funct5::SQRT);
            for (rm, mode) in MODES {
                let (expected, host) = oracle_double(funct5, [a, b, 0], mode);
                let actual = run(op(funct5, D, rs2, rm), [a, b, 0]);
                prop_assert_eq!(actual, (expected.value, expected.flags), "{:#07b} rm {}", funct5, rm);
                if rm == RNE {
                    let host = if host.is_nan() { NAN_D } else { host.to_bits() };
                    prop_assert_eq!(actual.0, host);
                }
            }
        }
    }

    #[test]
    fn single_arithmetic_equals_both_oracles(a in pattern(8, 23), b in pattern(8, 23)) {
        for funct5 in ROUNDED {
            let rs2 = u32::from(funct5 != funct5::SQRT);
            for (rm, mode) in MODES {
                let (expected, host) = oracle_single(funct5, [a, b, 0], mode);
                let boxes = 0xffff_ffff_0000_0000;
                let actual = run(op(funct5, S, rs2, rm), [a | boxes, b | boxes, 0]);
                prop_assert_eq!(actual, (expected.value | boxes, expected.flags), "{:#07b} rm {}", funct5, rm);
                if rm == RNE {
                    let host = if host.is_nan() { NAN_S } else { s(host) };
                    prop_assert_eq!(actual.0, host);
                }
            }
        }
    }

    #[test]
    fn fused_forms_equal_the_host(a in pattern(11, 52), b in pattern(11, 52), c in pattern(11, 52)) {
        let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        for (opcode, host) in [
            (OPCODE_FMADD, x.mul_add(y, z)), (OPCODE_FMSUB, x.mul_add(y, -z)),
            (OPCODE_FNMSUB, (-x).mul_add(y, z)), (OPCODE_FNMADD, (-x).mul_add(y, -z)),
        ] {
            let host = if host.is_nan() { NAN_D } else { host.to_bits() };
            prop_assert_eq!(run(opcode | D << 25, [a, b, c]).0, host);
        }
    }

    /// A conversion toward zero is Rust's saturating `as`, except for NaN. It is inexact if and only if the result does
    /// not convert back to the operand.
    #[test]
    fn conversions_to_integers_equal_the_host(a in pattern(11, 52), b in pattern(8, 23)) {
        let (x, y) = (f64::from_bits(a), f32::from_bits(b as u32));
        for (format, raw, value) in [(D, a, x), (S, s(y), f64::from(y))] {
            for (kind, integer, min, max) in [
                (0, (value as i32) as u64, -2147483649.0, 2147483648.0),
                (1, (value as u32) as i32 as u64, -1.0, 4294967296.0),
                (2, (value as i64) as u64, -9223372036854777856.0, 9223372036854775808.0),
                (3, value as u64, -1.0, 18446744073709551616.0),
            ] {
                let nan = [i32::MAX as u64, u64::MAX, i64::MAX as u64, u64::MAX][kind as usize];
                let integer = if value.is_nan() { nan } else { integer };
                let flags = if value.is_nan() || value <= min || value >= max {
                    NV
                } else if value.trunc() != value {
                    NX
                } else {
                    0
                };
                let instruction = op(funct5::CONVERT_TO_INTEGER, format, kind, RTZ);
                prop_assert_eq!(run(instruction, [raw, 0, 0]), (integer, flags), "kind {}", kind);
            }
        }
    }

    /// In every mode the value equals SoftFloat's. (The crate's conversions do not report inexact, so the test compares
    /// only NV.)
    #[test]
    fn conversions_to_integers_equal_softfloat(a in pattern(11, 52)) {
        for (rm, mode) in MODES {
            let x = F64::from_bits(a);
            for (kind, expected) in [
                (0, collect(|| x.to_i32(mode) as u64)), (1, collect(|| x.to_u32(mode) as i32 as u64)),
                (2, collect(|| x.to_i64(mode) as u64)), (3, collect(|| x.to_u64(mode))),
            ] {
                let (value, flags) = run(op(funct5::CONVERT_TO_INTEGER, D, kind, rm), [a, 0, 0]);
                prop_assert_eq!((value, flags & NV), (expected.value, expected.flags), "kind {} rm {}", kind, rm);
            }
        }
    }

    #[test]
    fn conversions_from_integers_equal_softfloat(high in any::<u64>(), shift in 0..64_u32) {
        let register = (high as i64 >> shift) as u64;
        for (rm, mode) in MODES {
            for (kind, double, single) in [
                (0, F64::from_i32(register as i32, mode), collect(|| F32::from_i32(register as i32, mode).bits().into())),
                (1, F64::from_u32(register as u32, mode), collect(|| F32::from_u32(register as u32, mode).bits().into())),
                (2, F64::from_i64(register as i64, mode), collect(|| F32::from_i64(register as i64, mode).bits().into())),
                (3, F64::from_u64(register, mode), collect(|| F32::from_u64(register, mode).bits().into())),
            ] {
                prop_assert_eq!(run(op(funct5::CONVERT_FROM_INTEGER, D, kind, rm), [register, 0, 0]).0, double.bits());
                let (value, flags) = run(op(funct5::CONVERT_FROM_INTEGER, S, kind, rm), [register, 0, 0]);
                prop_assert_eq!((value as u32, flags), (single.value as u32, single.flags), "kind {} rm {}", kind, rm);
            }
        }
    }

    /// `execute` handles every instruction word that has a form, with any operands and mode, and keeps singles boxed.
    #[test]
    fn every_word_with_a_form_executes(
        word in any::<u32>(), opcode in 0..5_usize, operands in any::<[u64; 3]>(), frm in 0..8_u8,
    ) {
        let opcode = [OPCODE_FMADD, OPCODE_FMSUB, OPCODE_FNMSUB, OPCODE_FNMADD, OPCODE_OP_FP][opcode];
        let instruction = word & !0x7f | opcode;
        if let Some(form) = form(instruction) {
            let dynamic = form.rounds && rm(instruction) == 7;
            let result = execute(instruction, operands, frm << 5);
            prop_assert_eq!(result.is_err(), dynamic && frm > 4);
            if let Ok(result) = result && !form.rd_is_integer && bits(instruction, 25, 2) == S {
                prop_assert_eq!(result.value >> 32, 0xffff_ffff);
            }
        }
    }
}

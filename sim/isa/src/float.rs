//! The F and D extensions: the operands, the result and the computation of each OP-FP, FMADD, FMSUB, FNMSUB and FNMADD
//! instruction.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, chapters "F" and "D" (version 2.2). Results and flags are those
//! of IEEE 754-2019 with the choices RISC-V makes: every NaN an operation produces is the canonical one, tininess is
//! detected after rounding, and conversions to integers saturate. The functions here are pure: they keep no state
//! between two calls.
//!
//! Arithmetic that must round comes from Berkeley SoftFloat with its RISC-V specialization. Rounding to nearest even,
//! which nearly all programs use, takes the host's own arithmetic if an exact integer test can tell whether the result
//! was rounded (`arithmetic`).

mod arithmetic;
mod format;
#[cfg(test)]
mod tests;

use arithmetic::{add, convert_to_integer, divide, from_integer, multiply, multiply_add, square_root, subtract};
use format::{Double, Format, Single};
use softfloat_wrapper_riscv::RoundingMode;

/// `fflags.NX`: the result was rounded.
pub const FLAG_INEXACT: u8 = 1 << 0;
/// `fflags.UF`: the result is tiny, detected after rounding, and was rounded.
pub const FLAG_UNDERFLOW: u8 = 1 << 1;
/// `fflags.OF`: the rounded result is too large for the format.
pub const FLAG_OVERFLOW: u8 = 1 << 2;
/// `fflags.DZ`: a finite number was divided by zero.
pub const FLAG_DIVIDE_BY_ZERO: u8 = 1 << 3;
/// `fflags.NV`: the operation has no usable result, or an operand was a signaling NaN.
pub const FLAG_INVALID: u8 = 1 << 4;

const OPCODE_FMADD: u32 = 0x43;
const OPCODE_FMSUB: u32 = 0x47;
const OPCODE_FNMSUB: u32 = 0x4b;
const OPCODE_FNMADD: u32 = 0x4f;
const OPCODE_OP_FP: u32 = 0x53;

/// Bits 31:27 of an OP-FP instruction, named in the specification's chapter "RV32/64G Instruction Set Listings".
mod funct5 {
    pub const ADD: u32 = 0b00000;
    pub const SUB: u32 = 0b00001;
    pub const MUL: u32 = 0b00010;
    pub const DIV: u32 = 0b00011;
    pub const SIGN_INJECT: u32 = 0b00100;
    pub const MIN_MAX: u32 = 0b00101;
    pub const CONVERT_FORMAT: u32 = 0b01000;
    pub const SQRT: u32 = 0b01011;
    pub const COMPARE: u32 = 0b10100;
    pub const CONVERT_TO_INTEGER: u32 = 0b11000;
    pub const CONVERT_FROM_INTEGER: u32 = 0b11010;
    pub const MOVE_TO_INTEGER_OR_CLASS: u32 = 0b11100;
    pub const MOVE_FROM_INTEGER: u32 = 0b11110;
}

/// The operands and the result of an OP-FP or FMADD-family instruction. rs1 is always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatForm {
    /// rd names an x register; otherwise an f register.
    pub rd_is_integer: bool,
    /// rs1 names an x register; otherwise an f register.
    pub rs1_is_integer: bool,
    /// The f register rs2 is read.
    pub uses_rs2: bool,
    /// The f register rs3 is read.
    pub uses_rs3: bool,
    /// The `rm` field is a rounding mode, so the instruction is illegal if `rm` is dynamic and `fcsr.frm` is reserved.
    pub rounds: bool,
}

/// The value that an instruction writes to rd, and the flags that it accrues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatResult {
    /// The whole 64-bit register: NaN-boxed for a single-precision result, sign-extended for a 32-bit integer.
    pub value: u64,
    /// Bits to OR into `fcsr.fflags`: NV DZ OF UF NX from bit 4 to bit 0.
    pub flags: u8,
}

impl FloatResult {
    const fn exact(value: u64) -> Self {
        Self { value, flags: 0 }
    }
}

/// The instruction rounds dynamically and `fcsr.frm` holds a reserved mode, or [`form`] does not know the instruction.
/// In both cases the hart raises an illegal-instruction exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRoundingMode;

impl std::fmt::Display for InvalidRoundingMode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("reserved floating-point rounding mode")
    }
}

impl std::error::Error for InvalidRoundingMode {}

const fn bits(instruction: u32, low: u32, width_bits: u32) -> u32 {
    (instruction >> low) & ((1 << width_bits) - 1)
}

const fn rm(instruction: u32) -> u32 {
    bits(instruction, 12, 3)
}

const fn rs2(instruction: u32) -> u32 {
    bits(instruction, 20, 5)
}

/// The registers and the rounding of `instruction`; `None` if it is not an instruction of F or D. Reserved static
/// rounding modes 5 and 6 and the formats H and Q also give `None`.
pub fn form(instruction: u32) -> Option<FloatForm> {
    let is_double = match bits(instruction, 25, 2) {
        0 => false,
        1 => true,
        _ => return None,
    };
    let form = match instruction & 0x7f {
        OPCODE_FMADD | OPCODE_FMSUB | OPCODE_FNMSUB | OPCODE_FNMADD => {
            FloatForm { rd_is_integer: false, rs1_is_integer: false, uses_rs2: true, uses_rs3: true, rounds: true }
        }
        OPCODE_OP_FP => form_op_fp(instruction, is_double)?,
        _ => return None,
    };
    (!form.rounds || !matches!(rm(instruction), 5 | 6)).then_some(form)
}

fn form_op_fp(instruction: u32, is_double: bool) -> Option<FloatForm> {
    let mut form =
        FloatForm { rd_is_integer: false, rs1_is_integer: false, uses_rs2: false, uses_rs3: false, rounds: false };
    let valid = match bits(instruction, 27, 5) {
        funct5::ADD | funct5::SUB | funct5::MUL | funct5::DIV => {
            form.uses_rs2 = true;
            form.rounds = true;
            true
        }
        funct5::SQRT => {
            form.rounds = true;
            rs2(instruction) == 0
        }
        funct5::SIGN_INJECT => {
            form.uses_rs2 = true;
            rm(instruction) <= 2
        }
        funct5::MIN_MAX => {
            form.uses_rs2 = true;
            rm(instruction) <= 1
        }
        funct5::COMPARE => {
            form.uses_rs2 = true;
            form.rd_is_integer = true;
            rm(instruction) <= 2
        }
        funct5::CONVERT_FORMAT => {
            form.rounds = true;
            rs2(instruction) == u32::from(!is_double)
        }
        funct5::CONVERT_TO_INTEGER => {
            form.rounds = true;
            form.rd_is_integer = true;
            rs2(instruction) <= 3
        }
        funct5::CONVERT_FROM_INTEGER => {
            form.rounds = true;
            form.rs1_is_integer = true;
            rs2(instruction) <= 3
        }
        funct5::MOVE_TO_INTEGER_OR_CLASS => {
            form.rd_is_integer = true;
            rs2(instruction) == 0 && rm(instruction) <= 1
        }
        funct5::MOVE_FROM_INTEGER => {
            form.rs1_is_integer = true;
            rs2(instruction) == 0 && rm(instruction) == 0
        }
        _ => false,
    };
    valid.then_some(form)
}

/// Computes `instruction`, for which [`form`] is not `None`.
///
/// `operands` are the raw 64-bit contents of rs1, rs2 and rs3 (operands that [`form`] calls unused are ignored); `frm`
/// is `fcsr.frm`.
///
/// # Errors
/// [`InvalidRoundingMode`] if the instruction rounds dynamically and `frm` is 5, 6 or 7.
#[inline]
pub fn execute(instruction: u32, operands: [u64; 3], frm: u8) -> Result<FloatResult, InvalidRoundingMode> {
    match bits(instruction, 25, 2) {
        0 => execute_format::<Single>(instruction, operands, frm),
        1 => execute_format::<Double>(instruction, operands, frm),
        _ => Err(InvalidRoundingMode),
    }
}

fn rounding_mode(instruction: u32, frm: u8) -> Result<RoundingMode, InvalidRoundingMode> {
    let mode = match rm(instruction) {
        7 => u32::from(frm),
        mode => mode,
    };
    Ok(match mode {
        0 => RoundingMode::TiesToEven,
        1 => RoundingMode::TowardZero,
        2 => RoundingMode::TowardNegative,
        3 => RoundingMode::TowardPositive,
        4 => RoundingMode::TiesToAway,
        _ => return Err(InvalidRoundingMode),
    })
}

fn execute_format<F: Format>(
    instruction: u32,
    operands: [u64; 3],
    frm: u8,
) -> Result<FloatResult, InvalidRoundingMode> {
    // The four fused forms differ in the signs of the product and of the addend; negating an operand is exact.
    let (negate_product, negate_addend) = match instruction & 0x7f {
        OPCODE_OP_FP => return execute_op_fp::<F>(instruction, operands, frm),
        OPCODE_FMADD => (0, 0),
        OPCODE_FMSUB => (0, F::SIGN),
        OPCODE_FNMSUB => (F::SIGN, 0),
        OPCODE_FNMADD => (F::SIGN, F::SIGN),
        _ => return Err(InvalidRoundingMode),
    };
    let mode = rounding_mode(instruction, frm)?;
    let [a, b, c] = operands.map(F::unbox);
    Ok(boxed::<F>(multiply_add::<F>(a ^ negate_product, b, c ^ negate_addend, mode)))
}

/// The same result with the value NaN-boxed.
fn boxed<F: Format>(result: FloatResult) -> FloatResult {
    FloatResult { value: F::boxed(result.value), flags: result.flags }
}

fn execute_op_fp<F: Format>(instruction: u32, operands: [u64; 3], frm: u8) -> Result<FloatResult, InvalidRoundingMode> {
    let [raw, raw2, _] = operands;
    let (a, b) = (F::unbox(raw), F::unbox(raw2));
    let mode = || rounding_mode(instruction, frm);
    Ok(match bits(instruction, 27, 5) {
        funct5::ADD => boxed::<F>(add::<F>(a, b, mode()?)),
        funct5::SUB => boxed::<F>(subtract::<F>(a, b, mode()?)),
        funct5::MUL => boxed::<F>(multiply::<F>(a, b, mode()?)),
        funct5::DIV => boxed::<F>(divide::<F>(a, b, mode()?)),
        funct5::SQRT => boxed::<F>(square_root::<F>(a, mode()?)),
        funct5::SIGN_INJECT => {
            let sign = match rm(instruction) {
                0 => b,
                1 => !b,
                _ => a ^ b,
            } & F::SIGN;
            FloatResult::exact(F::boxed((a & !F::SIGN) | sign))
        }
        funct5::MIN_MAX => boxed::<F>(min_max::<F>(a, b, rm(instruction) == 1)),
        funct5::COMPARE => compare::<F>(a, b, rm(instruction)),
        funct5::CONVERT_FORMAT => F::convert_from_other(raw, mode()?),
        funct5::CONVERT_TO_INTEGER => convert_to_integer::<F>(a, bits(instruction, 20, 2), mode()?),
        funct5::CONVERT_FROM_INTEGER => boxed::<F>(from_integer::<F>(raw, bits(instruction, 20, 2), mode()?)),
        funct5::MOVE_TO_INTEGER_OR_CLASS if rm(instruction) == 0 => FloatResult::exact(F::sign_extend(raw)),
        funct5::MOVE_TO_INTEGER_OR_CLASS => FloatResult::exact(class::<F>(a)),
        funct5::MOVE_FROM_INTEGER => FloatResult::exact(F::boxed(raw)),
        _ => return Err(InvalidRoundingMode),
    })
}

/// FMIN and FMAX: minimumNumber and maximumNumber of IEEE 754-2019, with -0 below +0.
fn min_max<F: Format>(a: u64, b: u64, is_max: bool) -> FloatResult {
    let flags = if F::is_signaling_nan(a) || F::is_signaling_nan(b) { FLAG_INVALID } else { 0 };
    let value = match (F::is_nan(a), F::is_nan(b)) {
        (true, true) => F::CANONICAL_NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            // Equal numbers can differ only in the sign of a zero; then the negative one is the smaller.
            let a_is_smaller = F::less(a, b) || (F::equal(a, b) && a & F::SIGN != 0);
            if a_is_smaller != is_max { a } else { b }
        }
    };
    FloatResult { value, flags }
}

/// FLE, FLT and FEQ, by their funct3 0, 1 and 2: the first two are signaling comparisons, the last is quiet.
fn compare<F: Format>(a: u64, b: u64, funct3: u32) -> FloatResult {
    let is_unordered = F::is_nan(a) || F::is_nan(b);
    let (holds, is_invalid) = match funct3 {
        0 => (F::less(a, b) || F::equal(a, b), is_unordered),
        1 => (F::less(a, b), is_unordered),
        _ => (F::equal(a, b), F::is_signaling_nan(a) || F::is_signaling_nan(b)),
    };
    FloatResult { value: u64::from(holds), flags: if is_invalid { FLAG_INVALID } else { 0 } }
}

/// FCLASS: the one-hot mask of the specification's table "Format of result of FCLASS instruction".
fn class<F: Format>(a: u64) -> u64 {
    let is_negative = a & F::SIGN != 0;
    let magnitude = a & !F::SIGN;
    let bit = if F::is_signaling_nan(a) {
        8
    } else if F::is_nan(a) {
        9
    } else {
        let positive_bit = if magnitude == F::EXPONENT {
            7
        } else if magnitude > F::FRACTION {
            6
        } else if magnitude != 0 {
            5
        } else {
            4
        };
        // The negative classes mirror the positive ones: bit 3 is -0, bit 0 is negative infinity.
        if is_negative { 7 - positive_bit } else { positive_bit }
    };
    1 << bit
}

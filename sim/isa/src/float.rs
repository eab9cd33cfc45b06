//! The F and D extensions: the operands, the result and the computation of each OP-FP, FMADD, FMSUB, FNMSUB and FNMADD
//! instruction.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, chapters "F" and "D" (version 2.2). Results and flags are those
//! of IEEE 754-2019 with the choices RISC-V makes: every NaN an operation produces is the canonical one, tininess is
//! detected after rounding, and conversions to integers saturate. The functions here are pure: they keep no state
//! between two calls.
//!
//! Rounding to nearest even, which nearly all programs use, takes the host's own arithmetic where that gives value and
//! flags exactly (`host`). Everything else comes from Berkeley SoftFloat with its RISC-V specialization (`soft`).

mod conversion;
mod format;
mod fused;
mod host;
mod soft;
#[cfg(test)]
mod tests;

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
    /// Bits to OR into `fcsr.fflags`: NV DZ OF UF NX from bit 4 to bit 0. NX has no meaning if `fcsr` held it before.
    pub flags: u8,
}

impl FloatResult {
    const fn exact(value: u64) -> Self {
        Self { value, flags: 0 }
    }

    const fn rounded(value: u64, is_inexact: bool) -> Self {
        Self { value, flags: if is_inexact { FLAG_INEXACT } else { 0 } }
    }

    /// The same result with the value NaN-boxed.
    fn boxed<F: Format>(self) -> Self {
        Self { value: F::boxed(self.value), flags: self.flags }
    }
}

/// The instruction rounds dynamically and `fcsr.frm` holds a reserved mode: the hart raises an illegal-instruction
/// exception.
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

const fn opcode(instruction: u32) -> u32 {
    bits(instruction, 0, 7)
}

const fn rm(instruction: u32) -> u32 {
    bits(instruction, 12, 3)
}

const fn rs2(instruction: u32) -> u32 {
    bits(instruction, 20, 5)
}

/// Whether the format field of an instruction that has a form names D, not S.
const fn is_double(instruction: u32) -> bool {
    bits(instruction, 25, 2) != 0
}

/// The registers and the rounding of `instruction`; `None` if it is not an instruction of F or D. Reserved static
/// rounding modes 5 and 6 and the formats H and Q also give `None`.
pub fn form(instruction: u32) -> Option<FloatForm> {
    let is_double = match bits(instruction, 25, 2) {
        0 => false,
        1 => true,
        _ => return None,
    };
    let form = match opcode(instruction) {
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

/// How an instruction rounds, and whether it has to find out if it did.
#[derive(Clone, Copy)]
struct Rounding {
    mode: RoundingMode,
    /// `fcsr.fflags` holds inexact already, so raising it again changes nothing.
    is_inexact_accrued: bool,
}

impl Rounding {
    /// The rounding of an instruction that has a form. One that does not round has a function code in place of the
    /// mode; none of these is 7, so its rounding is never invalid.
    #[inline(always)]
    fn of(instruction: u32, fcsr: u8) -> Result<Rounding, InvalidRoundingMode> {
        let mode = match rm(instruction) {
            7 => u32::from(fcsr >> 5),
            mode => mode,
        };
        let mode = match mode {
            0 => RoundingMode::TiesToEven,
            1 => RoundingMode::TowardZero,
            2 => RoundingMode::TowardNegative,
            3 => RoundingMode::TowardPositive,
            4 => RoundingMode::TiesToAway,
            _ => return Err(InvalidRoundingMode),
        };
        Ok(Rounding { mode, is_inexact_accrued: fcsr & FLAG_INEXACT != 0 })
    }

    fn is_to_nearest_even(self) -> bool {
        matches!(self.mode, RoundingMode::TiesToEven)
    }
}

/// Computes `instruction`, for which [`form`] is not `None`, if the host's arithmetic does so without a call, as it does
/// for most instructions of most programs. Otherwise [`execute_by_call`] has to.
///
/// `operands` are the raw 64-bit contents of rs1 and rs2 (an operand that [`form`] calls unused is ignored); `fcsr` has
/// `frm` in its high three bits and `fflags` below.
#[inline(always)]
pub fn execute_inline(instruction: u32, operands: [u64; 2], fcsr: u8) -> Option<FloatResult> {
    if opcode(instruction) != OPCODE_OP_FP {
        return None;
    }
    let rounding = Rounding::of(instruction, fcsr).ok()?;
    if is_double(instruction) {
        host::execute::<Double>(instruction, operands, rounding)
    } else {
        host::execute::<Single>(instruction, operands, rounding)
    }
}

/// Computes an instruction for which [`execute_inline`] gives `None`. `operands` has rs3 too.
///
/// # Errors
/// [`InvalidRoundingMode`] if the instruction rounds dynamically and `fcsr.frm` is 5, 6 or 7.
#[inline]
pub fn execute_by_call(instruction: u32, operands: [u64; 3], fcsr: u8) -> Result<FloatResult, InvalidRoundingMode> {
    let rounding = Rounding::of(instruction, fcsr)?;
    Ok(if is_double(instruction) {
        execute_format::<Double>(instruction, operands, rounding)
    } else {
        execute_format::<Single>(instruction, operands, rounding)
    })
}

#[inline]
fn execute_format<F: Format>(instruction: u32, operands: [u64; 3], rounding: Rounding) -> FloatResult {
    let [a, b, c] = operands.map(F::unbox);
    // The four fused forms differ in the signs of the product and of the addend; negating an operand is exact.
    let (a, c) = match opcode(instruction) {
        OPCODE_FMADD => (a, c),
        OPCODE_FMSUB => (a, c ^ F::SIGN),
        OPCODE_FNMSUB => (a ^ F::SIGN, c),
        OPCODE_FNMADD => (a ^ F::SIGN, c ^ F::SIGN),
        _ => return soft::execute::<F>(instruction, operands[0], operands[1], rounding.mode),
    };
    let result = match fused::multiply_add::<F>(a, b, c, rounding) {
        Some(result) => result,
        None => soft::multiply_add::<F>(a, b, c, rounding.mode),
    };
    result.boxed::<F>()
}

//! Every operation that rounds, in every mode, by Berkeley SoftFloat with its RISC-V specialization.

use super::format::Format;
use super::{FloatResult, bits, funct5};
use softfloat_wrapper_riscv::{ExceptionFlags, Float, RoundingMode};

/// Runs one SoftFloat operation with clear flags and collects the flags that it raised. SoftFloat's state is
/// thread-local, and each call sets it anew.
pub(super) fn collect(operation: impl FnOnce() -> u64) -> FloatResult {
    let mut flags = ExceptionFlags::from_bits(0);
    flags.set();
    let value = operation();
    flags.get();
    // SoftFloat's flag bits are in the order of fflags.
    FloatResult { value, flags: flags.bits() }
}

/// An OP-FP instruction that rounds, except FCVT.{W,WU,L,LU}: the crate's interface to them does not report inexact.
#[inline(never)]
pub(super) fn execute<F: Format>(instruction: u32, raw: u64, raw2: u64, mode: RoundingMode) -> FloatResult {
    let (a, b) = (F::to_soft(F::unbox(raw)), F::to_soft(F::unbox(raw2)));
    collect(|| {
        F::from_soft(match bits(instruction, 27, 5) {
            funct5::ADD => a.add(b, mode),
            funct5::SUB => a.sub(b, mode),
            funct5::MUL => a.mul(b, mode),
            funct5::DIV => a.div(b, mode),
            funct5::SQRT => a.sqrt(mode),
            funct5::CONVERT_FORMAT => F::soft_from_other(raw, mode),
            funct5::CONVERT_FROM_INTEGER => match bits(instruction, 20, 2) {
                0 => F::Soft::from_i32(raw as i32, mode),
                1 => F::Soft::from_u32(raw as u32, mode),
                2 => F::Soft::from_i64(raw as i64, mode),
                _ => F::Soft::from_u64(raw, mode),
            },
            _ => unreachable!("{instruction:#010x} does not round to a floating-point number"),
        })
    })
    .boxed::<F>()
}

/// a * b + c with one rounding.
#[inline(never)]
pub(super) fn multiply_add<F: Format>(a: u64, b: u64, c: u64, mode: RoundingMode) -> FloatResult {
    collect(|| F::from_soft(F::to_soft(a).fused_mul_add(F::to_soft(b), F::to_soft(c), mode)))
}

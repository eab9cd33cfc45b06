//! The two formats, single and double, behind one trait: field masks, NaN boxing, host arithmetic, SoftFloat's type.
//!
//! A value is its bit pattern in the low bits of a `u64`, the bits above it zero.

use super::{FLAG_INVALID, FloatResult, Rounding, conversion, fused};
use softfloat_wrapper_riscv::{F32, F64, Float, RoundingMode};

/// A binary interchange format of IEEE 754-2019.
pub(super) trait Format {
    /// SoftFloat's type of this format.
    type Soft: Float;

    const FRACTION_BITS: u32;
    const EXPONENT_BITS: u32;
    const SIGN: u64 = 1 << (Self::FRACTION_BITS + Self::EXPONENT_BITS);
    const FRACTION: u64 = (1 << Self::FRACTION_BITS) - 1;
    /// The bits of the exponent field. Infinities and NaNs have all of them set.
    const EXPONENT: u64 = Self::SIGN - (1 << Self::FRACTION_BITS);
    const QUIET: u64 = 1 << (Self::FRACTION_BITS - 1);
    const CANONICAL_NAN: u64 = Self::EXPONENT | Self::QUIET;

    /// The value that an f register holds for this format: the canonical NaN if a single is not NaN-boxed.
    fn unbox(register: u64) -> u64;
    /// The f register's contents for the low bits of `value`.
    fn boxed(value: u64) -> u64;
    /// The x register's contents after FMV.X of an f register's contents.
    fn sign_extend(register: u64) -> u64;

    fn to_soft(value: u64) -> Self::Soft;
    fn from_soft(value: Self::Soft) -> u64;

    fn host_add(a: u64, b: u64) -> u64;
    fn host_subtract(a: u64, b: u64) -> u64;
    fn host_multiply(a: u64, b: u64) -> u64;
    fn host_divide(a: u64, b: u64) -> u64;
    fn host_square_root(a: u64) -> u64;
    /// a * b + c with one rounding, if the host has an instruction for it.
    fn host_multiply_add(a: u64, b: u64, c: u64) -> Option<u64>;
    /// `integer` in this format, rounded to nearest even.
    fn host_from_integer(integer: u64) -> u64;
    /// The same number, or a NaN for a NaN.
    fn to_double(value: u64) -> f64;
    fn less(a: u64, b: u64) -> bool;
    fn equal(a: u64, b: u64) -> bool;

    /// FCVT.S.D or FCVT.D.S by the host, from an f register with the other format's value.
    fn host_from_other(register: u64, rounding: Rounding) -> Option<FloatResult>;
    /// FCVT.S.D or FCVT.D.S by SoftFloat, from an f register with the other format's value.
    fn soft_from_other(register: u64, mode: RoundingMode) -> Self::Soft;

    fn is_nan(value: u64) -> bool {
        value & !Self::SIGN > Self::EXPONENT
    }

    fn is_signaling_nan(value: u64) -> bool {
        Self::is_nan(value) && value & Self::QUIET == 0
    }

    fn is_finite(value: u64) -> bool {
        value & Self::EXPONENT != Self::EXPONENT
    }
}

/// binary32, NaN-boxed in an f register.
pub(super) struct Single;

/// binary64.
pub(super) struct Double;

const BOX: u64 = 0xffff_ffff_0000_0000;

fn single(value: u64) -> f32 {
    f32::from_bits(value as u32)
}

fn double(value: u64) -> f64 {
    f64::from_bits(value)
}

impl Format for Single {
    type Soft = F32;
    const FRACTION_BITS: u32 = 23;
    const EXPONENT_BITS: u32 = 8;

    fn unbox(register: u64) -> u64 {
        if register & BOX == BOX { register & !BOX } else { Self::CANONICAL_NAN }
    }

    fn boxed(value: u64) -> u64 {
        value | BOX
    }

    fn sign_extend(register: u64) -> u64 {
        register as i32 as u64
    }

    fn to_soft(value: u64) -> F32 {
        F32::from_bits(value as u32)
    }

    fn from_soft(value: F32) -> u64 {
        value.bits().into()
    }

    fn host_add(a: u64, b: u64) -> u64 {
        (single(a) + single(b)).to_bits().into()
    }

    fn host_subtract(a: u64, b: u64) -> u64 {
        (single(a) - single(b)).to_bits().into()
    }

    fn host_multiply(a: u64, b: u64) -> u64 {
        (single(a) * single(b)).to_bits().into()
    }

    fn host_divide(a: u64, b: u64) -> u64 {
        (single(a) / single(b)).to_bits().into()
    }

    fn host_square_root(a: u64) -> u64 {
        single(a).sqrt().to_bits().into()
    }

    fn host_multiply_add(a: u64, b: u64, c: u64) -> Option<u64> {
        fused::single(single(a), single(b), single(c)).map(|value| value.to_bits().into())
    }

    fn host_from_integer(integer: u64) -> u64 {
        (integer as f32).to_bits().into()
    }

    fn to_double(value: u64) -> f64 {
        single(value).into()
    }

    fn less(a: u64, b: u64) -> bool {
        single(a) < single(b)
    }

    fn equal(a: u64, b: u64) -> bool {
        single(a) == single(b)
    }

    fn host_from_other(register: u64, rounding: Rounding) -> Option<FloatResult> {
        conversion::narrow(double(register), rounding)
    }

    fn soft_from_other(register: u64, mode: RoundingMode) -> F32 {
        Double::to_soft(Double::unbox(register)).to_f32(mode)
    }
}

impl Format for Double {
    type Soft = F64;
    const FRACTION_BITS: u32 = 52;
    const EXPONENT_BITS: u32 = 11;

    fn unbox(register: u64) -> u64 {
        register
    }

    fn boxed(value: u64) -> u64 {
        value
    }

    fn sign_extend(register: u64) -> u64 {
        register
    }

    fn to_soft(value: u64) -> F64 {
        F64::from_bits(value)
    }

    fn from_soft(value: F64) -> u64 {
        value.bits()
    }

    fn host_add(a: u64, b: u64) -> u64 {
        (double(a) + double(b)).to_bits()
    }

    fn host_subtract(a: u64, b: u64) -> u64 {
        (double(a) - double(b)).to_bits()
    }

    fn host_multiply(a: u64, b: u64) -> u64 {
        (double(a) * double(b)).to_bits()
    }

    fn host_divide(a: u64, b: u64) -> u64 {
        (double(a) / double(b)).to_bits()
    }

    fn host_square_root(a: u64) -> u64 {
        double(a).sqrt().to_bits()
    }

    fn host_multiply_add(a: u64, b: u64, c: u64) -> Option<u64> {
        fused::double(double(a), double(b), double(c)).map(f64::to_bits)
    }

    fn host_from_integer(integer: u64) -> u64 {
        (integer as f64).to_bits()
    }

    fn to_double(value: u64) -> f64 {
        double(value)
    }

    fn less(a: u64, b: u64) -> bool {
        double(a) < double(b)
    }

    fn equal(a: u64, b: u64) -> bool {
        double(a) == double(b)
    }

    fn host_from_other(register: u64, _rounding: Rounding) -> Option<FloatResult> {
        let value = Single::unbox(register);
        if Single::is_nan(value) {
            let flags = if Single::is_signaling_nan(value) { FLAG_INVALID } else { 0 };
            return Some(FloatResult { value: Self::CANONICAL_NAN, flags });
        }
        // Every single is also a double, so the rounding mode does not matter.
        Some(FloatResult::exact(f64::from(single(value)).to_bits()))
    }

    fn soft_from_other(register: u64, mode: RoundingMode) -> F64 {
        Single::to_soft(Single::unbox(register)).to_f64(mode)
    }
}

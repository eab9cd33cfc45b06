//! The operations that round.
//!
//! The host's arithmetic rounds to nearest even on operands far from overflow and underflow, where IEEE 754 fixes it to
//! the bit. The only flag that can arise there, inexact, follows from the significands by exact integer or error-free
//! arithmetic. SoftFloat does everything else (other modes, zeros, subnormals, infinities, NaNs, extreme exponents).

use super::format::Format;
use super::{FLAG_INEXACT, FLAG_INVALID, FloatResult};
use softfloat_wrapper_riscv::{ExceptionFlags, Float, RoundingMode};

/// Runs one SoftFloat operation with clear flags and collects the flags that it raised. SoftFloat's state is
/// thread-local, and each call sets it anew.
pub(super) fn soft(operation: impl FnOnce() -> u64) -> FloatResult {
    let mut flags = ExceptionFlags::from_bits(0);
    flags.set();
    let value = operation();
    flags.get();
    // SoftFloat's flag bits are in the order of fflags.
    FloatResult { value, flags: flags.bits() }
}

/// Whether the exponent of `value` is in the middle half of the format's range. Sums, products and quotients of two
/// such values, their square roots, and the rounding errors of their sums are normal numbers or exact zeros.
fn is_moderate<F: Format>(value: u64) -> bool {
    let quarter = 1 << (F::EXPONENT_BITS - 2);
    F::biased_exponent(value).wrapping_sub(F::EXPONENT_BIAS - quarter + 2) < 2 * quarter - 4
}

fn may_use_host<F: Format>(a: u64, b: u64, mode: RoundingMode) -> bool {
    matches!(mode, RoundingMode::TiesToEven) && is_moderate::<F>(a) && is_moderate::<F>(b)
}

fn host(value: u64, is_exact: bool) -> FloatResult {
    FloatResult { value, flags: if is_exact { 0 } else { FLAG_INEXACT } }
}

/// The significand of a normal number with its trailing zeros removed.
fn odd_significand<F: Format>(value: u64) -> u64 {
    let significand = (value & F::FRACTION) | (1 << F::FRACTION_BITS);
    significand >> significand.trailing_zeros()
}

/// Whether the moderate `a + b` is `sum` without rounding: Knuth's TwoSum, whose error term is exact in round to
/// nearest.
fn is_exact_sum<F: Format>(a: u64, b: u64, sum: u64) -> bool {
    let b_part = F::host_subtract(sum, a);
    let a_part = F::host_subtract(sum, b_part);
    F::equal(a, a_part) && F::equal(b, b_part)
}

pub(super) fn add<F: Format>(a: u64, b: u64, mode: RoundingMode) -> FloatResult {
    if may_use_host::<F>(a, b, mode) {
        let sum = F::host_add(a, b);
        return host(sum, is_exact_sum::<F>(a, b, sum));
    }
    soft(|| F::from_soft(F::to_soft(a).add(F::to_soft(b), mode)))
}

pub(super) fn subtract<F: Format>(a: u64, b: u64, mode: RoundingMode) -> FloatResult {
    if may_use_host::<F>(a, b, mode) {
        let difference = F::host_subtract(a, b);
        return host(difference, is_exact_sum::<F>(a, b ^ F::SIGN, difference));
    }
    soft(|| F::from_soft(F::to_soft(a).sub(F::to_soft(b), mode)))
}

pub(super) fn multiply<F: Format>(a: u64, b: u64, mode: RoundingMode) -> FloatResult {
    if may_use_host::<F>(a, b, mode) {
        // The product of odd numbers is odd, so it fits if and only if it is no longer than a significand.
        let product = u128::from(odd_significand::<F>(a)) * u128::from(odd_significand::<F>(b));
        return host(F::host_multiply(a, b), product >> (F::FRACTION_BITS + 1) == 0);
    }
    soft(|| F::from_soft(F::to_soft(a).mul(F::to_soft(b), mode)))
}

pub(super) fn divide<F: Format>(a: u64, b: u64, mode: RoundingMode) -> FloatResult {
    if may_use_host::<F>(a, b, mode) {
        let quotient = F::host_divide(a, b);
        // The quotient is within half a unit of a / b. So its product with b is either a, or no multiple of a by a
        // power of two.
        let product = u128::from(odd_significand::<F>(quotient)) * u128::from(odd_significand::<F>(b));
        return host(quotient, product == u128::from(odd_significand::<F>(a)));
    }
    soft(|| F::from_soft(F::to_soft(a).div(F::to_soft(b), mode)))
}

pub(super) fn square_root<F: Format>(a: u64, mode: RoundingMode) -> FloatResult {
    if a & F::SIGN == 0 && may_use_host::<F>(a, a, mode) {
        let root = F::host_square_root(a);
        let odd = u128::from(odd_significand::<F>(root));
        return host(root, odd * odd == u128::from(odd_significand::<F>(a)));
    }
    soft(|| F::from_soft(F::to_soft(a).sqrt(mode)))
}

/// a * b + c with one rounding.
pub(super) fn multiply_add<F: Format>(a: u64, b: u64, c: u64, mode: RoundingMode) -> FloatResult {
    soft(|| F::from_soft(F::to_soft(a).fused_mul_add(F::to_soft(b), F::to_soft(c), mode)))
}

/// FCVT.{S,D}.{W,WU,L,LU}: `kind` is the low two bits of the rs2 field.
pub(super) fn from_integer<F: Format>(register: u64, kind: u32, mode: RoundingMode) -> FloatResult {
    let is_negative = match kind {
        0 => (register as i32) < 0,
        2 => (register as i64) < 0,
        _ => false,
    };
    let integer = match kind {
        0 => register as i32 as u64,
        1 => register as u32 as u64,
        _ => register,
    };
    let magnitude = if is_negative { integer.wrapping_neg() } else { integer };
    if magnitude >> (F::FRACTION_BITS + 1) == 0 {
        let sign = if is_negative { F::SIGN } else { 0 };
        return FloatResult::exact(F::host_from_integer(magnitude) | sign);
    }
    soft(|| {
        F::from_soft(match kind {
            0 => F::Soft::from_i32(register as i32, mode),
            1 => F::Soft::from_u32(register as u32, mode),
            2 => F::Soft::from_i64(register as i64, mode),
            _ => F::Soft::from_u64(register, mode),
        })
    })
}

/// FCVT.{W,WU,L,LU}.{S,D}: `kind` is the low two bits of the rs2 field. A value outside the integer's range after
/// rounding saturates and is invalid, never inexact; NaN converts to the largest integer. Results of 32 bits, signed or
/// not, are sign-extended.
///
/// SoftFloat's conversions are not used, because the crate's interface to them does not report inexact.
pub(super) fn convert_to_integer<F: Format>(a: u64, kind: u32, mode: RoundingMode) -> FloatResult {
    let is_negative = a & F::SIGN != 0 && !F::is_nan(a);
    let (magnitude, is_inexact) = if F::biased_exponent(a) == F::EXPONENT >> F::FRACTION_BITS {
        (u128::MAX, false)
    } else {
        round_magnitude::<F>(a, is_negative, mode)
    };
    let limit: u128 = match (kind, is_negative) {
        (0, false) => i32::MAX as u128,
        (0, true) => 1 << 31,
        (1, false) => u32::MAX.into(),
        (2, false) => i64::MAX as u128,
        (2, true) => 1 << 63,
        (3, false) => u64::MAX.into(),
        (_, _) => 0,
    };
    let (magnitude, flags) = if magnitude > limit {
        (limit as u64, FLAG_INVALID)
    } else {
        (magnitude as u64, if is_inexact { FLAG_INEXACT } else { 0 })
    };
    let integer = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    FloatResult { value: if kind < 2 { integer as i32 as u64 } else { integer }, flags }
}

/// The magnitude of a finite `a` rounded to an integer, and whether rounding changed it. Magnitudes from 2^120 on give
/// a number beyond every integer register's range.
fn round_magnitude<F: Format>(a: u64, is_negative: bool, mode: RoundingMode) -> (u128, bool) {
    let exponent_field = F::biased_exponent(a);
    let significand = u128::from((a & F::FRACTION) | (u64::from(exponent_field != 0) << F::FRACTION_BITS));
    // value = significand * 2^exponent; subnormals have the exponent of the smallest normals.
    let exponent = exponent_field.max(1) as i32 - (F::EXPONENT_BIAS as i32) - F::FRACTION_BITS as i32;
    if exponent >= 0 {
        return (significand << exponent.min(67), false);
    }
    // A shift by 60 takes every significand below one quarter. Larger distances round in the same way.
    let shift = exponent.unsigned_abs().min(60);
    let floor = significand >> shift;
    let remainder = significand & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    let rounds_up = match mode {
        RoundingMode::TiesToEven => remainder > half || (remainder == half && floor & 1 == 1),
        RoundingMode::TowardZero => false,
        RoundingMode::TowardNegative => is_negative && remainder != 0,
        RoundingMode::TowardPositive => !is_negative && remainder != 0,
        RoundingMode::TiesToAway => remainder >= half,
    };
    (floor + u128::from(rounds_up), remainder != 0)
}

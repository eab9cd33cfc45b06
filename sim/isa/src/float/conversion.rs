//! Conversions by the host between floating-point numbers and integers, and from double to single.

use super::format::{Format, Single};
use super::host::raises_at_most_inexact;
use super::{FLAG_INEXACT, FLAG_INVALID, FloatResult, Rounding};
use softfloat_wrapper_riscv::RoundingMode;

/// FCVT.S.D
#[inline(always)]
pub(super) fn narrow(a: f64, rounding: Rounding) -> Option<FloatResult> {
    let single = a as f32;
    let value = single.to_bits().into();
    let is_for_host = rounding.is_to_nearest_even() && raises_at_most_inexact::<Single>(value) || a == 0.0;
    is_for_host.then(|| FloatResult::rounded(value, rounding.is_inexact_accrued || f64::from(single) != a))
}

/// FCVT.{S,D}.{W,WU,L,LU}: `kind` is the low two bits of the rs2 field.
#[inline(always)]
pub(super) fn from_integer<F: Format>(register: u64, kind: u32, rounding: Rounding) -> Option<FloatResult> {
    let integer = match kind {
        0 => register as i32 as u64,
        1 => register as u32 as u64,
        _ => register,
    };
    let is_negative = kind & 1 == 0 && (integer as i64) < 0;
    let magnitude = if is_negative { integer.wrapping_neg() } else { integer };
    let sign = if is_negative { F::SIGN } else { 0 };
    let value = F::host_from_integer(magnitude) | sign;
    let fits = |magnitude: u64| magnitude >> (F::FRACTION_BITS + 1) == 0;
    if fits(magnitude) {
        return Some(FloatResult::exact(value));
    }
    // Both formats reach beyond the largest integer, so no flag but inexact can arise.
    rounding.is_to_nearest_even().then(|| {
        let is_inexact = rounding.is_inexact_accrued || !fits(magnitude >> magnitude.trailing_zeros());
        FloatResult::rounded(value, is_inexact)
    })
}

/// FCVT.{W,WU,L,LU}.{S,D}: `kind` is the low two bits of the rs2 field. A value outside the integer's range after
/// rounding saturates and is invalid, never inexact; NaN converts to the largest integer. Results of 32 bits, signed or
/// not, are sign-extended.
///
/// SoftFloat's conversions are not used, because the crate's interface to them does not report inexact.
#[inline(always)]
pub(super) fn to_integer(a: f64, kind: u32, mode: RoundingMode) -> FloatResult {
    let is_negative = a < 0.0;
    let limit = match (kind, is_negative) {
        (0, false) => i32::MAX as u64,
        (0, true) => 1 << 31,
        (1, false) => u32::MAX.into(),
        (2, false) => i64::MAX as u64,
        (2, true) => 1 << 63,
        (3, false) => u64::MAX,
        (_, _) => 0,
    };
    let (magnitude, flags) = match round_magnitude(a.abs(), is_negative, mode) {
        Some((magnitude, is_inexact)) if magnitude <= limit => (magnitude, if is_inexact { FLAG_INEXACT } else { 0 }),
        _ => (limit, FLAG_INVALID),
    };
    let integer = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    FloatResult { value: if kind < 2 { integer as i32 as u64 } else { integer }, flags }
}

/// `magnitude` rounded to an integer, and whether rounding changed it; `None` for 2^64 and above, and for NaN.
#[inline(always)]
fn round_magnitude(magnitude: f64, is_negative: bool, mode: RoundingMode) -> Option<(u64, bool)> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    let floor = (magnitude < LIMIT).then_some(magnitude as u64)?;
    // The subtraction is exact: the fraction consists of the last bits of the magnitude.
    let fraction = magnitude - floor as f64;
    let rounds_up = match mode {
        RoundingMode::TiesToEven => fraction > 0.5 || (fraction == 0.5 && floor & 1 == 1),
        RoundingMode::TowardZero => false,
        RoundingMode::TowardNegative => is_negative && fraction > 0.0,
        RoundingMode::TowardPositive => !is_negative && fraction > 0.0,
        RoundingMode::TiesToAway => fraction >= 0.5,
    };
    Some((floor + u64::from(rounds_up), fraction > 0.0))
}

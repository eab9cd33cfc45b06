//! OP-FP instructions by the host's arithmetic.
//!
//! It rounds to nearest even. IEEE 754-2019 fixes its result to the bit, and the result tells which flags the operation
//! can raise: a normal number, no flag but inexact (`raises_at_most_inexact`). If fflags does not hold inexact yet,
//! exact integer or error-free arithmetic decides whether the operation raises it. SoftFloat does the other modes, and
//! most results that are tiny, infinite or NaN.
//!
//! The functions are always inlined, so that the interpreter's function for common instructions makes no call and saves
//! no register across one.

use super::conversion::{from_integer, to_integer};
use super::format::Format;
use super::{FLAG_INVALID, FloatResult, Rounding, bits, funct5, rm};

/// Computes an OP-FP instruction, or gives `None` if SoftFloat has to.
#[inline(always)]
pub(super) fn execute<F: Format>(instruction: u32, [raw, raw2]: [u64; 2], rounding: Rounding) -> Option<FloatResult> {
    let (a, b) = (F::unbox(raw), F::unbox(raw2));
    // Arithmetic ends here in the modes that the host's does not know.
    let nearest_even = || rounding.is_to_nearest_even().then_some(rounding);
    let value = match bits(instruction, 27, 5) {
        funct5::ADD => add::<F>(a, b, nearest_even()?)?,
        // IEEE 754-2019 defines a - b as a + (-b). Only the sign of a NaN could differ, and RISC-V has but one NaN.
        funct5::SUB => add::<F>(a, b ^ F::SIGN, nearest_even()?)?,
        funct5::MUL => multiply::<F>(a, b, nearest_even()?)?,
        funct5::DIV => divide::<F>(a, b, nearest_even()?)?,
        funct5::SQRT => square_root::<F>(a, nearest_even()?)?,
        funct5::SIGN_INJECT => {
            let sign = match rm(instruction) {
                0 => b,
                1 => !b,
                _ => a ^ b,
            } & F::SIGN;
            FloatResult::exact((a & !F::SIGN) | sign)
        }
        funct5::MIN_MAX => min_max::<F>(a, b, rm(instruction) == 1),
        funct5::COMPARE => return Some(compare::<F>(a, b, rm(instruction))),
        funct5::CONVERT_FORMAT => F::host_from_other(raw, rounding)?,
        funct5::CONVERT_TO_INTEGER => {
            return Some(to_integer(F::to_double(a), bits(instruction, 20, 2), rounding.mode));
        }
        funct5::CONVERT_FROM_INTEGER => from_integer::<F>(raw, bits(instruction, 20, 2), rounding)?,
        funct5::MOVE_TO_INTEGER_OR_CLASS if rm(instruction) == 0 => {
            return Some(FloatResult::exact(F::sign_extend(raw)));
        }
        funct5::MOVE_TO_INTEGER_OR_CLASS => return Some(FloatResult::exact(class::<F>(a))),
        funct5::MOVE_FROM_INTEGER => FloatResult::exact(raw),
        _ => return None,
    };
    Some(value.boxed::<F>())
}

pub(super) fn is_zero<F: Format>(value: u64) -> bool {
    value & !F::SIGN == 0
}

/// Whether an operation with this rounded result raises no flag but inexact (IEEE 754-2019, section 7): invalid gives a
/// NaN; division by zero and overflow to nearest give an infinity; and underflow gives a magnitude up to the smallest
/// normal number, to which a tiny result may round.
pub(super) fn raises_at_most_inexact<F: Format>(result: u64) -> bool {
    let smallest_normal = 1 << F::FRACTION_BITS;
    (smallest_normal + 1..F::EXPONENT).contains(&(result & !F::SIGN))
}

/// The significand of a finite number other than zero, with its trailing zeros removed.
#[inline(always)]
fn odd_significand<F: Format>(value: u64) -> u128 {
    let leading_bit = u64::from(value & F::EXPONENT != 0) << F::FRACTION_BITS;
    let significand = (value & F::FRACTION) | leading_bit;
    u128::from(significand >> significand.trailing_zeros())
}

/// Whether the finite `sum` is `a + b` without rounding: Knuth's TwoSum (The Art of Computer Programming, volume 2,
/// section 4.2.2, theorem B). Both parts equal their operands if and only if the error term is zero; a part that
/// overflows equals neither.
#[inline(always)]
fn is_exact_sum<F: Format>(a: u64, b: u64, sum: u64) -> bool {
    let b_part = F::host_subtract(sum, a);
    let a_part = F::host_subtract(sum, b_part);
    F::equal(a, a_part) && F::equal(b, b_part)
}

#[inline(always)]
pub(super) fn add<F: Format>(a: u64, b: u64, rounding: Rounding) -> Option<FloatResult> {
    let sum = F::host_add(a, b);
    // A tiny sum is exact, because both operands are multiples of the smallest subnormal number.
    F::is_finite(sum).then(|| FloatResult::rounded(sum, rounding.is_inexact_accrued || !is_exact_sum::<F>(a, b, sum)))
}

/// Whether `a * b` is a number of the format, if that is large enough to be normal. The product of odd numbers is odd,
/// so it fits if and only if it is no longer than a significand.
#[inline(always)]
fn is_exact_product<F: Format>(a: u64, b: u64) -> bool {
    (odd_significand::<F>(a) * odd_significand::<F>(b)) >> (F::FRACTION_BITS + 1) == 0
}

#[inline(always)]
pub(super) fn multiply<F: Format>(a: u64, b: u64, rounding: Rounding) -> Option<FloatResult> {
    let product = F::host_multiply(a, b);
    if raises_at_most_inexact::<F>(product) {
        return Some(FloatResult::rounded(product, rounding.is_inexact_accrued || !is_exact_product::<F>(a, b)));
    }
    let is_exact_zero = is_zero::<F>(product) && (is_zero::<F>(a) || is_zero::<F>(b));
    is_exact_zero.then_some(FloatResult::exact(product))
}

/// Whether `factor * b` is `a`, where `factor` is a quotient or a root rounded to nearest. The product is so close to `a`
/// that it is no multiple of `a` by another power of two.
#[inline(always)]
fn is_product<F: Format>(a: u64, factor: u64, b: u64) -> bool {
    odd_significand::<F>(factor) * odd_significand::<F>(b) == odd_significand::<F>(a)
}

#[inline(always)]
fn divide<F: Format>(a: u64, b: u64, rounding: Rounding) -> Option<FloatResult> {
    let quotient = F::host_divide(a, b);
    if raises_at_most_inexact::<F>(quotient) {
        return Some(FloatResult::rounded(quotient, rounding.is_inexact_accrued || !is_product::<F>(a, quotient, b)));
    }
    let is_exact_zero = is_zero::<F>(quotient) && is_zero::<F>(a);
    is_exact_zero.then_some(FloatResult::exact(quotient))
}

#[inline(always)]
fn square_root<F: Format>(a: u64, rounding: Rounding) -> Option<FloatResult> {
    let root = F::host_square_root(a);
    raises_at_most_inexact::<F>(root)
        .then(|| FloatResult::rounded(root, rounding.is_inexact_accrued || !is_product::<F>(a, root, root)))
}

/// FMIN and FMAX: minimumNumber and maximumNumber of IEEE 754-2019, with -0 below +0.
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
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

//! Fused multiply-add by the host: its processor's instruction, if there is one. Without it the standard library would
//! compute the operation in software, more slowly than SoftFloat does.

use super::format::Format;
use super::host::{add, is_zero, multiply, raises_at_most_inexact};
use super::{FloatResult, Rounding};

/// a * b + c with one rounding, or `None` if SoftFloat has to compute it.
#[inline]
pub(super) fn multiply_add<F: Format>(a: u64, b: u64, c: u64, rounding: Rounding) -> Option<FloatResult> {
    if !rounding.is_to_nearest_even() {
        return None;
    }
    if rounding.is_inexact_accrued {
        let value = F::host_multiply_add(a, b, c)?;
        let is_exact_zero = is_zero::<F>(value) && (is_zero::<F>(a) || is_zero::<F>(b));
        return (is_exact_zero || raises_at_most_inexact::<F>(value)).then_some(FloatResult::exact(value));
    }
    // If the product is exact, its sum with c is the only rounding. No short test tells whether the processor's
    // instruction rounded.
    let product = multiply::<F>(a, b, rounding)?;
    if product.flags == 0 { add::<F>(product.value, c, rounding) } else { None }
}

/// Whether the processor has the instruction.
#[cfg(target_arch = "x86_64")]
fn is_available() -> bool {
    std::arch::is_x86_feature_detected!("fma")
}

/// Whether the processor has the instruction. Every aarch64 has it.
#[cfg(not(target_arch = "x86_64"))]
fn is_available() -> bool {
    cfg!(target_arch = "aarch64")
}

/// a * b + c with one rounding to nearest even.
pub(super) fn single(a: f32, b: f32, c: f32) -> Option<f32> {
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "fma"))]
    unsafe fn fused(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    // SAFETY: the processor has the instruction that the function is compiled to.
    is_available().then(|| unsafe { fused(a, b, c) })
}

/// a * b + c with one rounding to nearest even.
pub(super) fn double(a: f64, b: f64, c: f64) -> Option<f64> {
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "fma"))]
    unsafe fn fused(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    // SAFETY: the processor has the instruction that the function is compiled to.
    is_available().then(|| unsafe { fused(a, b, c) })
}

//! The computation of ops: the value of the destination, whether a branch is taken, how a loaded value is extended.
//!
//! This module alone defines the meaning of an op. The interpreter calls these functions with kinds that it knows at
//! compile time, so each call becomes one or two host instructions. Tests and other executors call them with any kind.
//! Floating-point arithmetic is in [`crate::float`], and atomic operations are in [`crate::op::Atomic`].

use crate::integer::*;
use crate::op::Kind;

#[inline(always)]
fn signed(value: u64) -> i64 {
    value as i64
}

/// The value that an integer op computes from two operands: register `rs1`, and register `rs2` or the immediate. Ops
/// with one operand ignore the second. `None` if the op is of another sort.
#[inline(always)]
pub fn compute(kind: Kind, first: u64, second: u64) -> Option<u64> {
    Some(match kind {
        Kind::Move => first,
        Kind::Add | Kind::AddImmediate => first.wrapping_add(second),
        Kind::Subtract => first.wrapping_sub(second),
        Kind::SetLessThan | Kind::SetLessThanImmediate => u64::from(signed(first) < signed(second)),
        Kind::SetLessThanUnsigned | Kind::SetLessThanUnsignedImmediate => u64::from(first < second),
        Kind::Xor | Kind::XorImmediate => first ^ second,
        Kind::Or | Kind::OrImmediate => first | second,
        Kind::And | Kind::AndImmediate => first & second,
        Kind::ShiftLeft | Kind::ShiftLeftImmediate => first << (second & 63),
        Kind::ShiftRight | Kind::ShiftRightImmediate => first >> (second & 63),
        Kind::ShiftRightArithmetic | Kind::ShiftRightArithmeticImmediate => (signed(first) >> (second & 63)) as u64,
        Kind::AddWord | Kind::AddWordImmediate => sign_extend_word(first.wrapping_add(second)),
        Kind::SubtractWord => sign_extend_word(first.wrapping_sub(second)),
        Kind::ShiftLeftWord | Kind::ShiftLeftWordImmediate => sign_extend_word(first << (second & 31)),
        Kind::ShiftRightWord | Kind::ShiftRightWordImmediate => {
            sign_extend_word(zero_extend_word(first) >> (second & 31))
        }
        Kind::ShiftRightArithmeticWord | Kind::ShiftRightArithmeticWordImmediate => {
            (first as i32 >> (second & 31)) as u64
        }
        Kind::Multiply => first.wrapping_mul(second),
        Kind::MultiplyHigh => multiply_high(first, second),
        Kind::MultiplyHighSignedUnsigned => multiply_high_signed_unsigned(first, second),
        Kind::MultiplyHighUnsigned => multiply_high_unsigned(first, second),
        Kind::Divide => divide(first, second),
        Kind::DivideUnsigned => divide_unsigned(first, second),
        Kind::Remainder => remainder(first, second),
        Kind::RemainderUnsigned => remainder_unsigned(first, second),
        Kind::MultiplyWord => sign_extend_word(first.wrapping_mul(second)),
        Kind::DivideWord => divide_word(first, second),
        Kind::DivideWordUnsigned => divide_word_unsigned(first, second),
        Kind::RemainderWord => remainder_word(first, second),
        Kind::RemainderWordUnsigned => remainder_word_unsigned(first, second),
        Kind::ShiftOneAdd => (first << 1).wrapping_add(second),
        Kind::ShiftTwoAdd => (first << 2).wrapping_add(second),
        Kind::ShiftThreeAdd => (first << 3).wrapping_add(second),
        Kind::AddUnsignedWord => zero_extend_word(first).wrapping_add(second),
        Kind::ShiftOneAddUnsignedWord => (zero_extend_word(first) << 1).wrapping_add(second),
        Kind::ShiftTwoAddUnsignedWord => (zero_extend_word(first) << 2).wrapping_add(second),
        Kind::ShiftThreeAddUnsignedWord => (zero_extend_word(first) << 3).wrapping_add(second),
        Kind::ShiftLeftUnsignedWordImmediate => zero_extend_word(first) << (second & 63),
        Kind::AndNot => first & !second,
        Kind::OrNot => first | !second,
        Kind::XorNot => !(first ^ second),
        Kind::CountLeadingZeros => u64::from(first.leading_zeros()),
        Kind::CountTrailingZeros => u64::from(first.trailing_zeros()),
        Kind::CountOnes => u64::from(first.count_ones()),
        Kind::CountLeadingZerosWord => u64::from((first as u32).leading_zeros()),
        Kind::CountTrailingZerosWord => u64::from((first as u32).trailing_zeros()),
        Kind::CountOnesWord => u64::from((first as u32).count_ones()),
        Kind::Maximum => signed(first).max(signed(second)) as u64,
        Kind::MaximumUnsigned => first.max(second),
        Kind::Minimum => signed(first).min(signed(second)) as u64,
        Kind::MinimumUnsigned => first.min(second),
        Kind::SignExtendByte => first as i8 as u64,
        Kind::SignExtendHalf => first as i16 as u64,
        Kind::ZeroExtendHalf => first & 0xffff,
        Kind::RotateLeft => first.rotate_left(second as u32 & 63),
        Kind::RotateRight | Kind::RotateRightImmediate => first.rotate_right(second as u32 & 63),
        Kind::RotateLeftWord => (first as u32).rotate_left(second as u32 & 31) as i32 as u64,
        Kind::RotateRightWord | Kind::RotateRightWordImmediate => {
            (first as u32).rotate_right(second as u32 & 31) as i32 as u64
        }
        Kind::OrCombineBytes => or_combine_bytes(first),
        Kind::ReverseBytes => first.swap_bytes(),
        Kind::BitClear | Kind::BitClearImmediate => first & !(1 << (second & 63)),
        Kind::BitExtract | Kind::BitExtractImmediate => first >> (second & 63) & 1,
        Kind::BitInvert | Kind::BitInvertImmediate => first ^ 1 << (second & 63),
        Kind::BitSet | Kind::BitSetImmediate => first | 1 << (second & 63),
        _ => return None,
    })
}

/// Whether a conditional branch is taken; `None` for any other op.
#[inline(always)]
pub fn branches(kind: Kind, first: u64, second: u64) -> Option<bool> {
    Some(match kind {
        Kind::BranchEqual => first == second,
        Kind::BranchNotEqual => first != second,
        Kind::BranchLessThan => signed(first) < signed(second),
        Kind::BranchGreaterEqual => signed(first) >= signed(second),
        Kind::BranchLessThanUnsigned => first < second,
        Kind::BranchGreaterEqualUnsigned => first >= second,
        _ => return None,
    })
}

/// The register value that a load makes from the bytes in memory, which are passed zero-extended; `None` for any other
/// op. Singles are boxed.
#[inline(always)]
pub fn loaded(kind: Kind, bytes: u64) -> Option<u64> {
    Some(match kind {
        Kind::LoadByte => bytes as i8 as u64,
        Kind::LoadHalf => bytes as i16 as u64,
        Kind::LoadWord | Kind::LoadReservedWord | Kind::AtomicWord => bytes as i32 as u64,
        Kind::LoadDouble | Kind::LoadReservedDouble | Kind::AtomicDouble | Kind::LoadFloatDouble => bytes,
        Kind::LoadByteUnsigned => bytes as u8 as u64,
        Kind::LoadHalfUnsigned => bytes as u16 as u64,
        Kind::LoadWordUnsigned => bytes as u32 as u64,
        Kind::LoadFloatWord => bytes | u64::from(u32::MAX) << 32,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use proptest::prelude::*;

    #[test]
    fn shift_distances_wrap_at_the_width() {
        assert_eq!(compute(Kind::ShiftLeft, 1, 64 + 3), Some(8));
        assert_eq!(compute(Kind::ShiftLeftWord, 1, 32 + 31), Some(0xffff_ffff_8000_0000));
        assert_eq!(compute(Kind::ShiftRightWord, 0xffff_ffff_8000_0000, 31), Some(1));
        assert_eq!(compute(Kind::ShiftRightArithmeticWord, 0x8000_0000, 31), Some(u64::MAX));
        assert_eq!(compute(Kind::RotateRightWord, 1, 1), Some(0xffff_ffff_8000_0000));
        assert_eq!(compute(Kind::BitSet, 0, 64 + 1), Some(2));
    }

    #[test]
    fn loads_extend_the_loaded_value() {
        assert_eq!(loaded(Kind::LoadByte, 0x80), Some(0xffff_ffff_ffff_ff80));
        assert_eq!(loaded(Kind::LoadByteUnsigned, 0x80), Some(0x80));
        assert_eq!(loaded(Kind::LoadHalf, 0x8000), Some(0xffff_ffff_ffff_8000));
        assert_eq!(loaded(Kind::LoadWord, 0x8000_0000), Some(0xffff_ffff_8000_0000));
        assert_eq!(loaded(Kind::LoadWordUnsigned, 0x8000_0000), Some(0x8000_0000));
        assert_eq!(loaded(Kind::LoadFloatWord, 1), Some(0xffff_ffff_0000_0001));
    }

    proptest! {
        #[test]
        fn no_op_has_two_meanings(instruction: u32, first: u64, second: u64) {
            let kind = decode(instruction, 0, 4).kind;
            let meanings = [
                compute(kind, first, second).is_some(),
                branches(kind, first, second).is_some(),
                loaded(kind, first).is_some(),
            ];
            prop_assert!(meanings.into_iter().filter(|has| *has).count() <= 1, "{kind:?}");
        }

        #[test]
        fn an_inverted_branch_is_taken_where_the_branch_is_not(first: u64, second: u64) {
            let pairs = [
                (Kind::BranchEqual, Kind::BranchNotEqual),
                (Kind::BranchLessThan, Kind::BranchGreaterEqual),
                (Kind::BranchLessThanUnsigned, Kind::BranchGreaterEqualUnsigned),
            ];
            for (kind, inverse) in pairs {
                prop_assert_eq!(branches(kind, first, second), branches(inverse, first, second).map(|taken| !taken));
            }
        }
    }
}

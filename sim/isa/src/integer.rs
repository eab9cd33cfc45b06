//! Integer operations that take more than one host operator: division and its special cases, high products, bit
//! manipulation.

/// Signed division (unprivileged specification, "M": division by zero gives -1, overflow gives the dividend).
#[inline]
pub fn divide(dividend: u64, divisor: u64) -> u64 {
    if divisor == 0 { u64::MAX } else { (dividend as i64).wrapping_div(divisor as i64) as u64 }
}

#[inline]
pub fn divide_unsigned(dividend: u64, divisor: u64) -> u64 {
    dividend.checked_div(divisor).unwrap_or(u64::MAX)
}

/// Signed remainder (division by zero gives the dividend, overflow gives 0).
#[inline]
pub fn remainder(dividend: u64, divisor: u64) -> u64 {
    if divisor == 0 { dividend } else { (dividend as i64).wrapping_rem(divisor as i64) as u64 }
}

#[inline]
pub fn remainder_unsigned(dividend: u64, divisor: u64) -> u64 {
    dividend.checked_rem(divisor).unwrap_or(dividend)
}

#[inline]
pub fn sign_extend_word(value: u64) -> u64 {
    value as i32 as i64 as u64
}

#[inline]
pub fn zero_extend_word(value: u64) -> u64 {
    value as u32 as u64
}

#[inline]
pub fn divide_word(dividend: u64, divisor: u64) -> u64 {
    sign_extend_word(divide(sign_extend_word(dividend), sign_extend_word(divisor)))
}

#[inline]
pub fn divide_word_unsigned(dividend: u64, divisor: u64) -> u64 {
    sign_extend_word(divide_unsigned(zero_extend_word(dividend), zero_extend_word(divisor)))
}

#[inline]
pub fn remainder_word(dividend: u64, divisor: u64) -> u64 {
    sign_extend_word(remainder(sign_extend_word(dividend), sign_extend_word(divisor)))
}

#[inline]
pub fn remainder_word_unsigned(dividend: u64, divisor: u64) -> u64 {
    sign_extend_word(remainder_unsigned(zero_extend_word(dividend), zero_extend_word(divisor)))
}

#[inline]
pub fn multiply_high(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i64 as i128) >> 64) as u64
}

#[inline]
pub fn multiply_high_signed_unsigned(a: u64, b: u64) -> u64 {
    ((a as i64 as i128).wrapping_mul(b as i128) >> 64) as u64
}

#[inline]
pub fn multiply_high_unsigned(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Each byte becomes 0xff where it is not zero (Zbb `orc.b`).
#[inline]
pub fn or_combine_bytes(value: u64) -> u64 {
    let any = value | value >> 4 & 0x0f0f_0f0f_0f0f_0f0f;
    let any = any | any >> 2 & 0x3f3f_3f3f_3f3f_3f3f;
    let any = (any | any >> 1) & 0x0101_0101_0101_0101;
    any * 0xff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_edge_cases() {
        let minimum = i64::MIN as u64;
        assert_eq!(divide(7, 0), u64::MAX);
        assert_eq!(divide(minimum, u64::MAX), minimum);
        assert_eq!(remainder(minimum, u64::MAX), 0);
        assert_eq!(remainder(7, 0), 7);
        assert_eq!(divide_word(0x8000_0000, 0xffff_ffff), 0xffff_ffff_8000_0000);
        assert_eq!(divide_word_unsigned(1, 1 << 32), u64::MAX);
        assert_eq!(remainder_word_unsigned(0xffff_ffff, 1 << 32), u64::MAX);
    }

    proptest! {
        #[test]
        fn high_products_agree_with_each_other(a in any::<u64>(), b in any::<u64>()) {
            // mulhsu = mulhu - (a < 0 ? b : 0); mulh = mulhsu - (b < 0 ? a : 0)
            let unsigned = multiply_high_unsigned(a, b);
            let mixed = unsigned.wrapping_sub(if (a as i64) < 0 { b } else { 0 });
            prop_assert_eq!(multiply_high_signed_unsigned(a, b), mixed);
            prop_assert_eq!(multiply_high(a, b), mixed.wrapping_sub(if (b as i64) < 0 { a } else { 0 }));
        }

        #[test]
        fn or_combine_is_bytewise(value in any::<u64>()) {
            let expected = value.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff });
            prop_assert_eq!(or_combine_bytes(value).to_le_bytes(), expected);
        }
    }
}

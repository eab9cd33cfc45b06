//! Sizes and durations as a person writes them: `16 KiB`, `1G`, `5.5 ms`, `200`.
//!
//! The arithmetic is in integers throughout, so that `5.5 ms` is exactly 5 500 000 cycles.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Units of size. A lone letter is binary, as QEMU and most kernels' command lines have it.
const SIZES: &[(&str, u128)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
];

/// Units of duration, in cycles of the 1 GHz hart clock.
const DURATIONS: &[(&str, u128)] =
    &[("", 1), ("cycles", 1), ("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// More digits than any quantity needs, and few enough that the arithmetic cannot overflow.
const DIGITS_MAX: usize = 20;

/// Text that is no size or no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no number at the start, or it has too many digits.
    #[error("{text:?} is not a {kind}: write {example}")]
    Number { text: String, kind: &'static str, example: &'static str },
    /// The number is followed by something that is no unit.
    #[error("{text:?} is not a {kind}: unit {unit:?} is none of {allowed}")]
    Unit { text: String, kind: &'static str, unit: String, allowed: &'static str },
    /// The fraction does not come out whole, as in `0.3 B`.
    #[error("{text:?} is not a whole number of {whole}")]
    Fraction { text: String, whole: &'static str },
    /// The result does not fit in 64 bits.
    #[error("{text:?} is too large: the greatest {kind} is {max} {whole}", max = u64::MAX)]
    Large { text: String, kind: &'static str, whole: &'static str },
}

struct Kind {
    name: &'static str,
    whole: &'static str,
    example: &'static str,
    allowed: &'static str,
    units: &'static [(&'static str, u128)],
    case_matters: bool,
}

const SIZE: Kind = Kind {
    name: "size",
    whole: "bytes",
    example: "a number of bytes or, for instance, \"16 KiB\" or \"1G\"",
    allowed: "B, K, KiB, M, MiB, G, GiB, T, TiB",
    units: SIZES,
    case_matters: false,
};

const DURATION: Kind = Kind {
    name: "duration",
    whole: "cycles",
    example: "a number of cycles or, for instance, \"5.5 ms\"",
    allowed: "cycles, ns, us, ms, s",
    units: DURATIONS,
    case_matters: true,
};

/// Parses a size into bytes: a decimal number, with a fraction if it comes out whole, and one of
/// the units B, K, KiB, M, MiB, G, GiB, T, TiB, all powers of 1024, in any case.
///
/// # Errors
/// [`QuantityError`] where the text is no size; `KB` and its like are refused as ambiguous.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    parse(text, &SIZE)
}

/// Parses a duration into cycles of the 1 GHz clock: a decimal number and one of the units cycles,
/// ns, us, ms, s.
///
/// # Errors
/// [`QuantityError`] where the text is no duration.
pub fn parse_duration_cycles(text: &str) -> Result<u64, QuantityError> {
    parse(text, &DURATION)
}

fn parse(text: &str, kind: &Kind) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let number_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_end);
    let (value, scale) = decimal(number).ok_or_else(|| QuantityError::Number {
        text: text.to_owned(),
        kind: kind.name,
        example: kind.example,
    })?;
    let unit = unit.trim();
    let matches = |known: &str| {
        if kind.case_matters { known == unit } else { known.eq_ignore_ascii_case(unit) }
    };
    let factor = kind.units.iter().find(|(known, _)| matches(known)).map(|&(_, factor)| factor).ok_or_else(|| {
        QuantityError::Unit { text: text.to_owned(), kind: kind.name, unit: unit.to_owned(), allowed: kind.allowed }
    })?;
    // At most 10^20 times 2^40, below 2^107.
    let product = value * factor;
    if product % scale != 0 {
        return Err(QuantityError::Fraction { text: text.to_owned(), whole: kind.whole });
    }
    u64::try_from(product / scale).map_err(|_| QuantityError::Large {
        text: text.to_owned(),
        kind: kind.name,
        whole: kind.whole,
    })
}

/// The digits of a decimal number without its point, and the power of ten to divide them by.
fn decimal(text: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !whole.starts_with(|c: char| c.is_ascii_digit())
        || (text.contains('.') && !fraction.starts_with(|c: char| c.is_ascii_digit()))
    {
        return None;
    }
    let mut value = 0u128;
    let mut digits = 0;
    for c in whole.chars().chain(fraction.chars()).filter(|&c| c != '_') {
        value = value * 10 + u128::from(c.to_digit(10)?);
        digits += 1;
        if digits > DIGITS_MAX {
            return None;
        }
    }
    let fraction_digits = fraction.chars().filter(|&c| c != '_').count();
    Some((value, 10u128.pow(u32::try_from(fraction_digits).ok()?)))
}

/// A size field: an integer or text for [`parse_size`].
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(deserializer, &SIZE)
}

/// An optional size field that is present.
pub(super) fn size_if_given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Size>::deserialize(deserializer)?.map(|size| size.0))
}

/// A duration field: an integer or text for [`parse_duration_cycles`].
pub(super) fn cycles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(deserializer, &DURATION)
}

struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        size(deserializer).map(Self)
    }
}

fn quantity<'de, D: Deserializer<'de>>(deserializer: D, kind: &Kind) -> Result<u64, D::Error> {
    // Only a format that describes itself can hold either; a snapshot holds the number.
    if deserializer.is_human_readable() {
        deserializer.deserialize_any(QuantityVisitor(kind))
    } else {
        u64::deserialize(deserializer)
    }
}

struct QuantityVisitor<'a>(&'a Kind);

impl Visitor<'_> for QuantityVisitor<'_> {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.example)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| E::custom(format_args!("{value} is not a {}", self.0.name)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text, self.0).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_and_durations_are_exact() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1_048_576", 1 << 20),
            ("16 KiB", 16 << 10),
            ("16kib", 16 << 10),
            ("512M", 512 << 20),
            ("1.5 GiB", 3 << 29),
            (" 2 T ", 2 << 40),
            ("7 B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for (text, cycles) in [
            ("200", 200),
            ("200 cycles", 200),
            ("5.5 ms", 5_500_000),
            ("0.1 ms", 100_000),
            ("80us", 80_000),
            ("80 µs", 80_000),
            ("1 s", 1_000_000_000),
        ] {
            assert_eq!(parse_duration_cycles(text), Ok(cycles), "{text}");
        }
    }

    #[test]
    fn wrong_quantities_say_why() {
        let mut lines = String::new();
        for text in [
            "",
            "-1",
            "KiB",
            "1.",
            ".5",
            "1..5",
            "1 KB",
            "1 GiBs",
            "0.3 B",
            "16777216 TiB",
            "123456789012345678901",
            "0x10",
            "1e9",
        ] {
            match parse_size(text) {
                Ok(value) => panic!("{text:?} was taken for {value}"),
                Err(error) => lines.push_str(&format!("{error}\n")),
            }
        }
        for text in ["5 MS", "1.5 ns", "3 min"] {
            match parse_duration_cycles(text) {
                Ok(value) => panic!("{text:?} was taken for {value}"),
                Err(error) => lines.push_str(&format!("{error}\n")),
            }
        }
        insta::assert_snapshot!(lines);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,24}") {
            let _ = parse_size(&text);
            let _ = parse_duration_cycles(&text);
        }

        #[test]
        fn a_plain_number_is_itself(value: u64) {
            prop_assert_eq!(parse_size(&value.to_string()), Ok(value));
            prop_assert_eq!(parse_duration_cycles(&value.to_string()), Ok(value));
        }

        #[test]
        fn kibibytes_scale(value in 0u64..1 << 54) {
            prop_assert_eq!(parse_size(&format!("{value}KiB")), Ok(value << 10));
        }
    }
}

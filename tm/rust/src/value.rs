// SPDX-License-Identifier: GPL-2.0-only OR MIT

/// What a [`TVar`](crate::TVar) can hold: something that fits into 64 bits.
///
/// ```
/// use concord_tm::Value;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// impl Value for Point {
///     fn to_word(self) -> u64 {
///         u64::from(self.x as u32) << 32 | u64::from(self.y as u32)
///     }
///     fn from_word(word: u64) -> Point {
///         Point { x: (word >> 32) as i32, y: word as i32 }
///     }
/// }
/// assert_eq!(Point::from_word(Point { x: -1, y: 2 }.to_word()), Point { x: -1, y: 2 });
/// ```
pub trait Value: Copy {
    /// The value as a word.
    fn to_word(self) -> u64;
    /// The value of a word that `to_word` has made.
    fn from_word(word: u64) -> Self;
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl Value for $integer {
            fn to_word(self) -> u64 {
                self as u64
            }
            fn from_word(word: u64) -> $integer {
                word as $integer
            }
        })*
    };
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Value for bool {
    fn to_word(self) -> u64 {
        u64::from(self)
    }
    fn from_word(word: u64) -> bool {
        word != 0
    }
}

impl Value for char {
    fn to_word(self) -> u64 {
        u64::from(self)
    }
    fn from_word(word: u64) -> char {
        char::from_u32(word as u32).expect("it was a char")
    }
}

impl Value for f32 {
    fn to_word(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_word(word: u64) -> f32 {
        f32::from_bits(word as u32)
    }
}

impl Value for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }
    fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

//! Arrays that begin at a line of the host's cache.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// The bytes of a line of the host's cache.
const HOST_LINE_BYTES: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct HostLine([u8; HOST_LINE_BYTES]);

/// A number without padding, of which a host line holds a whole number.
///
/// # Safety
/// Every pattern of bits is a value, the size divides [`HOST_LINE_BYTES`], and no byte is padding.
pub unsafe trait Plain: Copy {}

// SAFETY: a plain number of four bytes.
unsafe impl Plain for u32 {}

/// An array of fixed length that begins at a line of the host's cache, so that sets of a power of two of bytes do not
/// lie across two of them. A snapshot has it as a sequence.
#[derive(Clone)]
pub struct Aligned<T> {
    lines: Vec<HostLine>,
    length: usize,
    values: PhantomData<T>,
}

impl<T: Plain> Aligned<T> {
    /// An array of `length` times the same value.
    pub fn new(value: T, length: usize) -> Aligned<T> {
        let lines = (length * size_of::<T>()).div_ceil(HOST_LINE_BYTES);
        let lines = vec![HostLine([0; HOST_LINE_BYTES]); lines];
        let mut array = Aligned { lines, length, values: PhantomData };
        array.fill(value);
        array
    }
}

impl<T> Default for Aligned<T> {
    fn default() -> Aligned<T> {
        Aligned { lines: Vec::new(), length: 0, values: PhantomData }
    }
}

impl<T: Plain> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the lines are initialized bytes, one after the other, at least as many as the values take, and
        // aligned for them. `Plain` types have no invalid bits.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T: Plain> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `Plain` types have no padding, so the bytes stay initialized.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

impl<T: Plain + Serialize> Serialize for Aligned<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Plain + Deserialize<'de>> Deserialize<'de> for Aligned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Aligned<T>, D::Error> {
        let values = Vec::<T>::deserialize(deserializer)?;
        Ok(match values.first() {
            Some(first) => {
                let mut array = Aligned::new(*first, values.len());
                array.copy_from_slice(&values);
                array
            }
            None => Aligned::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_begins_at_a_host_line_and_is_saved_as_a_sequence() {
        for length in [0, 1, 16, 17, 100] {
            let mut array = Aligned::new(7_u32, length);
            assert!(array.iter().all(|value| *value == 7) && array.len() == length);
            assert!(array.as_ptr().addr().is_multiple_of(HOST_LINE_BYTES));
            (0..).zip(array.iter_mut()).for_each(|(index, value)| *value = index);
            let saved = postcard::to_stdvec(&array).unwrap();
            assert_eq!(saved, postcard::to_stdvec(&array.to_vec()).unwrap());
            let restored: Aligned<u32> = postcard::from_bytes(&saved).unwrap();
            assert_eq!(*restored, *array);
            assert_eq!(*array.clone(), *array);
        }
    }
}

//! Guest memory as a device sees it: lists of segments to copy from and to, and the log of writes.

use serde::{Deserialize, Serialize};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

/// A copy touched memory that does not exist. The bounds of segments are checked when a chain is taken, so
/// this happens only when the memory of a restored machine is not the one that was saved.
#[derive(Debug)]
pub struct OutsideMemory;

/// Part of a buffer, contiguous in guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub address: u64,
    pub length_bytes: u64,
}

/// A buffer the driver may have scattered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments(pub Vec<Segment>);

impl Segments {
    pub fn length_bytes(&self) -> u64 {
        // At most 65535 lengths of 32 bits in a chain: no overflow. A corrupt saved state saturates.
        self.0.iter().fold(0, |sum: u64, segment| sum.saturating_add(segment.length_bytes))
    }

    /// Splits after `length_bytes`; the second part is empty when there are no more.
    pub fn split(&self, length_bytes: u64) -> (Segments, Segments) {
        let mut head = Segments::default();
        let mut tail = Segments::default();
        let mut left = length_bytes;
        for &segment in &self.0 {
            let taken = left.min(segment.length_bytes);
            left -= taken;
            if taken > 0 {
                head.0.push(Segment { length_bytes: taken, ..segment });
            }
            if taken < segment.length_bytes {
                tail.0.push(Segment {
                    address: segment.address.wrapping_add(taken),
                    length_bytes: segment.length_bytes - taken,
                });
            }
        }
        (head, tail)
    }

    /// Whether all of it is RAM.
    pub fn in_memory(&self, memory: &GuestMemoryMmap<()>) -> bool {
        self.0.iter().all(|segment| {
            usize::try_from(segment.length_bytes)
                .is_ok_and(|length| GuestMemoryBackend::check_range(memory, GuestAddress(segment.address), length))
        })
    }
}

/// Guest memory with a log of the ranges written.
pub struct Dma<'a> {
    pub memory: &'a GuestMemoryMmap<()>,
    pub writes: &'a mut Vec<(u64, u64)>,
}

impl Dma<'_> {
    /// Notes a range that was written past `write`.
    pub fn record(&mut self, address: u64, length_bytes: u64) {
        self.writes.push((address, length_bytes));
    }

    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), OutsideMemory> {
        self.memory.read_slice(bytes, GuestAddress(address)).map_err(|_| OutsideMemory)
    }

    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory> {
        // Noted first: a copy that fails halfway has written its first half.
        self.record(address, bytes.len() as u64);
        self.memory.write_slice(bytes, GuestAddress(address)).map_err(|_| OutsideMemory)
    }

    /// Fills `bytes` from the front of `segments`, which hold at least as many.
    pub fn gather(&self, segments: &Segments, bytes: &mut [u8]) -> Result<(), OutsideMemory> {
        let mut rest = bytes;
        for segment in &segments.0 {
            let length = rest.len().min(usize::try_from(segment.length_bytes).unwrap_or(usize::MAX));
            let (part, after) = rest.split_at_mut(length);
            self.read(segment.address, part)?;
            rest = after;
        }
        if rest.is_empty() { Ok(()) } else { Err(OutsideMemory) }
    }

    /// Writes `bytes` to the front of `segments`, which have room for them.
    pub fn scatter(&mut self, segments: &Segments, bytes: &[u8]) -> Result<(), OutsideMemory> {
        let mut rest = bytes;
        for segment in &segments.0 {
            if rest.is_empty() {
                break;
            }
            let length = rest.len().min(usize::try_from(segment.length_bytes).unwrap_or(usize::MAX));
            let (part, after) = rest.split_at(length);
            self.write(segment.address, part)?;
            rest = after;
        }
        if rest.is_empty() { Ok(()) } else { Err(OutsideMemory) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(parts: &[(u64, u64)]) -> Segments {
        Segments(parts.iter().map(|&(address, length_bytes)| Segment { address, length_bytes }).collect())
    }

    #[test]
    fn split_cuts_inside_and_between_segments() {
        let whole = segments(&[(0x100, 10), (0x200, 20)]);
        assert_eq!(whole.split(4), (segments(&[(0x100, 4)]), segments(&[(0x104, 6), (0x200, 20)])));
        assert_eq!(whole.split(10), (segments(&[(0x100, 10)]), segments(&[(0x200, 20)])));
        assert_eq!(whole.split(99), (whole.clone(), segments(&[])));
        assert_eq!(whole.split(0), (segments(&[]), whole.clone()));
    }
}

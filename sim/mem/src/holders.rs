//! The cores that hold each line: the result of a snoop, as one bit a core.

use crate::cache::Line;

/// The holders of every line of RAM. An entry is as wide as the number of cores requires, and only touched pages take
/// host memory.
pub struct Holders {
    bytes: Vec<u8>,
    width_bytes: usize,
}

impl Holders {
    /// A record of `lines` lines that no core holds.
    pub fn new(lines: usize, cores: usize) -> Holders {
        let width_bytes = cores.div_ceil(8).next_power_of_two();
        Holders { bytes: vec![0; lines * width_bytes], width_bytes }
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width_bytes
    }

    #[inline]
    pub fn get(&self, line: Line) -> u64 {
        let first = line as usize * self.width_bytes;
        // The widths are written out, because a copy whose length is known only at run time is a call.
        match self.bytes[first..first + self.width_bytes] {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("a width is 1, 2, 4 or 8"),
        }
    }

    #[inline]
    pub fn set(&mut self, line: Line, holders: u64) {
        let first = line as usize * self.width_bytes;
        match &mut self.bytes[first..first + self.width_bytes] {
            [a] => *a = holders as u8,
            place @ [_, _] => place.copy_from_slice(&(holders as u16).to_le_bytes()),
            place @ [_, _, _, _] => place.copy_from_slice(&(holders as u32).to_le_bytes()),
            place => place.copy_from_slice(&holders.to_le_bytes()),
        }
    }

    #[inline]
    pub fn insert(&mut self, line: Line, core: usize) {
        self.set(line, self.get(line) | 1 << core);
    }

    #[inline]
    pub fn remove(&mut self, line: Line, core: usize) {
        self.set(line, self.get(line) & !(1 << core));
    }
}

#[cfg(test)]
mod tests {
    use super::Holders;

    #[test]
    fn every_core_has_its_bit_and_no_line_sees_its_neighbour() {
        for cores in [1, 8, 9, 16, 17, 32, 33, 64] {
            let mut holders = Holders::new(4, cores);
            assert_eq!(holders.len(), 4);
            for core in 0..cores {
                holders.insert(1, core);
            }
            assert_eq!(holders.get(1), u64::MAX >> (64 - cores), "{cores} cores");
            holders.remove(1, cores - 1);
            assert_eq!(holders.get(1), (u64::MAX >> (64 - cores)) & !(1 << (cores - 1)));
            assert_eq!((holders.get(0), holders.get(2)), (0, 0));
            holders.set(1, 0);
            assert_eq!(holders.get(1), 0);
        }
    }
}

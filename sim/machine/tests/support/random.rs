//! A seeded source of choices: SplitMix64 (Steele, Lea and Flood, 2014), so that a seed names one program for ever.

/// A generator of 64-bit numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0. The bias of the remainder does not matter here.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// An integer of the kind that arithmetic trips over: small, near a power of two, of few bits, or anything.
    pub fn integer(&mut self) -> u64 {
        match self.below(6) {
            0 => self.below(16).wrapping_sub(8),
            1 => (1_u64 << self.below(64)).wrapping_add(self.below(5)).wrapping_sub(2),
            2 => (self.next() as i64 >> self.below(64)) as u64,
            3 => self.next() >> self.below(64),
            4 => self.next() as i32 as u64,
            _ => self.next(),
        }
    }

    /// The contents of an f register that rules are about: zeros, infinities, NaNs, the ends of the formats and of the
    /// integers.
    pub fn special_float(&mut self) -> u64 {
        const DOUBLES: [u64; 10] = [
            0,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x0000_0000_0000_0001,
            0x0010_0000_0000_0000,
            0x7fef_ffff_ffff_ffff,
            0x41df_ffff_ffc0_0000,
            0x43e0_0000_0000_0000,
        ];
        const SINGLES: [u64; 10] = [
            0,
            0x3f80_0000,
            0x7f80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            0x0000_0001,
            0x0080_0000,
            0x7f7f_ffff,
            0x4f00_0000,
            0x5f00_0000,
        ];
        let sign = self.below(2);
        if self.one_in(2) {
            self.pick(&DOUBLES) | sign << 63
        } else {
            self.pick(&SINGLES) | sign << 31 | 0xffff_ffff_0000_0000
        }
    }

    /// The contents of an f register: doubles and boxed singles with weight on special values, and unboxed bits.
    pub fn float(&mut self) -> u64 {
        const BOX: u64 = 0xffff_ffff_0000_0000;
        let sign = self.next();
        if self.one_in(2) {
            let value = self.float_bits(11, 52);
            value | (sign & 1 << 63)
        } else {
            let value = self.float_bits(8, 23) | (sign & 1 << 31);
            if self.one_in(12) { value } else { value | BOX }
        }
    }

    fn float_bits(&mut self, exponent_bits: u32, fraction_bits: u32) -> u64 {
        let exponent_max = (1_u64 << exponent_bits) - 1;
        let bias = exponent_max >> 1;
        let exponent = match self.below(8) {
            0 => 0,
            1 => exponent_max,
            2 => self.below(3),
            3 => exponent_max - self.below(3),
            4 => self.below(exponent_max + 1),
            // Up to beyond the range of 64-bit integers.
            5 => bias + self.below(68),
            _ => bias + self.below(9) - 4,
        };
        let fraction = match self.below(4) {
            0 => 0,
            1 => self.below(4) << (fraction_bits - 2),
            2 => self.below(8).wrapping_sub(4),
            _ => self.next(),
        };
        exponent << fraction_bits | fraction & ((1 << fraction_bits) - 1)
    }
}

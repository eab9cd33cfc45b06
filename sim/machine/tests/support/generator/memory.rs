//! Loads, stores and atomics in the program's data, aligned or not, some of them to pages that fault.

use super::{DATA_REGISTER, Generator};
use crate::support::assembler::{AMO, LOAD, LOAD_FP, STORE, STORE_FP, add, addi, i_type, r_type, s_type};
use crate::support::harness::{DATA_SIZE_BYTES, Paging, WINDOW_PAGES};

/// The offset of the megapage window from the base of the windows.
pub const MEGAPAGE_OFFSET: u64 = 1 << 21;

impl Generator {
    /// An offset from the data register where `size_bytes` may be accessed, or (paged, and not `must_succeed`) may
    /// fault.
    fn data_offset(&mut self, size_bytes: u64, is_aligned: bool, must_succeed: bool) -> u64 {
        let is_paged = self.variant.paging != Paging::Bare;
        let offset = if is_paged && !must_succeed && !self.random.one_in(3) {
            self.random.below(WINDOW_PAGES as u64 * 4096)
        } else {
            let start = if is_paged { MEGAPAGE_OFFSET } else { 0 };
            // Often the same few lines, so that programs read back what they wrote.
            let limit = if self.random.one_in(2) { 128 } else { DATA_SIZE_BYTES as u64 };
            start + self.random.below(limit - 8)
        };
        if is_aligned { offset & !(size_bytes - 1) } else { offset }
    }

    /// Makes `register` point `displacement` bytes before the data at `offset`.
    pub fn point(&mut self, register: u32, offset: u64, displacement: i64) {
        let delta = offset as i64 - displacement;
        if (-2048..2048).contains(&delta) {
            self.code.push(addi(register, DATA_REGISTER, delta));
        } else {
            self.code.load_immediate(register, delta as u64);
            self.code.push(add(register, register, DATA_REGISTER));
        }
    }
}

/// LB to SD and the floating-point ones, half of them aligned.
pub fn access(generator: &mut Generator) {
    let is_aligned = generator.random.one_in(2);
    let offset = generator.data_offset(8, is_aligned, false);
    let displacement = (generator.random.next() as i64) << 52 >> 52;
    let base = generator.temporary(&[]);
    generator.point(base, offset, displacement);
    let random = &mut generator.random;
    let float = random.below(32) as u32;
    let instruction = match random.below(6) {
        0 | 1 => {
            let funct3 = random.below(7) as u32;
            i_type(LOAD, generator.destination(), funct3, base, displacement)
        }
        2 | 3 => {
            let funct3 = random.below(4) as u32;
            s_type(STORE, funct3, base, generator.source(), displacement)
        }
        4 => i_type(LOAD_FP, float, random.pick(&[2, 3]), base, displacement),
        _ => s_type(STORE_FP, random.pick(&[2, 3]), base, float, displacement),
    };
    generator.code.push(instruction);
    match instruction & 0x7f {
        LOAD => generator.mix(instruction >> 7 & 31),
        LOAD_FP => generator.mix_float(float),
        _ => {}
    }
}

/// The sixteen-bit forms: with a base in x8 to x15, or in the stack pointer.
pub fn compressed_access(generator: &mut Generator) {
    let is_aligned = generator.random.one_in(2);
    let offset = generator.data_offset(8, is_aligned, false);
    // 1 FLD, 2 LW, 3 LD, 5 FSD, 6 SW, 7 SD in bits 15:13.
    let funct3 = generator.random.pick(&[1_u16, 2, 3, 5, 6, 7]);
    let is_word = funct3 & 3 == 2;
    if generator.random.one_in(2) {
        let base = 8 + generator.random.below(8) as u32;
        let displacement = generator.random.below(32) as u16 * if is_word { 4 } else { 8 };
        generator.point(base, offset, i64::from(displacement));
        let high = if is_word {
            (displacement >> 2 & 1) << 6 | (displacement >> 6 & 1) << 5
        } else {
            (displacement >> 6 & 3) << 5
        };
        let data = generator.random.below(8) as u16;
        let middle = (displacement >> 3 & 7) << 10 | (base as u16 - 8) << 7 | high | data << 2;
        generator.code.push_compressed(funct3 << 13 | middle);
        mix_loaded(generator, funct3, u32::from(data) + 8);
    } else {
        let displacement = generator.random.below(64) as u16 * if is_word { 4 } else { 8 };
        generator.point(2, offset, i64::from(displacement));
        let is_float = funct3 & 3 == 1;
        let data = match (is_float, funct3 < 4) {
            (true, _) => generator.random.below(32) as u16,
            (false, true) => generator.destination() as u16,
            (false, false) => generator.source() as u16,
        };
        let middle = match (funct3 < 4, is_word) {
            (true, true) => {
                (displacement >> 5 & 1) << 12 | data << 7 | (displacement >> 2 & 7) << 4 | (displacement >> 6 & 3) << 2
            }
            (true, false) => {
                (displacement >> 5 & 1) << 12 | data << 7 | (displacement >> 3 & 3) << 5 | (displacement >> 6 & 7) << 2
            }
            (false, true) => (displacement >> 2 & 15) << 9 | (displacement >> 6 & 3) << 7 | data << 2,
            (false, false) => (displacement >> 3 & 7) << 10 | (displacement >> 6 & 7) << 7 | data << 2,
        };
        generator.code.push_compressed(funct3 << 13 | middle | 2);
        mix_loaded(generator, funct3, u32::from(data));
    }
}

fn mix_loaded(generator: &mut Generator, funct3: u16, register: u32) {
    match funct3 {
        1 => generator.mix_float(register),
        2 | 3 => generator.mix(register),
        _ => {}
    }
}

/// An AMO, now and then misaligned.
pub fn atomic(generator: &mut Generator) {
    let funct3 = generator.random.pick(&[2, 3]);
    let size_bytes = 1 << funct3;
    let is_aligned = generator.variant.paging != Paging::Bare || !generator.random.one_in(10);
    let offset = generator.data_offset(size_bytes, is_aligned, false);
    let base = generator.temporary(&[]);
    generator.point(base, offset, 0);
    let funct5 = generator.random.pick(&[0x00_u32, 0x01, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c]);
    let order = generator.random.below(4) as u32;
    let (rd, rs2) = (generator.destination(), generator.source());
    generator.code.push(r_type(AMO, rd, funct3, base, rs2, funct5 << 2 | order));
    generator.mix(rd);
}

/// LR and SC of one size: a pair, retried until it succeeds, since an SC may also fail for no reason of the program's;
/// then perhaps an SC without a reservation. Or an SC far from what is reserved, which must fail.
pub fn reservation(generator: &mut Generator) {
    let funct3 = generator.random.pick(&[2, 3]);
    let size_bytes = 1 << funct3;
    let base = generator.temporary(&[]);
    let loaded = generator.temporary(&[base]);
    let status = generator.temporary(&[base, loaded]);
    let offset = generator.data_offset(size_bytes, true, true);
    generator.point(base, offset, 0);
    let order = generator.random.below(4) as u32;
    let operand = generator.random.pick(&[loaded, base, DATA_REGISTER]);
    let store = |rd, address| r_type(AMO, rd, funct3, address, operand, 0x03 << 2 | order);
    let again = generator.code.here();
    generator.code.push(r_type(AMO, loaded, funct3, base, 0, 0x02 << 2 | order));
    if generator.random.one_in(2) {
        generator.code.push(addi(loaded, loaded, 5));
    }
    if generator.random.one_in(4) {
        // 1024 bytes away is beyond any reservation, and within the data.
        let elsewhere = if offset & 4096 == 0 { 1024 } else { -1024 };
        generator.code.push(addi(status, base, elsewhere));
        generator.code.push(store(status, status));
        generator.mix(status);
        return;
    }
    generator.code.push(store(status, base));
    generator.code.branch(1, status, 0, again);
    if generator.random.one_in(3) {
        generator.code.push(store(status, base));
    }
    generator.mix(loaded);
    generator.mix(status);
}

//! F and D: arithmetic with every rounding mode, conversions, moves, comparisons.

use super::Generator;
use crate::support::assembler::{AUIPC, CSR_FFLAGS, CSRRW, LOAD_FP, OP_FP, addi, csr, i_type, r_type, u_type};
use crate::support::harness::CODE_SLOT;

const FMADD_FAMILY: [u32; 4] = [0x43, 0x47, 0x4b, 0x4f];

/// A rounding mode: mostly valid and static or dynamic, rarely a reserved one.
fn rounding_mode(generator: &mut Generator) -> u32 {
    if generator.random.one_in(60) {
        generator.random.pick(&[5, 6])
    } else {
        generator.random.pick(&[0, 0, 1, 2, 3, 4, 7, 7, 7])
    }
}

pub fn encode(generator: &mut Generator) -> u32 {
    let format = generator.random.below(2) as u32;
    let rm = rounding_mode(generator);
    let random = &mut generator.random;
    let (rd, rs1, rs2) = (random.below(32) as u32, random.below(32) as u32, random.below(32) as u32);
    let op_fp = |funct5: u32, rd, rm, rs1, rs2| r_type(OP_FP, rd, rm, rs1, rs2, funct5 << 2 | format);
    match random.below(16) {
        0..=4 => op_fp(random.pick(&[0, 1, 2, 3]), rd, rm, rs1, rs2),
        5 => op_fp(0x0b, rd, rm, rs1, 0),
        6..=7 => {
            let opcode = random.pick(&FMADD_FAMILY);
            r_type(opcode, rd, rm, rs1, rs2, (random.below(32) as u32) << 2 | format)
        }
        8 => op_fp(0x04, rd, random.below(3) as u32, rs1, rs2),
        9 => op_fp(0x05, rd, random.below(2) as u32, rs1, rs2),
        10 => op_fp(0x08, rd, rm, rs1, 1 - format),
        11 => {
            let funct3 = random.below(3) as u32;
            op_fp(0x14, generator.destination(), funct3, rs1, rs2)
        }
        12 => {
            let kind = random.below(4) as u32;
            op_fp(0x18, generator.destination(), rm, rs1, kind)
        }
        13 => op_fp(0x1a, rd, rm, rs1, random.below(4) as u32),
        14 => {
            let funct3 = random.below(2) as u32;
            op_fp(0x1c, generator.destination(), funct3, rs1, 0)
        }
        _ => op_fp(0x1e, rd, 0, rs1, 0),
    }
}

/// Values that the code carries, at its start: results alone would soon all be NaN.
const POOL_VALUES: u64 = 128;

impl Generator {
    /// Starts the code with a jump over the pool.
    pub fn float_pool(&mut self) {
        let after = self.code.label();
        self.code.jump(0, after);
        self.code.push(addi(0, 0, 0));
        for _ in 0..POOL_VALUES {
            let value = if self.random.one_in(3) { self.random.special_float() } else { self.random.float() };
            self.code.push(value as u32);
            self.code.push((value >> 32) as u32);
        }
        self.code.bind(after);
    }

    /// Loads an f register from the pool.
    fn fresh(&mut self, register: u32) {
        let address = CODE_SLOT + 8 + 8 * self.random.below(POOL_VALUES);
        let base = self.temporary(&[]);
        let offset = address as i64 - self.code.pc() as i64;
        let low = offset << 52 >> 52;
        self.code.push(u_type(AUIPC, base, (offset - low) >> 12));
        self.code.push(i_type(LOAD_FP, register, 3, base, low));
    }
}

/// Whether a valid instruction writes an integer register: comparisons, conversions to integers, FMV.X and FCLASS.
fn writes_integer(instruction: u32) -> bool {
    instruction & 0x7f == OP_FP && matches!(instruction >> 27, 0x14 | 0x18 | 0x1c)
}

/// A valid instruction, its first two operands often fresh and now and then equal but for the sign; its flags often
/// read and cleared at once.
pub fn operation(generator: &mut Generator) {
    let instruction = encode(generator);
    let (rs1, rs2, rd) = (instruction >> 15 & 31, instruction >> 20 & 31, instruction >> 7 & 31);
    for operand in [rs1, rs2] {
        if !generator.random.one_in(4) {
            generator.fresh(operand);
        }
    }
    if generator.random.one_in(4) {
        // FSGNJ or FSGNJN in either format.
        let funct3 = generator.random.below(2) as u32;
        let format = instruction >> 25 & 1;
        generator.code.push(r_type(OP_FP, rs2, funct3, rs1, rs1, 0x10 | format));
    }
    generator.code.push(instruction);
    if writes_integer(instruction) {
        generator.mix(rd);
    } else {
        generator.mix_float(rd);
    }
    if generator.random.one_in(2) {
        let rd = generator.destination();
        generator.code.push(csr(CSRRW, rd, CSR_FFLAGS, 0));
        generator.mix(rd);
    }
}

/// Any bits in a floating-point opcode, or a valid instruction with one bit turned. The destination may turn out to be
/// an integer register, so it is one that the program can lose.
pub fn any_encoding(generator: &mut Generator) {
    let word = if generator.random.one_in(2) {
        let opcode = generator.random.pick(&[0x43, 0x47, 0x4b, 0x4f, OP_FP, OP_FP, OP_FP, OP_FP]);
        generator.random.next() as u32 & !0x7f | opcode
    } else {
        let flipped = 1 << (12 + generator.random.below(20));
        encode(generator) ^ flipped
    };
    let rd = generator.destination();
    generator.code.push(word & !(31 << 7) | rd << 7);
    generator.mix(rd);
    generator.mix_float(rd);
}

//! Register-to-register instructions of I, M, Zba, Zbb and Zbs.

use super::Generator;
use crate::support::assembler::{AUIPC, LUI, OP, OP_32, OP_IMM, OP_IMM_32, i_type, r_type, u_type};
use crate::support::harness::CONTEXT_REGISTER;

/// OP: funct7 and funct3.
const REGISTER: [(u32, u32); 32] = [
    (0x00, 0),
    (0x00, 1),
    (0x00, 2),
    (0x00, 3),
    (0x00, 4),
    (0x00, 5),
    (0x00, 6),
    (0x00, 7),
    (0x20, 0),
    (0x20, 5),
    // M.
    (0x01, 0),
    (0x01, 1),
    (0x01, 2),
    (0x01, 3),
    (0x01, 4),
    (0x01, 5),
    (0x01, 6),
    (0x01, 7),
    // Zba.
    (0x10, 2),
    (0x10, 4),
    (0x10, 6),
    // Zbb.
    (0x20, 4),
    (0x20, 6),
    (0x20, 7),
    (0x05, 4),
    (0x05, 5),
    (0x05, 6),
    (0x05, 7),
    (0x30, 1),
    (0x30, 5),
    // Zbs.
    (0x14, 1),
    (0x24, 1),
];

/// More of Zbs: BEXT and BINV.
const REGISTER_MORE: [(u32, u32); 2] = [(0x24, 5), (0x34, 1)];

/// OP-32: funct7 and funct3.
const REGISTER_32: [(u32, u32); 16] = [
    (0x00, 0),
    (0x20, 0),
    (0x00, 1),
    (0x00, 5),
    (0x20, 5),
    (0x01, 0),
    (0x01, 4),
    (0x01, 5),
    (0x01, 6),
    (0x01, 7),
    (0x04, 0),
    (0x10, 2),
    (0x10, 4),
    (0x10, 6),
    (0x30, 1),
    (0x30, 5),
];

/// OP-IMM with six bits of shift amount: funct6 and funct3.
const SHIFT: [(u32, u32); 8] = [(0x00, 1), (0x00, 5), (0x10, 5), (0x18, 5), (0x12, 1), (0x12, 5), (0x1a, 1), (0x0a, 1)];

/// OP-IMM-32 with five bits of shift amount: funct7 and funct3.
const SHIFT_32: [(u32, u32); 4] = [(0x00, 1), (0x00, 5), (0x20, 5), (0x30, 5)];

/// Instructions of one operand: opcode, bits 31:20, funct3.
const UNARY: [(u32, u32, u32); 11] = [
    (OP_IMM, 0x600, 1),
    (OP_IMM, 0x601, 1),
    (OP_IMM, 0x602, 1),
    (OP_IMM, 0x604, 1),
    (OP_IMM, 0x605, 1),
    (OP_IMM, 0x287, 5),
    (OP_IMM, 0x6b8, 5),
    (OP_IMM_32, 0x600, 1),
    (OP_IMM_32, 0x601, 1),
    (OP_IMM_32, 0x602, 1),
    (OP_32, 0x080, 4),
];

/// What both machines can be asked to agree on. SLTI to x0 is the space of custom hints, of which the machine takes
/// some. CTZW of a register whose low half alone is zero is more than 32 in QEMU 7.2, against the specification: it
/// gets the harness's context, a number that is not such.
fn sanitize(word: u32) -> u32 {
    const CTZW: u32 = 0x6010_101b;
    if word & 0x7fff == 0x2013 {
        word | 1 << 7
    } else if word & 0xfff0_707f == CTZW {
        word & !(31 << 15) | CONTEXT_REGISTER << 15
    } else {
        word
    }
}

/// A valid instruction.
pub fn encode(generator: &mut Generator) -> u32 {
    sanitize(encode_any(generator))
}

fn encode_any(generator: &mut Generator) -> u32 {
    let (rd, rs1, rs2) = (generator.destination(), generator.source(), generator.source());
    let random = &mut generator.random;
    match random.below(16) {
        0..=4 => {
            let (funct7, funct3) = random.pick(&REGISTER);
            r_type(OP, rd, funct3, rs1, rs2, funct7)
        }
        5 => {
            let (funct7, funct3) = random.pick(&REGISTER_MORE);
            r_type(OP, rd, funct3, rs1, rs2, funct7)
        }
        6..=7 => {
            let (funct7, funct3) = random.pick(&REGISTER_32);
            r_type(OP_32, rd, funct3, rs1, rs2, funct7)
        }
        8..=9 => {
            let funct3 = random.pick(&[0, 2, 3, 4, 6, 7]);
            i_type(OP_IMM, rd, funct3, rs1, random.next() as i64)
        }
        10 => i_type(OP_IMM_32, rd, 0, rs1, random.next() as i64),
        11 => {
            let (funct6, funct3) = random.pick(&SHIFT);
            i_type(OP_IMM, rd, funct3, rs1, (funct6 << 6) as i64 | random.below(64) as i64)
        }
        12 => {
            let (funct7, funct3) = random.pick(&SHIFT_32);
            r_type(OP_IMM_32, rd, funct3, rs1, rs2, funct7)
        }
        // SLLI.UW.
        13 => i_type(OP_IMM_32, rd, 1, rs1, 0x080 | random.below(64) as i64),
        14 => {
            let (opcode, immediate, funct3) = random.pick(&UNARY);
            i_type(opcode, rd, funct3, rs1, i64::from(immediate))
        }
        _ => u_type(random.pick(&[LUI, AUIPC]), rd, random.next() as i64),
    }
}

pub fn operation(generator: &mut Generator) {
    let instruction = encode(generator);
    generator.code.push(instruction);
    generator.mix(instruction >> 7 & 31);
}

/// Any bits in a register-to-register opcode, or a valid instruction with one bit turned: most are illegal, and both
/// machines must agree on which.
pub fn any_encoding(generator: &mut Generator) {
    let rd = generator.destination();
    let word = if generator.random.one_in(2) {
        generator.random.next() as u32 & !0x7f | generator.random.pick(&[OP, OP_32, OP_IMM, OP_IMM_32])
    } else {
        let flipped = 1 << (12 + generator.random.below(20));
        encode(generator) ^ flipped
    };
    generator.code.push(sanitize(word & !(31 << 7) | rd << 7));
    generator.mix(rd);
}

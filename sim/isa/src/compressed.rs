//! The C extension: expands each 16-bit instruction to the 32-bit instruction that it stands for (unprivileged
//! specification, "C" chapter, RV64C listings).

/// The field of `value` that begins at bit `from` and is `width` bits wide, moved to bit `to`.
fn field(value: u32, from: u32, width: u32, to: u32) -> u32 {
    (value >> from & ((1 << width) - 1)) << to
}

fn sign_extend(value: u32, width: u32) -> u32 {
    ((value << (32 - width)) as i32 >> (32 - width)) as u32
}

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    imm << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    field(imm, 5, 7, 25) | rs2 << 20 | rs1 << 15 | funct3 << 12 | field(imm, 0, 5, 7) | opcode
}

fn branch(funct3: u32, rs1: u32, imm: u32) -> u32 {
    field(imm, 12, 1, 31)
        | field(imm, 5, 6, 25)
        | rs1 << 15
        | funct3 << 12
        | field(imm, 1, 4, 8)
        | field(imm, 11, 1, 7)
        | 0x63
}

fn jump(rd: u32, imm: u32) -> u32 {
    field(imm, 20, 1, 31) | field(imm, 1, 10, 21) | field(imm, 11, 1, 20) | field(imm, 12, 8, 12) | rd << 7 | 0x6f
}

const LOAD: u32 = 0x03;
const LOAD_FP: u32 = 0x07;
const OP_IMM: u32 = 0x13;
const OP_IMM_32: u32 = 0x1b;
const STORE: u32 = 0x23;
const STORE_FP: u32 = 0x27;
const OP: u32 = 0x33;
const LUI: u32 = 0x37;
const OP_32: u32 = 0x3b;
const JALR: u32 = 0x67;

/// The 32-bit instruction that `instruction` stands for, or `None` if the encoding is reserved. `instruction` must not
/// be the first half of a longer instruction (its two low bits must not be 3).
pub fn expand(instruction: u16) -> Option<u32> {
    let word = u32::from(instruction);
    match word & 3 {
        0 => expand_quadrant_0(word),
        1 => expand_quadrant_1(word),
        _ => expand_quadrant_2(word),
    }
}

fn expand_quadrant_0(word: u32) -> Option<u32> {
    let rd = 8 + field(word, 2, 3, 0);
    let rs1 = 8 + field(word, 7, 3, 0);
    let offset_word = field(word, 10, 3, 3) | field(word, 6, 1, 2) | field(word, 5, 1, 6);
    let offset_double = field(word, 10, 3, 3) | field(word, 5, 2, 6);
    Some(match word >> 13 {
        0 => {
            let imm = field(word, 11, 2, 4) | field(word, 7, 4, 6) | field(word, 6, 1, 2) | field(word, 5, 1, 3);
            if imm == 0 {
                return None;
            }
            i_type(OP_IMM, 0, rd, 2, imm)
        }
        1 => i_type(LOAD_FP, 3, rd, rs1, offset_double),
        2 => i_type(LOAD, 2, rd, rs1, offset_word),
        3 => i_type(LOAD, 3, rd, rs1, offset_double),
        5 => s_type(STORE_FP, 3, rs1, rd, offset_double),
        6 => s_type(STORE, 2, rs1, rd, offset_word),
        7 => s_type(STORE, 3, rs1, rd, offset_double),
        _ => return None,
    })
}

fn expand_quadrant_1(word: u32) -> Option<u32> {
    let rd = field(word, 7, 5, 0);
    let imm = sign_extend(field(word, 12, 1, 5) | field(word, 2, 5, 0), 6);
    Some(match word >> 13 {
        0 => i_type(OP_IMM, 0, rd, rd, imm),
        1 if rd != 0 => i_type(OP_IMM_32, 0, rd, rd, imm),
        2 => i_type(OP_IMM, 0, rd, 0, imm),
        3 if rd == 2 => {
            let imm = field(word, 12, 1, 9)
                | field(word, 6, 1, 4)
                | field(word, 5, 1, 6)
                | field(word, 3, 2, 7)
                | field(word, 2, 1, 5);
            if imm == 0 {
                return None;
            }
            i_type(OP_IMM, 0, 2, 2, sign_extend(imm, 10))
        }
        3 if imm != 0 => imm << 12 | rd << 7 | LUI,
        4 => return expand_arithmetic(word, imm),
        5 => {
            let imm = field(word, 12, 1, 11)
                | field(word, 11, 1, 4)
                | field(word, 9, 2, 8)
                | field(word, 8, 1, 10)
                | field(word, 7, 1, 6)
                | field(word, 6, 1, 7)
                | field(word, 3, 3, 1)
                | field(word, 2, 1, 5);
            jump(0, sign_extend(imm, 12))
        }
        funct3 @ (6 | 7) => {
            let imm = field(word, 12, 1, 8)
                | field(word, 10, 2, 3)
                | field(word, 5, 2, 6)
                | field(word, 3, 2, 1)
                | field(word, 2, 1, 5);
            branch(funct3 - 6, 8 + field(word, 7, 3, 0), sign_extend(imm, 9))
        }
        _ => return None,
    })
}

fn expand_arithmetic(word: u32, imm: u32) -> Option<u32> {
    let rd = 8 + field(word, 7, 3, 0);
    let rs2 = 8 + field(word, 2, 3, 0);
    let shift = imm & 63;
    Some(match (field(word, 10, 2, 0), field(word, 12, 1, 0), field(word, 5, 2, 0)) {
        (0, _, _) => i_type(OP_IMM, 5, rd, rd, shift),
        (1, _, _) => i_type(OP_IMM, 5, rd, rd, 0x400 | shift),
        (2, _, _) => i_type(OP_IMM, 7, rd, rd, imm),
        (_, 0, 0) => r_type(OP, 0, 0x20, rd, rd, rs2),
        (_, 0, 1) => r_type(OP, 4, 0, rd, rd, rs2),
        (_, 0, 2) => r_type(OP, 6, 0, rd, rd, rs2),
        (_, 0, _) => r_type(OP, 7, 0, rd, rd, rs2),
        (_, _, 0) => r_type(OP_32, 0, 0x20, rd, rd, rs2),
        (_, _, 1) => r_type(OP_32, 0, 0, rd, rd, rs2),
        _ => return None,
    })
}

fn expand_quadrant_2(word: u32) -> Option<u32> {
    let rd = field(word, 7, 5, 0);
    let rs2 = field(word, 2, 5, 0);
    let offset_word = field(word, 12, 1, 5) | field(word, 4, 3, 2) | field(word, 2, 2, 6);
    let offset_double = field(word, 12, 1, 5) | field(word, 5, 2, 3) | field(word, 2, 3, 6);
    let store_word = field(word, 9, 4, 2) | field(word, 7, 2, 6);
    let store_double = field(word, 10, 3, 3) | field(word, 7, 3, 6);
    Some(match word >> 13 {
        0 => i_type(OP_IMM, 1, rd, rd, field(word, 12, 1, 5) | rs2),
        1 => i_type(LOAD_FP, 3, rd, 2, offset_double),
        2 if rd != 0 => i_type(LOAD, 2, rd, 2, offset_word),
        3 if rd != 0 => i_type(LOAD, 3, rd, 2, offset_double),
        4 => match (field(word, 12, 1, 0), rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => i_type(JALR, 0, 0, rd, 0),
            (0, _, _) => r_type(OP, 0, 0, rd, 0, rs2),
            (_, 0, 0) => 0x0010_0073,
            (_, _, 0) => i_type(JALR, 0, 1, rd, 0),
            (_, _, _) => r_type(OP, 0, 0, rd, rd, rs2),
        },
        5 => s_type(STORE_FP, 3, 2, rs2, store_double),
        6 => s_type(STORE, 2, 2, rs2, store_word),
        7 => s_type(STORE, 3, 2, rs2, store_double),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::expand;

    /// Pairs from a disassembler: a compressed word and the instruction that it stands for.
    #[test]
    fn expansions() {
        let pairs: [(u16, u32); 20] = [
            (0x0001, 0x0000_0013), // nop
            (0x1141, 0xff01_0113), // addi sp, sp, -16
            (0xe406, 0x0011_3423), // sd ra, 8(sp)
            (0x60a2, 0x0081_3083), // ld ra, 8(sp)
            (0x8082, 0x0000_8067), // ret
            (0x4501, 0x0000_0513), // li a0, 0
            (0x557d, 0xfff0_0513), // li a0, -1
            (0x852e, 0x00b0_0533), // mv a0, b1
            (0x9782, 0x0007_80e7), // jalr a5
            (0x8d89, 0x40a5_85b3), // sub a1, a1, a0
            (0x9d2d, 0x00b5_053b), // addw a0, a0, a1
            (0x6505, 0x0000_1537), // lui a0, 1
            (0x0512, 0x0045_1513), // slli a0, a0, 4
            (0x8111, 0x0045_5513), // srli a0, a0, 4
            (0x8511, 0x4045_5513), // srai a0, a0, 4
            (0x891d, 0x0075_7513), // andi a0, a0, 7
            (0x611c, 0x0005_3783), // ld a5, 0(a0)
            (0xc11c, 0x00f5_2023), // sw a5, 0(a0)
            (0x0808, 0x0101_0513), // addi a0, sp, 16
            (0x9002, 0x0010_0073), // ebreak
        ];
        for (compressed, expanded) in pairs {
            assert_eq!(expand(compressed), Some(expanded), "{compressed:#06x}");
        }
    }

    #[test]
    fn reserved_encodings() {
        for word in [0x0000, 0x8000, 0x2001, 0x6101, 0x6001, 0x9c41, 0x4002, 0x6002, 0x8002] {
            assert_eq!(expand(word), None, "{word:#06x}");
        }
    }
}

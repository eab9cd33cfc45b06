//! Decoding of a 32-bit instruction word to an [`Op`] (unprivileged specification, "RV32/64G Instruction Set Listings",
//! and the chapters on Zba, Zbb and Zbs; privileged specification for the SYSTEM opcodes).

use crate::float;
use crate::op::{Atomic, Kind, Op, SINK};
use concord_abi::hint::Hint;
use concord_abi::htm::{Control, OPCODE_CUSTOM_0, OPCODE_CUSTOM_1, OPCODE_CUSTOM_2, Width};

/// `pause` (unprivileged specification, "Zihintpause"): a fence of nothing before writes after it.
const PAUSE: u32 = 0x0100_000f;

/// The fields of an instruction word.
#[derive(Clone, Copy)]
struct Word(u32);

impl Word {
    fn opcode(self) -> u32 {
        self.0 & 0x7f
    }
    fn rd(self) -> u8 {
        (self.0 >> 7 & 31) as u8
    }
    /// The destination for an integer result.
    fn integer_rd(self) -> u8 {
        if self.rd() == 0 { SINK } else { self.rd() }
    }
    fn funct3(self) -> u32 {
        self.0 >> 12 & 7
    }
    fn rs1(self) -> u8 {
        (self.0 >> 15 & 31) as u8
    }
    fn rs2(self) -> u8 {
        (self.0 >> 20 & 31) as u8
    }
    fn funct7(self) -> u32 {
        self.0 >> 25
    }
    fn i_imm(self) -> i32 {
        self.0 as i32 >> 20
    }
    fn s_imm(self) -> i32 {
        (self.0 as i32 >> 25) << 5 | (self.0 >> 7 & 31) as i32
    }
    fn b_imm(self) -> i32 {
        (self.0 as i32 >> 31) << 12
            | ((self.0 >> 7 & 1) << 11) as i32
            | ((self.0 >> 25 & 63) << 5) as i32
            | ((self.0 >> 8 & 15) << 1) as i32
    }
    fn j_imm(self) -> i32 {
        (self.0 as i32 >> 31) << 20
            | (self.0 & 0xf_f000) as i32
            | ((self.0 >> 20 & 1) << 11) as i32
            | ((self.0 >> 21 & 0x3ff) << 1) as i32
    }
    fn illegal(self) -> Op {
        Op::bare(Kind::Illegal, self.0 as i32)
    }
    fn with(self, kind: Kind, imm: i32) -> Op {
        Op { kind, rd: self.integer_rd(), rs1: self.rs1(), rs2: self.rs2(), imm }
    }
    fn or_illegal(self, kind: Option<Kind>, imm: i32) -> Op {
        kind.map_or(self.illegal(), |kind| self.with(kind, imm))
    }
}

/// Decodes one instruction.
///
/// `page_offset` is the offset of the instruction in its page and `length_bytes` its length in memory (2 if
/// `instruction` is the expansion of a compressed one). Both enter values that are relative to the program counter.
pub fn decode(instruction: u32, page_offset: u32, length_bytes: u32) -> Op {
    let word = Word(instruction);
    let offset = page_offset as i32;
    match word.opcode() {
        0x03 => {
            const KINDS: [Kind; 7] = [
                Kind::LoadByte,
                Kind::LoadHalf,
                Kind::LoadWord,
                Kind::LoadDouble,
                Kind::LoadByteUnsigned,
                Kind::LoadHalfUnsigned,
                Kind::LoadWordUnsigned,
            ];
            word.or_illegal(KINDS.get(word.funct3() as usize).copied(), word.i_imm())
        }
        0x07 => decode_float_load(word),
        OPCODE_CUSTOM_0 => match Control::from_funct3(word.funct3()) {
            // The registers that an instruction does not have, and the immediate, must be zero.
            Some(control)
                if word.i_imm() == 0
                    && (control.has_destination() || word.rd() == 0)
                    && (control.has_source() || word.rs1() == 0) =>
            {
                word.with(Kind::Transaction, word.0 as i32)
            }
            _ => word.illegal(),
        },
        OPCODE_CUSTOM_1 if word.funct7() == 0 && word.funct3() <= Width::Double as u32 => {
            word.with(Kind::TransactionTest, word.0 as i32)
        }
        OPCODE_CUSTOM_2 if word.funct7() & 3 == 0 && word.funct3() <= Width::Double as u32 => {
            word.with(Kind::TransactionCompareAndSwap, word.0 as i32)
        }
        0x0f => match word.funct3() {
            0 if word.0 == PAUSE => Op::bare(Kind::Pause, 0),
            0 => Op::bare(Kind::Fence, 0),
            1 => Op::bare(Kind::FenceInstruction, 0),
            _ => word.illegal(),
        },
        0x13 => decode_immediate(word),
        0x17 => decode_add_pc(word, offset),
        0x1b => decode_immediate_word(word),
        0x23 => {
            const KINDS: [Kind; 4] = [Kind::StoreByte, Kind::StoreHalf, Kind::StoreWord, Kind::StoreDouble];
            word.or_illegal(KINDS.get(word.funct3() as usize).copied(), word.s_imm())
        }
        0x27 => match word.funct3() {
            2 => word.with(Kind::StoreFloatWord, word.s_imm()),
            3 => word.with(Kind::StoreFloatDouble, word.s_imm()),
            _ => word.illegal(),
        },
        0x2f => decode_atomic(word),
        0x33 => word.or_illegal(register_kind(word), 0),
        0x37 => pure(word.with(Kind::LoadImmediate, (word.0 & 0xffff_f000) as i32)),
        0x3b => word.or_illegal(register_word_kind(word), 0),
        0x43 | 0x47 | 0x4b | 0x4f | 0x53 => match float::form(word.0) {
            Some(form) => Op {
                rs1: u8::from(form.rs1_is_integer),
                rs2: u8::from(form.rd_is_integer),
                ..Op::bare(Kind::Float, word.0 as i32)
            },
            None => word.illegal(),
        },
        0x63 => word.or_illegal(branch_kind(word.funct3()), offset + word.b_imm()),
        0x67 if word.funct3() == 0 => {
            word.with(Kind::JumpRegister, word.i_imm() << 16 | (page_offset + length_bytes) as i32)
        }
        0x6f => {
            let link = page_offset + length_bytes;
            Op {
                kind: Kind::Jump,
                rd: word.integer_rd(),
                rs1: link as u8,
                rs2: (link >> 8) as u8,
                imm: offset + word.j_imm(),
            }
        }
        0x73 => decode_system(word),
        _ => word.illegal(),
    }
}

/// An op without a side effect. It becomes [`Kind::Nop`] if its result goes to [`SINK`].
fn pure(op: Op) -> Op {
    if op.rd == SINK { Op::bare(Kind::Nop, 0) } else { op }
}

fn decode_float_load(word: Word) -> Op {
    let kind = match word.funct3() {
        2 => Kind::LoadFloatWord,
        3 => Kind::LoadFloatDouble,
        _ => return word.illegal(),
    };
    Op { rd: word.rd(), ..word.with(kind, word.i_imm()) }
}

fn decode_add_pc(word: Word, offset: i32) -> Op {
    let imm = (word.0 & 0xffff_f000) as i32;
    // The low twelve bits of imm are zero and offset is below 4096, so this sum cannot overflow.
    pure(word.with(Kind::AddPc, imm + offset))
}

fn branch_kind(funct3: u32) -> Option<Kind> {
    Some(match funct3 {
        0 => Kind::BranchEqual,
        1 => Kind::BranchNotEqual,
        4 => Kind::BranchLessThan,
        5 => Kind::BranchGreaterEqual,
        6 => Kind::BranchLessThanUnsigned,
        7 => Kind::BranchGreaterEqualUnsigned,
        _ => return None,
    })
}

fn decode_immediate(word: Word) -> Op {
    if let Some((hint, _)) = Hint::from_instruction(word.0) {
        let kind = if hint.is_of_lock() { Kind::LockHint } else { Kind::Hint };
        return Op { kind, rd: SINK, rs1: word.rs1(), rs2: 0, imm: word.i_imm() };
    }
    let imm = word.i_imm();
    let shift = imm & 63;
    let kind = match (word.funct3(), word.0 >> 26) {
        (0, _) if word.rs1() == 0 => return pure(word.with(Kind::LoadImmediate, imm)),
        (0, _) if imm == 0 => return pure(word.with(Kind::Move, 0)),
        (0, _) => return pure(word.with(Kind::AddImmediate, imm)),
        (2, _) => return pure(word.with(Kind::SetLessThanImmediate, imm)),
        (3, _) => return pure(word.with(Kind::SetLessThanUnsignedImmediate, imm)),
        (4, _) => return pure(word.with(Kind::XorImmediate, imm)),
        (6, _) => return pure(word.with(Kind::OrImmediate, imm)),
        (7, _) => return pure(word.with(Kind::AndImmediate, imm)),
        (1, 0x00) => Kind::ShiftLeftImmediate,
        (1, 0x0a) => Kind::BitSetImmediate,
        (1, 0x12) => Kind::BitClearImmediate,
        (1, 0x1a) => Kind::BitInvertImmediate,
        (1, 0x18) => match shift {
            0 => Kind::CountLeadingZeros,
            1 => Kind::CountTrailingZeros,
            2 => Kind::CountOnes,
            4 => Kind::SignExtendByte,
            5 => Kind::SignExtendHalf,
            _ => return word.illegal(),
        },
        (5, 0x00) => Kind::ShiftRightImmediate,
        (5, 0x10) => Kind::ShiftRightArithmeticImmediate,
        (5, 0x12) => Kind::BitExtractImmediate,
        (5, 0x18) => Kind::RotateRightImmediate,
        (5, 0x0a) if shift == 7 => Kind::OrCombineBytes,
        (5, 0x1a) if shift == 0x38 => Kind::ReverseBytes,
        _ => return word.illegal(),
    };
    pure(word.with(kind, shift))
}

fn decode_immediate_word(word: Word) -> Op {
    let imm = word.i_imm();
    let shift = imm & 31;
    let kind = match (word.funct3(), word.funct7()) {
        (0, _) => return pure(word.with(Kind::AddWordImmediate, imm)),
        (1, 0x00) => Kind::ShiftLeftWordImmediate,
        (1, 0x04 | 0x05) => return pure(word.with(Kind::ShiftLeftUnsignedWordImmediate, imm & 63)),
        (1, 0x30) => match shift {
            0 => Kind::CountLeadingZerosWord,
            1 => Kind::CountTrailingZerosWord,
            2 => Kind::CountOnesWord,
            _ => return word.illegal(),
        },
        (5, 0x00) => Kind::ShiftRightWordImmediate,
        (5, 0x20) => Kind::ShiftRightArithmeticWordImmediate,
        (5, 0x30) => Kind::RotateRightWordImmediate,
        _ => return word.illegal(),
    };
    pure(word.with(kind, shift))
}

fn register_kind(word: Word) -> Option<Kind> {
    Some(match (word.funct7(), word.funct3()) {
        (0x00, 0) => Kind::Add,
        (0x00, 1) => Kind::ShiftLeft,
        (0x00, 2) => Kind::SetLessThan,
        (0x00, 3) => Kind::SetLessThanUnsigned,
        (0x00, 4) => Kind::Xor,
        (0x00, 5) => Kind::ShiftRight,
        (0x00, 6) => Kind::Or,
        (0x00, 7) => Kind::And,
        (0x20, 0) => Kind::Subtract,
        (0x20, 4) => Kind::XorNot,
        (0x20, 5) => Kind::ShiftRightArithmetic,
        (0x20, 6) => Kind::OrNot,
        (0x20, 7) => Kind::AndNot,
        (0x01, 0) => Kind::Multiply,
        (0x01, 1) => Kind::MultiplyHigh,
        (0x01, 2) => Kind::MultiplyHighSignedUnsigned,
        (0x01, 3) => Kind::MultiplyHighUnsigned,
        (0x01, 4) => Kind::Divide,
        (0x01, 5) => Kind::DivideUnsigned,
        (0x01, 6) => Kind::Remainder,
        (0x01, 7) => Kind::RemainderUnsigned,
        (0x05, 4) => Kind::Minimum,
        (0x05, 5) => Kind::MinimumUnsigned,
        (0x05, 6) => Kind::Maximum,
        (0x05, 7) => Kind::MaximumUnsigned,
        (0x10, 2) => Kind::ShiftOneAdd,
        (0x10, 4) => Kind::ShiftTwoAdd,
        (0x10, 6) => Kind::ShiftThreeAdd,
        (0x14, 1) => Kind::BitSet,
        (0x24, 1) => Kind::BitClear,
        (0x24, 5) => Kind::BitExtract,
        (0x34, 1) => Kind::BitInvert,
        (0x30, 1) => Kind::RotateLeft,
        (0x30, 5) => Kind::RotateRight,
        _ => return None,
    })
}

fn register_word_kind(word: Word) -> Option<Kind> {
    Some(match (word.funct7(), word.funct3()) {
        (0x00, 0) => Kind::AddWord,
        (0x00, 1) => Kind::ShiftLeftWord,
        (0x00, 5) => Kind::ShiftRightWord,
        (0x20, 0) => Kind::SubtractWord,
        (0x20, 5) => Kind::ShiftRightArithmeticWord,
        (0x01, 0) => Kind::MultiplyWord,
        (0x01, 4) => Kind::DivideWord,
        (0x01, 5) => Kind::DivideWordUnsigned,
        (0x01, 6) => Kind::RemainderWord,
        (0x01, 7) => Kind::RemainderWordUnsigned,
        (0x04, 0) => Kind::AddUnsignedWord,
        (0x04, 4) if word.rs2() == 0 => Kind::ZeroExtendHalf,
        (0x10, 2) => Kind::ShiftOneAddUnsignedWord,
        (0x10, 4) => Kind::ShiftTwoAddUnsignedWord,
        (0x10, 6) => Kind::ShiftThreeAddUnsignedWord,
        (0x30, 1) => Kind::RotateLeftWord,
        (0x30, 5) => Kind::RotateRightWord,
        _ => return None,
    })
}

fn decode_atomic(word: Word) -> Op {
    let double = match word.funct3() {
        2 => false,
        3 => true,
        _ => return word.illegal(),
    };
    let pick = |for_word, for_double| if double { for_double } else { for_word };
    let atomic = match word.funct7() >> 2 {
        0x02 if word.rs2() == 0 => return word.with(pick(Kind::LoadReservedWord, Kind::LoadReservedDouble), 0),
        0x03 => return word.with(pick(Kind::StoreConditionalWord, Kind::StoreConditionalDouble), 0),
        0x01 => Atomic::Swap,
        0x00 => Atomic::Add,
        0x04 => Atomic::Xor,
        0x0c => Atomic::And,
        0x08 => Atomic::Or,
        0x10 => Atomic::Minimum,
        0x14 => Atomic::Maximum,
        0x18 => Atomic::MinimumUnsigned,
        0x1c => Atomic::MaximumUnsigned,
        _ => return word.illegal(),
    };
    word.with(pick(Kind::AtomicWord, Kind::AtomicDouble), atomic as i32)
}

fn decode_system(word: Word) -> Op {
    match word.funct3() {
        0 => {
            let kind = match word.0 {
                0x0000_0073 => Kind::EnvironmentCall,
                0x0010_0073 => Kind::Breakpoint,
                0x1020_0073 => Kind::SupervisorReturn,
                0x1050_0073 => Kind::WaitForInterrupt,
                _ if word.funct7() == 0x09 && word.rd() == 0 => {
                    return word.with(Kind::FenceAddressTranslation, word.0 as i32);
                }
                _ => return word.illegal(),
            };
            // imm keeps the bits of the privileged instructions for the trap value.
            Op::bare(kind, word.0 as i32)
        }
        4 => word.illegal(),
        _ => word.with(Kind::Csr, word.0 as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::decode;
    use crate::op::{Kind, Op, SINK};
    use proptest::prelude::*;

    #[test]
    fn immediates_and_targets() {
        // addi a0, a1, -1
        let op = decode(0xfff5_8513, 0x100, 4);
        assert_eq!(op, Op { kind: Kind::AddImmediate, rd: 10, rs1: 11, rs2: 31, imm: -1 });
        // sd ra, 8(sp)
        let op = decode(0x0011_3423, 0, 4);
        assert_eq!((op.kind, op.rs1, op.rs2, op.imm), (Kind::StoreDouble, 2, 1, 8));
        // beq a0, a1, -4 at offset 0x10
        let op = decode(0xfeb5_0ee3, 0x10, 4);
        assert_eq!((op.kind, op.imm), (Kind::BranchEqual, 0xc));
        // jal ra, +8 at offset 0xffc: the link is the next page
        let op = decode(0x0080_00ef, 0xffc, 4);
        assert_eq!((op.kind, op.rd, op.imm), (Kind::Jump, 1, 0x1004));
        assert_eq!(u32::from(op.rs1) | u32::from(op.rs2) << 8, 0x1000);
        // auipc a0, 0x7ffff at the end of a page does not overflow
        assert_eq!(decode(0x7fff_f517, 0xffe, 4).imm, 0x7fff_fffe);
        // j: with rd = x0 the link goes to the sink
        assert_eq!(decode(0x0080_006f, 0, 4).rd, SINK);
    }

    #[test]
    fn hints_and_discarded_results() {
        // slti x0, a0, 3: a marker with its argument in a0
        let op = decode(0x0035_2013, 0, 4);
        assert_eq!((op.kind, op.rs1, op.imm), (Kind::Hint, 10, 3));
        // slti x0, a0, 41: a section of a raw lock begins as a transaction
        let op = decode(0x0295_2013, 0, 4);
        assert_eq!((op.kind, op.rs1, op.imm, op.ends_run()), (Kind::LockHint, 10, 41, false));
        // slti x0, a0, 999 has no meaning
        assert_eq!(decode(0x3e75_2013, 0, 4).kind, Kind::Nop);
        // add x0, a0, a1 writes to the sink
        assert_eq!(decode(0x00b5_0033, 0, 4).rd, SINK);
    }

    proptest! {
        /// Whatever the word, register numbers stay in the register file, and an illegal op keeps the word for the trap
        /// value.
        #[test]
        fn register_numbers_stay_in_range(word in any::<u32>(), offset in 0u32..2048) {
            let op = decode(word | 3, offset * 2, 4);
            prop_assert!(op.rd <= SINK);
            if op.kind == Kind::Illegal {
                prop_assert_eq!(op.imm as u32, word | 3);
            } else if !matches!(op.kind, Kind::Jump | Kind::JumpRegister) {
                prop_assert!(op.rs1 < 32 && op.rs2 < 32);
            }
        }
    }
}

//! The decoded form of an instruction: eight bytes, register numbers checked once, immediates ready to use.
//!
//! The interpreter executes it, and a translator to host code would read it. Register numbers are below 64: 0 to 31 are the
//! architecture's, and [`SINK`] takes the place of `x0` as a destination, so that no write needs a test for `x0`.

/// The register number that integer results for `x0` go to.
pub const SINK: u8 = 32;

/// What an [`Op`] does. The comment gives what its fields hold beyond the plain `rd, rs1, rs2, imm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    // Not instructions.
    /// The end of a decoded run; `imm` is the page offset to go on at (4096 and above: in a later page).
    Next,
    /// A 32-bit instruction whose second half lies in the next page.
    Straddle,
    /// No such instruction; `imm` is its bits, which the trap value shows.
    Illegal,
    Nop,
    // RV64I.
    /// `rd = imm`.
    LoadImmediate,
    /// `rd = page address + imm`; the decoder adds the page offset to `imm`.
    AddPc,
    AddImmediate,
    SetLessThanImmediate,
    SetLessThanUnsignedImmediate,
    XorImmediate,
    OrImmediate,
    AndImmediate,
    ShiftLeftImmediate,
    ShiftRightImmediate,
    ShiftRightArithmeticImmediate,
    AddWordImmediate,
    ShiftLeftWordImmediate,
    ShiftRightWordImmediate,
    ShiftRightArithmeticWordImmediate,
    Move,
    Add,
    Subtract,
    ShiftLeft,
    SetLessThan,
    SetLessThanUnsigned,
    Xor,
    ShiftRight,
    ShiftRightArithmetic,
    Or,
    And,
    AddWord,
    SubtractWord,
    ShiftLeftWord,
    ShiftRightWord,
    ShiftRightArithmeticWord,
    LoadByte,
    LoadHalf,
    LoadWord,
    LoadDouble,
    LoadByteUnsigned,
    LoadHalfUnsigned,
    LoadWordUnsigned,
    StoreByte,
    StoreHalf,
    StoreWord,
    StoreDouble,
    /// Branches and jumps: `imm` is the target as an offset from the page address.
    BranchEqual,
    BranchNotEqual,
    BranchLessThan,
    BranchGreaterEqual,
    BranchLessThanUnsigned,
    BranchGreaterEqualUnsigned,
    /// `rs1 | rs2 << 8` is the link, as an offset from the page address.
    Jump,
    /// The upper half of `imm` is the displacement, the lower half the link as an offset from the page address.
    JumpRegister,
    Fence,
    FenceInstruction,
    EnvironmentCall,
    Breakpoint,
    SupervisorReturn,
    WaitForInterrupt,
    FenceAddressTranslation,
    /// Zicsr; `imm` is the instruction.
    Csr,
    /// A hint to the machine that may change what follows; `imm` is its code.
    Hint,
    /// A hint that speaks of a lock and only counts; `imm` is its code.
    LockHint,
    // Xmetatm; `imm` is the instruction.
    /// xbegin, xend, xrestart, xgettxid, xpush, xpop.
    Transaction,
    /// xtest
    TransactionTest,
    /// xcas
    TransactionCompareAndSwap,
    // M.
    Multiply,
    MultiplyHigh,
    MultiplyHighSignedUnsigned,
    MultiplyHighUnsigned,
    Divide,
    DivideUnsigned,
    Remainder,
    RemainderUnsigned,
    MultiplyWord,
    DivideWord,
    DivideWordUnsigned,
    RemainderWord,
    RemainderWordUnsigned,
    // A.
    LoadReservedWord,
    LoadReservedDouble,
    StoreConditionalWord,
    StoreConditionalDouble,
    /// `imm` is an [`Atomic`].
    AtomicWord,
    AtomicDouble,
    // F and D.
    LoadFloatWord,
    LoadFloatDouble,
    StoreFloatWord,
    StoreFloatDouble,
    /// Any other floating-point instruction; `imm` is the instruction, `rs1` is 1 when its rs1 is an integer register, and
    /// `rs2` is 1 when its rd is one.
    Float,
    // Zba.
    ShiftOneAdd,
    ShiftTwoAdd,
    ShiftThreeAdd,
    AddUnsignedWord,
    ShiftOneAddUnsignedWord,
    ShiftTwoAddUnsignedWord,
    ShiftThreeAddUnsignedWord,
    ShiftLeftUnsignedWordImmediate,
    // Zbb.
    AndNot,
    OrNot,
    XorNot,
    CountLeadingZeros,
    CountTrailingZeros,
    CountOnes,
    CountLeadingZerosWord,
    CountTrailingZerosWord,
    CountOnesWord,
    Maximum,
    MaximumUnsigned,
    Minimum,
    MinimumUnsigned,
    SignExtendByte,
    SignExtendHalf,
    ZeroExtendHalf,
    RotateLeft,
    RotateRight,
    RotateRightImmediate,
    RotateLeftWord,
    RotateRightWord,
    RotateRightWordImmediate,
    OrCombineBytes,
    ReverseBytes,
    // Zbs.
    BitClear,
    BitClearImmediate,
    BitExtract,
    BitExtractImmediate,
    BitInvert,
    BitInvertImmediate,
    BitSet,
    BitSetImmediate,
}

/// The operation of an atomic read-modify-write (A extension).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Atomic {
    Swap,
    Add,
    Xor,
    And,
    Or,
    Minimum,
    Maximum,
    MinimumUnsigned,
    MaximumUnsigned,
}

impl Atomic {
    /// The operation with this discriminant, which [`Op::imm`] holds.
    pub fn from_immediate(imm: i32) -> Atomic {
        match imm {
            0 => Atomic::Swap,
            1 => Atomic::Add,
            2 => Atomic::Xor,
            3 => Atomic::And,
            4 => Atomic::Or,
            5 => Atomic::Minimum,
            6 => Atomic::Maximum,
            7 => Atomic::MinimumUnsigned,
            _ => Atomic::MaximumUnsigned,
        }
    }

    /// The new memory value for a word access (the upper half of the answer means nothing).
    pub fn apply_word(self, memory: u64, operand: u64) -> u64 {
        let signed = |value: u64| value as i32 as i64 as u64;
        let unsigned = |value: u64| value as u32 as u64;
        match self {
            Atomic::MinimumUnsigned | Atomic::MaximumUnsigned => self.apply(unsigned(memory), unsigned(operand)),
            _ => self.apply(signed(memory), signed(operand)),
        }
    }

    /// The new memory value for a doubleword access.
    pub fn apply(self, memory: u64, operand: u64) -> u64 {
        match self {
            Atomic::Swap => operand,
            Atomic::Add => memory.wrapping_add(operand),
            Atomic::Xor => memory ^ operand,
            Atomic::And => memory & operand,
            Atomic::Or => memory | operand,
            Atomic::Minimum => (memory as i64).min(operand as i64) as u64,
            Atomic::Maximum => (memory as i64).max(operand as i64) as u64,
            Atomic::MinimumUnsigned => memory.min(operand),
            Atomic::MaximumUnsigned => memory.max(operand),
        }
    }
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    pub kind: Kind,
    pub rd: u8,
    pub rs1: u8,
    pub rs2: u8,
    pub imm: i32,
}

impl Op {
    /// An op of `kind` that reads and writes no register.
    pub const fn bare(kind: Kind, imm: i32) -> Op {
        Op { kind, rd: SINK, rs1: 0, rs2: 0, imm }
    }

    /// True when nothing after this op in the same decoded run can be reached in sequence.
    pub fn ends_run(self) -> bool {
        matches!(
            self.kind,
            Kind::Illegal
                | Kind::Straddle
                | Kind::Jump
                | Kind::JumpRegister
                | Kind::FenceInstruction
                | Kind::EnvironmentCall
                | Kind::Breakpoint
                | Kind::SupervisorReturn
                | Kind::WaitForInterrupt
                | Kind::FenceAddressTranslation
                | Kind::Csr
                | Kind::Hint
                | Kind::Transaction
                | Kind::TransactionTest
                | Kind::TransactionCompareAndSwap
        )
    }
}

//! The decoded form of an instruction: eight bytes, register numbers checked once, immediates ready to use.
//!
//! The interpreter executes this form, and a translator to host code would read it. Register numbers are below 64: 0 to
//! 31 are the architecture's, and [`SINK`] replaces `x0` as a destination, so that no write needs a test for `x0`.

/// The register number of the destination of integer results for `x0`.
pub const SINK: u8 = 32;

/// The operation of an [`Op`]. The comments describe fields that hold more than the plain `rd, rs1, rs2, imm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    // Ops that are not instructions.
    /// The end of a decoded run; `imm` is the page offset at which execution continues (4096 and above: in a later
    /// page).
    Next,
    /// A 32-bit instruction whose second half lies in the next page.
    Straddle,
    /// An illegal instruction; `imm` is its bits, for the trap value.
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
    /// The upper half of `imm` is the displacement; the lower half is the link, as an offset from the page address.
    JumpRegister,
    Fence,
    /// `pause` (Zihintpause): a fence that orders nothing, and takes the time that the board says.
    Pause,
    FenceInstruction,
    EnvironmentCall,
    Breakpoint,
    SupervisorReturn,
    WaitForInterrupt,
    FenceAddressTranslation,
    /// Zicsr; `imm` is the instruction.
    Csr,
    /// A hint to the machine that may change the following execution; `imm` is its code.
    Hint,
    /// A hint that reports on a lock and only counts; `imm` is its code.
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
    /// Any other floating-point instruction; `imm` is the instruction. `rs1` is 1 if the instruction's rs1 is an
    /// integer register, and `rs2` is 1 if its rd is one.
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

/// How a plain load or store accesses memory, at base register plus immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAccess {
    pub size_bytes: u64,
    pub store: bool,
    /// The value is a floating-point register's.
    pub float: bool,
}

impl Kind {
    /// The access of a plain load or store; `None` for atomics and for ops that access no memory.
    pub const fn plain_access(self) -> Option<PlainAccess> {
        let (size_bytes, store, float) = match self {
            Kind::LoadByte | Kind::LoadByteUnsigned => (1, false, false),
            Kind::LoadHalf | Kind::LoadHalfUnsigned => (2, false, false),
            Kind::LoadWord | Kind::LoadWordUnsigned => (4, false, false),
            Kind::LoadDouble => (8, false, false),
            Kind::StoreByte => (1, true, false),
            Kind::StoreHalf => (2, true, false),
            Kind::StoreWord => (4, true, false),
            Kind::StoreDouble => (8, true, false),
            Kind::LoadFloatWord => (4, false, true),
            Kind::LoadFloatDouble => (8, false, true),
            Kind::StoreFloatWord => (4, true, true),
            Kind::StoreFloatDouble => (8, true, true),
            _ => return None,
        };
        Some(PlainAccess { size_bytes, store, float })
    }
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
    /// The operation with this discriminant, as [`Op::imm`] holds it.
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

    /// The new memory value of a word access. The upper half of the result has no meaning.
    pub fn apply_word(self, memory: u64, operand: u64) -> u64 {
        let signed = |value: u64| value as i32 as i64 as u64;
        let unsigned = |value: u64| value as u32 as u64;
        match self {
            Atomic::MinimumUnsigned | Atomic::MaximumUnsigned => self.apply(unsigned(memory), unsigned(operand)),
            _ => self.apply(signed(memory), signed(operand)),
        }
    }

    /// The new memory value of a doubleword access.
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
    /// An op of `kind` that accesses no register.
    pub const fn bare(kind: Kind, imm: i32) -> Op {
        Op { kind, rd: SINK, rs1: 0, rs2: 0, imm }
    }

    /// True if execution never falls through to the next op of the decoded run.
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

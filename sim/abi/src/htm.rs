//! Xmetatm: the numbers of the transactional extension. `docs/xmetatm.md` gives their meaning; the model is MetaTM
//! (Rossbach et al., "TxLinux", SOSP 2007, table 1 and sections 3.2, 4.3 and 6.1).

/// The extension's name in the device tree's `riscv,isa-extensions`.
pub const EXTENSION: &str = "xmetatm";

/// Major opcodes: those that the unprivileged specification sets aside for custom use.
pub const OPCODE_CUSTOM_0: u32 = 0x0b;
pub const OPCODE_CUSTOM_1: u32 = 0x2b;
pub const OPCODE_CUSTOM_2: u32 = 0x5b;

/// An instruction of custom-0; the discriminant is its funct3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Control {
    /// `xbegin rd`
    Begin = 0,
    /// `xend`
    End = 1,
    /// `xrestart rs1`
    Restart = 2,
    /// `xgettxid rd`
    TransactionId = 3,
    /// `xpush`
    Push = 4,
    /// `xpop`
    Pop = 5,
    /// `xdrop`
    Drop = 6,
}

impl Control {
    /// Every instruction of custom-0, with its mnemonic.
    pub const ALL: [(Control, &'static str); 7] = [
        (Control::Begin, "xbegin"),
        (Control::End, "xend"),
        (Control::Restart, "xrestart"),
        (Control::TransactionId, "xgettxid"),
        (Control::Push, "xpush"),
        (Control::Pop, "xpop"),
        (Control::Drop, "xdrop"),
    ];

    /// The instruction with this funct3.
    pub fn from_funct3(funct3: u32) -> Option<Control> {
        Control::ALL.iter().map(|(control, _)| *control).find(|control| *control as u32 == funct3)
    }

    pub fn has_destination(self) -> bool {
        matches!(self, Control::Begin | Control::TransactionId)
    }

    pub fn has_source(self) -> bool {
        self == Control::Restart
    }

    /// The instruction word. A register that the instruction does not have must be 0. With any other value the word is
    /// an illegal instruction; the function encodes it all the same, so that tests can execute it.
    pub fn encode(self, rd: u32, rs1: u32) -> u32 {
        OPCODE_CUSTOM_0 | register(rd) << RD_SHIFT | (self as u32) << FUNCT3_SHIFT | register(rs1) << RS1_SHIFT
    }
}

/// The widths of `xtest` and `xcas`. The discriminant is the instruction's funct3 and the binary logarithm of the size
/// in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    Byte = 0,
    Half = 1,
    Word = 2,
    Double = 3,
}

impl Width {
    /// Every width, with the suffix of its mnemonic.
    pub const ALL: [(Width, &'static str); 4] =
        [(Width::Byte, "b"), (Width::Half, "h"), (Width::Word, "w"), (Width::Double, "d")];

    pub fn size_bytes(self) -> u32 {
        1 << self as u32
    }

    /// The word of `xtest.{b,h,w,d} rd, (rs1), rs2`.
    pub fn encode_test(self, rd: u32, rs1: u32, rs2: u32) -> u32 {
        OPCODE_CUSTOM_1 | self.encode_operands(rd, rs1, rs2)
    }

    /// The word of `xcas.{b,h,w,d} rd, (rs1), rs2, rs3`: expected value in `rs2`, new value in `rs3`.
    pub fn encode_compare_and_swap(self, rd: u32, rs1: u32, rs2: u32, rs3: u32) -> u32 {
        OPCODE_CUSTOM_2 | self.encode_operands(rd, rs1, rs2) | register(rs3) << RS3_SHIFT
    }

    fn encode_operands(self, rd: u32, rs1: u32, rs2: u32) -> u32 {
        register(rd) << RD_SHIFT
            | (self as u32) << FUNCT3_SHIFT
            | register(rs1) << RS1_SHIFT
            | register(rs2) << RS2_SHIFT
    }
}

/// The lowest bits of the fields of an instruction word (unprivileged specification, "Base Instruction Formats").
const RD_SHIFT: u32 = 7;
const FUNCT3_SHIFT: u32 = 12;
const RS1_SHIFT: u32 = 15;
const RS2_SHIFT: u32 = 20;
const RS3_SHIFT: u32 = 27;

fn register(number: u32) -> u32 {
    assert!(number < 32, "there is no register {number}");
    number
}

/// The answer of an `xcas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CompareAndSwap {
    Swapped = 0,
    Differed = 1,
    /// The contention manager favoured a transaction.
    Refused = 2,
}

/// The cause of a restart: bits 7 to 0 of the status word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Cause {
    /// No restart: the transaction executes for the first time.
    #[default]
    None = 0,
    /// The transaction lost a conflict with another transaction.
    Conflict = 1,
    /// A non-transactional access touched the transaction's sets.
    Nontransactional = 2,
    /// `xrestart`.
    Explicit = 3,
    /// The transaction was about to do something that cannot be rolled back.
    NeedExclusive = 4,
    /// Best-effort mode: a line of the transaction's sets left the first-level cache.
    Capacity = 5,
    /// Best-effort mode: a trap was taken.
    Interrupt = 6,
    /// The transaction nested deeper than [`DEPTH_MAX`].
    Depth = 7,
}

impl Cause {
    /// Every cause of a restart, with its name in the C header.
    pub const RESTARTS: [(Cause, &'static str); 7] = [
        (Cause::Conflict, "CONFLICT"),
        (Cause::Nontransactional, "NONTRANSACTIONAL"),
        (Cause::Explicit, "EXPLICIT"),
        (Cause::NeedExclusive, "NEED_EXCLUSIVE"),
        (Cause::Capacity, "CAPACITY"),
        (Cause::Interrupt, "INTERRUPT"),
        (Cause::Depth, "DEPTH"),
    ];

    /// The name in results and timelines: that of the C header, in lower case and with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            Cause::None => "none",
            Cause::Conflict => "conflict",
            Cause::Nontransactional => "nontransactional",
            Cause::Explicit => "explicit",
            Cause::NeedExclusive => "need-exclusive",
            Cause::Capacity => "capacity",
            Cause::Interrupt => "interrupt",
            Cause::Depth => "depth",
        }
    }

    /// The restart cause that [`Cause::name`] gives this name.
    pub fn named(name: &str) -> Option<Cause> {
        Cause::RESTARTS.into_iter().map(|(cause, _)| cause).find(|cause| cause.name() == name)
    }

    /// The cause that an `xrestart` with this operand has.
    pub fn of_restart(operand: u64) -> Cause {
        if operand & 0xff == Cause::NeedExclusive as u64 { Cause::NeedExclusive } else { Cause::Explicit }
    }

    /// The cause in a status word; [`Cause::None`] if the field holds no restart cause.
    pub fn of_status(status: u64) -> Cause {
        let causes = Cause::RESTARTS.iter().map(|(cause, _)| *cause);
        causes.into_iter().find(|cause| *cause as u64 == status & 0xff).unwrap_or(Cause::None)
    }

    /// The status word with this cause and a user code.
    pub fn status(self, user_code: u8) -> u64 {
        self as u64 | u64::from(user_code) << STATUS_CODE_SHIFT
    }
}

/// The lowest of the eight bits of `xrestart`'s user code, in the status word and in the operand.
pub const STATUS_CODE_SHIFT: u32 = 8;

/// The greatest nesting depth.
pub const DEPTH_MAX: u32 = 255;
/// The greatest number of suspended frames in a context.
pub const FRAMES_MAX: usize = 64;
/// With this number of suspended frames, user mode can neither begin a transaction nor push a frame. The kernel has the
/// rest.
pub const FRAMES_USER_MAX: usize = 32;
/// The value at which `xrestarts` saturates.
pub const RESTARTS_MAX: u64 = 0xffff;
/// The greatest conflict priority.
pub const PRIORITY_MAX: u64 = 0xff;

pub const CSR_PRIORITY: u32 = 0x5c0;
pub const CSR_RESTARTS: u32 = 0x5c1;
pub const CSR_BACKOFF: u32 = 0x5c2;
pub const CSR_CONTEXT: u32 = 0x5c3;
pub const CSR_TRAP: u32 = 0x5c4;
pub const CSR_ENABLE: u32 = 0x5c5;
pub const CSR_STATUS: u32 = 0xcc0;
pub const CSR_SIZE: u32 = 0xcc1;
pub const CSR_BEGIN_TIME: u32 = 0xcc2;
pub const CSR_STACK: u32 = 0xdc0;
pub const CSR_FRAMES: u32 = 0xdc1;
pub const CSR_CONFLICT: u32 = 0xdc2;
pub const CSR_WINNER: u32 = 0xdc3;

/// Every register, with its name.
pub const CSRS: [(u32, &str); 13] = [
    (CSR_PRIORITY, "xpriority"),
    (CSR_RESTARTS, "xrestarts"),
    (CSR_BACKOFF, "xbackoff"),
    (CSR_CONTEXT, "xcontext"),
    (CSR_TRAP, "xtrap"),
    (CSR_ENABLE, "xenable"),
    (CSR_STATUS, "xstatus"),
    (CSR_SIZE, "xsize"),
    (CSR_BEGIN_TIME, "xbegintime"),
    (CSR_STACK, "xstack"),
    (CSR_FRAMES, "xframes"),
    (CSR_CONFLICT, "xconflict"),
    (CSR_WINNER, "xwinner"),
];

/// Bits of `xstatus`.
pub const XSTATUS_ACTIVE: u64 = 1;
pub const XSTATUS_SUSPENDED: u64 = 2;
pub const XSTATUS_STALLED: u64 = 4;
pub const XSTATUS_OVERFLOWED: u64 = 8;
pub const XSTATUS_DOOMED: u64 = 16;
pub const XSTATUS_DEPTH_SHIFT: u32 = 8;
pub const XSTATUS_STATUS_SHIFT: u32 = 16;

/// `xtrap.PT`: the last trap suspended a transaction.
pub const XTRAP_PREVIOUS: u64 = 1;
/// `xenable.U`: user mode may use the extension.
pub const XENABLE_USER: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_lie_in_the_custom_ranges_of_their_privilege() {
        for (number, name) in CSRS {
            let custom = match number {
                0x5c0..=0x5ff | 0xdc0..=0xdff => number >> 8 & 3 == 1,
                0x800..=0x8ff | 0xcc0..=0xcff => number >> 8 & 3 == 0,
                _ => false,
            };
            assert!(custom, "{name} is {number:#x}");
        }
    }

    #[test]
    fn numbers_and_names_differ() {
        let mut numbers: Vec<u32> = CSRS.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), CSRS.len());
        for (place, (cause, _)) in Cause::RESTARTS.iter().enumerate() {
            assert_eq!(*cause as usize, place + 1);
        }
        for (control, _) in Control::ALL {
            assert_eq!(Control::from_funct3(control as u32), Some(control));
        }
        assert_eq!(Control::from_funct3(7), None);
    }

    #[test]
    fn words_are_those_that_an_assembler_makes() {
        // `.insn i CUSTOM_0, 0, a0, x0, 0` and the like, assembled by binutils 2.40.
        assert_eq!(Control::Begin.encode(10, 0), 0x0000_050b);
        assert_eq!(Control::Restart.encode(0, 31), 0x000f_a00b);
        assert_eq!(Control::Pop.encode(0, 0), 0x0000_500b);
        assert_eq!(Width::Double.encode_test(10, 11, 12), 0x00c5_b52b);
        assert_eq!(Width::Word.encode_compare_and_swap(10, 11, 12, 31), 0xf8c5_a55b);
        for (place, (width, _)) in Width::ALL.into_iter().enumerate() {
            assert_eq!(width as usize, place);
        }
    }

    #[test]
    fn a_cause_has_one_name_in_the_header_and_in_results() {
        for (cause, header_name) in Cause::RESTARTS {
            assert_eq!(cause.name(), header_name.to_lowercase().replace('_', "-"));
            assert_eq!(Cause::named(cause.name()), Some(cause));
        }
        assert_eq!((Cause::named("none"), Cause::named("CONFLICT")), (None, None));
    }

    #[test]
    fn a_status_word_has_its_cause_and_its_code() {
        assert_eq!(Cause::of_restart(0x0704), Cause::NeedExclusive);
        assert_eq!(Cause::of_restart(0x0705), Cause::Explicit);
        assert_eq!(Cause::Explicit.status(7), 0x0703);
        assert_eq!(Cause::of_status(0x0703), Cause::Explicit);
        assert_eq!(Cause::of_status(0x0700), Cause::None);
        assert_eq!(Cause::None.status(0), 0);
    }
}

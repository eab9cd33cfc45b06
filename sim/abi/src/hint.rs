//! Hint instructions: a guest sends the machine a message at almost no cost.
//!
//! In the timed gear a hint takes no cycle, so a kernel with hints runs as fast as one without; its only cost is its
//! room in the instruction cache. In the functional gear it takes a cycle like any other instruction. In both gears it
//! counts as an instruction.
//!
//! The encoding is `slti x0, rs1, code`. The unprivileged specification ("HINT Instructions") sets `SLTI` with
//! `rd = x0` aside for custom use, so a guest that carries hints runs unchanged on any other RISC-V processor. `rs1`
//! holds the argument.

/// The message of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Hint {
    /// The machine continues without the cache model. No argument.
    GearFunctional = 1,
    /// The machine continues with the cache model. No argument.
    GearTimed = 2,
    /// A point of interest; the argument is a number that the timeline and `--snapshot-at marker:N` name.
    Marker = 3,
    /// The region of interest begins: statistics start from here. No argument.
    RegionBegin = 4,
    /// The region of interest ends. No argument.
    RegionEnd = 5,
    /// The guest reports failure; the argument is its code (0 to 255). The run ends.
    Fail = 6,
    /// A hart starts to spin on a lock; the argument is the lock's address. If a spin on that lock is open, it
    /// continues.
    LockSpinBegin = 16,
    /// One iteration of a waiting loop that only reads. It counts towards the spin that is open on the hart, whatever
    /// the argument. Without an open spin it has no effect.
    LockTest = 19,
    /// One atomic attempt, after the first, to take a lock that another hart holds. Counts as [`Hint::LockTest`] does.
    LockTestAndSet = 20,
    /// The spin that is open on the hart ends without the lock; the argument is the lock's address. The hart's next
    /// section of that lock is charged with the cost of the spin.
    LockSpinAbandoned = 21,
    /// A section begins with its lock held. The argument is the lock's address; `ra` is the call site; the code is this
    /// one plus a [`SectionKind`]. Ends the spin on the lock if one is open.
    SectionLocked = 32,
    /// A section begins as a transaction or as a part of one; the hint executes inside the transaction. Otherwise as
    /// [`Hint::SectionLocked`].
    SectionTransactional = 40,
    /// The section of a lock ends, whether it began locked or transactional: the hint comes before the release or
    /// before the `xend`. The argument is the lock's address. If several sections of that lock are open, the last one
    /// ends.
    SectionEnd = 48,
}

/// The kind of a section's lock. The code of the hint that begins the section contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u16)]
pub enum SectionKind {
    /// Linux's `spinlock_t`.
    Spin = 0,
    /// Linux's `raw_spinlock_t`.
    Raw = 1,
    /// The reader's side of a reader/writer lock.
    Read = 2,
    /// The writer's side.
    Write = 3,
    /// A reader of a seqlock. A writer also holds a lock, which has another kind.
    Seqlock = 4,
}

impl SectionKind {
    /// Every kind, with the name it has in the C header (and, in lower case, in results).
    pub const ALL: [(SectionKind, &'static str); 5] = [
        (SectionKind::Spin, "SPIN"),
        (SectionKind::Raw, "RAW"),
        (SectionKind::Read, "READ"),
        (SectionKind::Write, "WRITE"),
        (SectionKind::Seqlock, "SEQLOCK"),
    ];

    /// The kind in the code of a hint that begins a section.
    #[inline]
    pub fn of_code(code: u16) -> Option<SectionKind> {
        Hint::from_code(code).filter(|hint| hint.begins_section())?;
        SectionKind::ALL.get(usize::from(code & 7)).map(|(kind, _)| *kind)
    }
}

impl Hint {
    /// Every hint, with the name it has in the C header.
    pub const ALL: [(Hint, &'static str); 13] = [
        (Hint::GearFunctional, "GEAR_FUNCTIONAL"),
        (Hint::GearTimed, "GEAR_TIMED"),
        (Hint::Marker, "MARKER"),
        (Hint::RegionBegin, "REGION_BEGIN"),
        (Hint::RegionEnd, "REGION_END"),
        (Hint::Fail, "FAIL"),
        (Hint::LockSpinBegin, "LOCK_SPIN_BEGIN"),
        (Hint::LockTest, "LOCK_TEST"),
        (Hint::LockTestAndSet, "LOCK_TEST_AND_SET"),
        (Hint::LockSpinAbandoned, "LOCK_SPIN_ABANDONED"),
        (Hint::SectionLocked, "SECTION_LOCKED"),
        (Hint::SectionTransactional, "SECTION_TRANSACTIONAL"),
        (Hint::SectionEnd, "SECTION_END"),
    ];

    /// The hint with this code; the code of a section's begin includes its kind. `None` for a code that has no meaning
    /// to the machine.
    #[inline]
    pub fn from_code(code: u16) -> Option<Hint> {
        BY_CODE.get(usize::from(code)).copied().flatten()
    }

    /// Whether the hint begins a section. Its code then contains the section's kind.
    pub const fn begins_section(self) -> bool {
        matches!(self, Hint::SectionLocked | Hint::SectionTransactional)
    }

    /// Whether the hint reports on a lock: it then only counts, and changes nothing in the machine.
    pub fn is_of_lock(self) -> bool {
        self as u16 >= Hint::LockSpinBegin as u16
    }

    /// The hint that this 32-bit instruction word encodes, with the number of its argument register.
    pub fn from_instruction(instruction: u32) -> Option<(Hint, u8)> {
        // opcode OP-IMM, rd = x0, funct3 = SLTI
        if instruction & 0x7fff != 0x2013 {
            return None;
        }
        let argument_register = (instruction >> 15 & 31) as u8;
        Hint::from_code((instruction >> 20) as u16).map(|hint| (hint, argument_register))
    }
}

/// The hint of each code. A table, because a kernel executes a hint for every lock.
const BY_CODE: [Option<Hint>; 64] = {
    let mut table = [None; 64];
    let mut index = 0;
    while index < Hint::ALL.len() {
        let hint = Hint::ALL[index].0;
        let codes = if hint.begins_section() { SectionKind::ALL.len() } else { 1 };
        let mut kind = 0;
        while kind < codes {
            table[hint as usize + kind] = Some(hint);
            kind += 1;
        }
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{Hint, SectionKind};

    #[test]
    fn an_instruction_word_names_its_hint_and_argument() {
        for (hint, _) in Hint::ALL {
            let word = (hint as u32) << 20 | 10 << 15 | 0x2013;
            assert_eq!(Hint::from_instruction(word), Some((hint, 10)));
            assert_eq!(Hint::from_instruction(word | 1 << 7), None, "rd must be x0");
        }
        for code in [15, 17, 18, 22, 31, 37, 39, 45, 47, 49] {
            assert_eq!(Hint::from_instruction(code << 20 | 0x2013), None, "{code}");
        }
        assert_eq!(Hint::from_instruction(0x2013), None, "code 0 has no meaning");
    }

    #[test]
    fn the_code_of_a_sections_begin_contains_its_kind() {
        for (kind, _) in SectionKind::ALL {
            for hint in [Hint::SectionLocked, Hint::SectionTransactional] {
                let code = hint as u16 + kind as u16;
                assert_eq!((Hint::from_code(code), SectionKind::of_code(code)), (Some(hint), Some(kind)));
            }
        }
        for code in [16, 21, 37, 45, 48] {
            assert_eq!(SectionKind::of_code(code), None, "{code}");
        }
    }
}

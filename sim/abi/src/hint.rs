//! Hint instructions: how a guest speaks to the machine at the cost of one instruction.
//!
//! The encoding is `slti x0, rs1, code`. The unprivileged specification ("HINT Instructions") sets `SLTI` with `rd = x0`
//! aside for custom use, so a guest that carries hints runs unchanged on any other RISC-V processor. `rs1` holds the argument.

/// What a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Hint {
    /// Go on without the cache model. No argument.
    GearFunctional = 1,
    /// Go on with the cache model. No argument.
    GearTimed = 2,
    /// A point of interest; the argument is a number that the timeline and `--snapshot-at marker:N` name.
    Marker = 3,
    /// The region of interest begins: statistics start from here. No argument.
    RegionBegin = 4,
    /// The region of interest ends. No argument.
    RegionEnd = 5,
    /// The guest reports failure; the argument is its code (0 to 255). The run ends.
    Fail = 6,
    /// A hart starts to spin on a lock; the argument is the lock's address.
    LockSpinBegin = 16,
    /// A hart holds a lock; the argument is the lock's address. Ends the spin if one was begun.
    LockAcquired = 17,
    /// A hart lets a lock go; the argument is the lock's address.
    LockReleased = 18,
}

impl Hint {
    /// Every hint, with the name it has in the C header.
    pub const ALL: [(Hint, &'static str); 9] = [
        (Hint::GearFunctional, "GEAR_FUNCTIONAL"),
        (Hint::GearTimed, "GEAR_TIMED"),
        (Hint::Marker, "MARKER"),
        (Hint::RegionBegin, "REGION_BEGIN"),
        (Hint::RegionEnd, "REGION_END"),
        (Hint::Fail, "FAIL"),
        (Hint::LockSpinBegin, "LOCK_SPIN_BEGIN"),
        (Hint::LockAcquired, "LOCK_ACQUIRED"),
        (Hint::LockReleased, "LOCK_RELEASED"),
    ];

    /// The hint with this code; `None` for a code that says nothing to the machine.
    pub fn from_code(code: u16) -> Option<Hint> {
        Hint::ALL.iter().map(|(hint, _)| *hint).find(|hint| *hint as u16 == code)
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

#[cfg(test)]
mod tests {
    use super::Hint;

    #[test]
    fn an_instruction_word_names_its_hint_and_argument() {
        for (hint, _) in Hint::ALL {
            let word = (hint as u32) << 20 | 10 << 15 | 0x2013;
            assert_eq!(Hint::from_instruction(word), Some((hint, 10)));
            assert_eq!(Hint::from_instruction(word | 1 << 7), None, "rd must be x0");
        }
        assert_eq!(Hint::from_instruction(0x2013), None, "code 0 says nothing");
    }
}

//! The `sifive,test` finisher: a store ends the run (QEMU `hw/misc/sifive_test.c` has the same register).

use serde::{Deserialize, Serialize};

/// How the guest ended its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// 0x5555: powered off.
    Pass,
    /// 0x3333: failed, with the code of bits 16 to 31.
    Fail(u16),
    /// 0x7777: asked for a reset.
    Reset,
}

impl Finish {
    /// The command in a store of `value` to the register at offset 0; none where the low half is no command.
    pub(crate) fn decode(value: u32) -> Option<Finish> {
        let code = (value >> 16) as u16;
        match value & 0xffff {
            0x5555 => Some(Finish::Pass),
            0x3333 => Some(Finish::Fail(code)),
            0x7777 => Some(Finish::Reset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_decode() {
        assert_eq!(Finish::decode(0x5555), Some(Finish::Pass));
        assert_eq!(Finish::decode(0x3333), Some(Finish::Fail(0)));
        assert_eq!(Finish::decode(0xffff_3333), Some(Finish::Fail(0xffff)));
        assert_eq!(Finish::decode(0x7777), Some(Finish::Reset));
        assert_eq!(Finish::decode(0x5556), None);
        assert_eq!(Finish::decode(0), None);
    }
}

//! The control and status registers of Xmetatm (`docs/xmetatm.md`, "Control and status registers").

use crate::execute::csr::IllegalCsr;
use crate::hart::Privilege;
use crate::machine::Machine;
use concord_abi::htm::*;
use concord_htm::Subject;
use concord_htm::policy::Mode;

/// Registers that a transaction may write: those of its checkpoint, and two counters that are not rolled back.
const FSRM: std::ops::RangeInclusive<u32> = 0x001..=0x003;
const REVOCABLE: [u32; 9] = [0x100, 0x104, 0x140, 0x141, 0x142, 0x143, CSR_TRAP, CSR_RESTARTS, CSR_BACKOFF];

/// True if a write of the register cannot be rolled back.
pub(super) fn is_irrevocable(csr: u32) -> bool {
    !FSRM.contains(&csr) && !REVOCABLE.contains(&csr)
}

impl Machine {
    /// True if the hart has the extension and may use it in its present mode.
    pub(crate) fn may_use_transactions(&self, hart: usize) -> bool {
        let state = &self.harts[hart];
        let is_allowed = state.privilege == Privilege::Supervisor || state.xenable & XENABLE_USER != 0;
        is_allowed && self.transactions.policy().mode != Mode::None
    }

    /// Reads a register of the extension. The caller has checked the privilege that the register's number encodes.
    pub(crate) fn read_transaction_csr(&self, hart: usize, csr: u32) -> Result<u64, IllegalCsr> {
        if !self.may_use_transactions(hart) {
            return Err(IllegalCsr);
        }
        let engine = &self.transactions;
        let subject = engine.subject(hart);
        Ok(match csr {
            CSR_PRIORITY => engine.priority(hart),
            CSR_RESTARTS => engine.restarts(hart),
            CSR_BACKOFF => engine.backoff_cycles(hart),
            CSR_CONTEXT => engine.context(hart),
            CSR_TRAP => self.harts[hart].xtrap,
            CSR_ENABLE => self.harts[hart].xenable,
            CSR_STATUS => match &subject {
                Some(subject) => status(subject),
                None => engine.last_status(hart) << XSTATUS_STATUS_SHIFT,
            },
            CSR_SIZE => subject.map_or(0, |subject| engine.policy().granules(subject.size_words)),
            CSR_BEGIN_TIME => subject.map_or(engine.begin_cycle(hart), |subject| subject.begin_cycle),
            CSR_STACK => match subject {
                Some(subject) if subject.suspended && subject.checkpoint.privilege == Privilege::Supervisor => {
                    subject.checkpoint.x[2]
                }
                _ => u64::MAX,
            },
            CSR_FRAMES => engine.frames(hart) as u64,
            CSR_CONFLICT => engine.last_conflict(hart).0,
            CSR_WINNER => engine.last_conflict(hart).1,
            _ => return Err(IllegalCsr),
        })
    }

    /// Writes a register of the extension.
    pub(crate) fn write_transaction_csr(&mut self, hart: usize, csr: u32, value: u64) -> Result<(), IllegalCsr> {
        match csr {
            CSR_PRIORITY => self.transactions.set_priority(hart, value),
            CSR_RESTARTS => self.transactions.set_restarts(hart, value),
            CSR_BACKOFF => self.transactions.set_backoff_cycles(hart, value),
            CSR_CONTEXT => self.transactions.switch_context(hart, value).map_err(|_| IllegalCsr)?,
            CSR_TRAP => self.harts[hart].xtrap = value & XTRAP_PREVIOUS,
            CSR_ENABLE => self.harts[hart].xenable = value & XENABLE_USER,
            _ => return Err(IllegalCsr),
        }
        Ok(())
    }
}

fn status<C>(subject: &Subject<'_, C>) -> u64 {
    let bit = |set: bool, bit: u64| if set { bit } else { 0 };
    bit(!subject.suspended, XSTATUS_ACTIVE)
        | bit(subject.suspended, XSTATUS_SUSPENDED)
        | bit(subject.stalled, XSTATUS_STALLED)
        | bit(subject.overflowed, XSTATUS_OVERFLOWED)
        | bit(subject.doomed, XSTATUS_DOOMED)
        | u64::from(subject.depth) << XSTATUS_DEPTH_SHIFT
        | subject.status << XSTATUS_STATUS_SHIFT
}

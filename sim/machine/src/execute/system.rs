//! Ops that the machine executes between runs: system instructions, hints, and instructions that straddle a page.

use crate::execute::code::CodePage;
use crate::execute::door::Stop;
use crate::execute::position::Position;
use crate::hart::{Activity, CAUSE_BREAKPOINT, CAUSE_ILLEGAL_INSTRUCTION, CAUSE_USER_CALL, Privilege};
use crate::machine::Machine;
use crate::transaction::Done;
use concord_isa::compressed;
use concord_isa::op::{Kind, Op};
use concord_mem::fault::{Access, Fault};
use concord_mem::ram::{PAGE_BYTES, PAGE_SHIFT};

impl Machine {
    /// Executes the op at `hart.pc` that stopped a run.
    pub(crate) fn finish_op<const TIMED: bool>(&mut self, hart: usize, op: Op, stop: Stop) {
        if !matches!(stop, Stop::System) {
            return self.stopped(hart, stop);
        }
        if op.kind == Kind::Straddle {
            return match self.fetch_instruction(hart) {
                Ok((instruction, length)) => self.run_alone::<TIMED>(hart, instruction, length),
                Err(fault) => self.exception(hart, fault.cause(), fault.address),
            };
        }
        if self.transactions.is_active(hart) && self.is_irrevocable(hart, op) {
            return self.stopped(hart, Stop::Irrevocable);
        }
        let supervisor = self.harts[hart].privilege == Privilege::Supervisor;
        // The instructions' own bits, for the trap value of those that turn out to be illegal.
        let illegal =
            |machine: &mut Machine| machine.exception(hart, CAUSE_ILLEGAL_INSTRUCTION, u64::from(op.imm as u32));
        match op.kind {
            Kind::EnvironmentCall if supervisor => {
                self.retire(hart, 4);
                self.call_sbi(hart);
                self.take_interrupt(hart);
            }
            Kind::EnvironmentCall => self.exception(hart, CAUSE_USER_CALL, 0),
            Kind::Breakpoint => {
                let pc = self.memory.hot[hart].pc;
                self.exception(hart, CAUSE_BREAKPOINT, pc);
            }
            Kind::SupervisorReturn if supervisor && self.harts[hart].xtrap != 0 => {
                match self.return_to_transaction(hart) {
                    Some(true) => {
                        self.retire(hart, 4);
                        self.supervisor_return(hart);
                    }
                    Some(false) => {}
                    None => illegal(self),
                }
            }
            Kind::SupervisorReturn if supervisor => {
                self.retire(hart, 4);
                self.supervisor_return(hart);
            }
            Kind::WaitForInterrupt if supervisor => {
                self.retire(hart, 4);
                // In a transaction the hart would wait for an event that only its handlers see.
                if !self.transactions.is_active(hart) {
                    self.wait_for_interrupt(hart);
                }
            }
            Kind::FenceAddressTranslation if supervisor => {
                let address = (op.rs1 != 0).then(|| self.memory.hot[hart].x[op.rs1 as usize]);
                self.memory.flush_translations(hart, address);
                self.retire(hart, 4);
            }
            Kind::FenceInstruction => {
                self.memory.flush_fetch(hart);
                self.retire(hart, 4);
            }
            Kind::Csr => match self.execute_csr(hart, op.imm as u32) {
                Ok(()) => {
                    self.retire(hart, 4);
                    self.take_interrupt(hart);
                }
                Err(_) => illegal(self),
            },
            Kind::Transaction | Kind::TransactionTest | Kind::TransactionCompareAndSwap => {
                match self.execute_transactional(hart, op) {
                    Done::Retired => self.retire(hart, 4),
                    Done::Restarted => {}
                    Done::Illegal => illegal(self),
                    Done::Stopped(stop) => self.stopped(hart, stop),
                }
                self.memory.hot[hart].charge_stalls();
            }
            Kind::Hint => {
                self.retire(hart, 4);
                // In the timed gear hints take no time, so a program with hints is measured like one without.
                self.memory.hot[hart].cycle -= u64::from(TIMED);
                let argument = self.memory.hot[hart].x[op.rs1 as usize];
                self.hint(hart, op.imm as u16, argument);
            }
            _ => {
                // Illegal in this state: floating point that is disabled or has no valid rounding mode, or an unknown
                // instruction.
                let bits = self.fetch_instruction(hart).map_or(0, |(instruction, length)| match length {
                    2 => instruction & 0xffff,
                    _ => instruction,
                });
                self.exception(hart, CAUSE_ILLEGAL_INSTRUCTION, u64::from(bits));
            }
        }
    }

    /// An instruction that did not complete still uses up a cycle, so that a hart without progress reaches its limits.
    pub(super) fn stopped(&mut self, hart: usize, stop: Stop) {
        if matches!(stop, Stop::Queued) {
            // The hart is due again at its turn.
            self.memory.hot[hart].limit = 0;
            return;
        }
        self.memory.leave_queue(hart);
        match stop {
            Stop::Trap { cause, value } => return self.exception(hart, cause, value),
            Stop::System | Stop::Refused | Stop::Ended | Stop::Queued => {}
            Stop::Irrevocable => {
                self.memory.hot[hart].cycle += 1;
                return self.cancel(hart);
            }
            Stop::Lost(loss) => {
                self.memory.hot[hart].cycle += 1;
                self.restart(hart, &loss);
                self.take_interrupt(hart);
                return;
            }
            Stop::Wait { cycles } => {
                self.account(hart);
                self.accounting.critical_sections.waits(hart, self.transactions.active_id(hart), cycles);
                self.back_off(hart, cycles);
            }
        }
        self.memory.hot[hart].cycle += 1;
    }

    /// An exception uses up a cycle, so that a hart whose trap handler cannot run still reaches its limits.
    fn exception(&mut self, hart: usize, cause: u64, value: u64) {
        self.memory.hot[hart].cycle += 1;
        self.trap(hart, cause, value);
    }

    fn retire(&mut self, hart: usize, length_bytes: u64) {
        let hot = &mut self.memory.hot[hart];
        hot.pc = hot.pc.wrapping_add(length_bytes);
        hot.cycle += 1;
        hot.instructions += 1;
    }

    fn wait_for_interrupt(&mut self, hart: usize) {
        let cycles_per_tick = self.order.cycles_per_tick;
        let state = &self.harts[hart];
        if state.pending_interrupts(&self.memory.hot[hart], cycles_per_tick) & state.sie == 0 {
            self.account(hart);
            self.harts[hart].activity = Activity::Waiting;
            self.memory.hot[hart].limit = 0;
        }
    }

    /// The bits of the instruction at `hart.pc`, raw, and its length in bytes, page crossings included.
    pub(crate) fn fetch_instruction(&mut self, hart: usize) -> Result<(u32, u32), Fault> {
        let pc = self.memory.hot[hart].pc;
        let low = self.fetch_half(hart, pc)?;
        if low & 3 != 3 {
            return Ok((low, 2));
        }
        Ok((low | self.fetch_half(hart, pc.wrapping_add(2))? << 16, 4))
    }

    fn fetch_half(&mut self, hart: usize, address: u64) -> Result<u32, Fault> {
        let tag = address >> PAGE_SHIFT << 1 | u64::from(self.memory.core(hart).context.user);
        let mut slot = self.memory.core(hart).fetch_translations.slot(address);
        if self.memory.core(hart).fetch_translations.entry(slot).tag != tag {
            if self.watch.is_on {
                self.resolve_walk(Position::between_runs(hart), address, Access::Fetch);
            }
            let translated = self.memory.translate_fetch(hart, address);
            self.drop_stale_code();
            slot = translated?;
        }
        let page = self.memory.core(hart).fetch_translations.entry(slot).page();
        Ok(self.memory.ram.read(page + address % PAGE_BYTES, 2) as u32)
    }

    /// Executes one instruction at `hart.pc`, given its bits.
    pub(crate) fn run_alone<const TIMED: bool>(&mut self, hart: usize, instruction: u32, length_bytes: u32) {
        let offset = (self.memory.hot[hart].pc % PAGE_BYTES) as u32;
        let expanded = match length_bytes {
            2 => compressed::expand(instruction as u16),
            _ => Some(instruction),
        };
        // 0 is no instruction in any length, so it decodes to an illegal one.
        let mut page = CodePage::of_one(0, offset, expanded.unwrap_or(0), length_bytes);
        self.run_once::<TIMED>(hart, &mut page);
    }
}

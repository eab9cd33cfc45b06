//! The instructions of Xmetatm (`docs/xmetatm.md`, "Instructions"). Each returns whether it retired, or the reason why
//! not.

use crate::accounting::sizes::Clocks;
use crate::execute::door::{Door, Stop};
use crate::execute::position::Position;
use crate::hart::{CAUSE_LOAD_MISALIGNED, CAUSE_STORE_MISALIGNED, Privilege};
use crate::machine::Machine;
use crate::transaction::{Words, registers};
use concord_abi::htm::{Cause, CompareAndSwap, Control, FRAMES_USER_MAX};
use concord_htm::{Begun, Ended, Party, Popped};
use concord_isa::op::{Kind, Op};
use concord_mem::fault::Access;

/// The result of an instruction of the extension.
pub(crate) enum Done {
    /// The instruction is complete; the hart continues after it.
    Retired,
    /// The hart has moved: it is at the begin of its transaction.
    Restarted,
    Illegal,
    Stopped(Stop),
}

impl From<Stop> for Done {
    fn from(stop: Stop) -> Done {
        Done::Stopped(stop)
    }
}

impl Machine {
    /// Executes an instruction of the extension.
    pub(crate) fn execute_transactional(&mut self, hart: usize, op: Op) -> Done {
        if !self.may_use_transactions(hart) {
            return Done::Illegal;
        }
        match op.kind {
            Kind::Transaction => self.execute_control(hart, op),
            Kind::TransactionTest => self.execute_test(hart, op),
            _ => self.execute_compare_and_swap(hart, op),
        }
    }

    /// xbegin, xend, xrestart, xgettxid, xpush, xpop, xdrop.
    fn execute_control(&mut self, hart: usize, op: Op) -> Done {
        let Some(control) = Control::from_funct3(op.imm as u32 >> 12 & 7) else { return Done::Illegal };
        let is_supervisor = self.harts[hart].privilege == Privilege::Supervisor;
        if !is_supervisor
            && matches!(control, Control::Begin | Control::Push)
            && !(control == Control::Begin && self.transactions.is_active(hart))
            && self.transactions.frames(hart) >= FRAMES_USER_MAX
        {
            return Done::Illegal;
        }
        let now = self.memory.hot[hart].cycle;
        match control {
            Control::Begin => self.begin(hart, op.rd, now),
            Control::End => {
                if let Err(stop) = self.add_at_commit(hart) {
                    return stop.into();
                }
                let granules = self.transactions.subject(hart).map_or(0, |subject| subject.size_words);
                let ended = self.transactions.end(hart, now);
                if ended == Ended::NotActive {
                    return Done::Illegal;
                }
                self.check_commit(hart, &ended);
                self.committed(hart, &ended, granules);
                Done::Retired
            }
            Control::Restart => {
                if !self.transactions.is_active(hart) {
                    return Done::Illegal;
                }
                let operand = self.memory.hot[hart].x[usize::from(op.rs1)];
                let code = (operand >> concord_abi::htm::STATUS_CODE_SHIFT) as u8;
                self.retired(hart);
                // Lock functions ask for restarts, so the caller's address is more useful.
                let place = self.memory.hot[hart].x[1];
                self.restart_own(hart, Cause::of_restart(operand).status(code), place);
                Done::Restarted
            }
            Control::TransactionId => {
                self.memory.hot[hart].x[usize::from(op.rd)] = self.transactions.active_id(hart);
                Done::Retired
            }
            Control::Push => {
                let id = self.transactions.active_id(hart);
                match self.transactions.push(hart, is_supervisor) {
                    Ok(lines) => {
                        self.suspended(hart, id, &lines);
                        Done::Retired
                    }
                    Err(_) => Done::Illegal,
                }
            }
            Control::Pop => match self.transactions.pop(hart, is_supervisor, now) {
                Ok(Popped::Restarted(loss)) => {
                    self.retired(hart);
                    self.update_watched();
                    self.restart(hart, &loss);
                    self.take_interrupt(hart);
                    Done::Restarted
                }
                Ok(Popped::Resumed | Popped::Nothing) => {
                    self.update_watched();
                    self.resumed(hart);
                    Done::Retired
                }
                Err(_) => Done::Illegal,
            },
            Control::Drop => {
                if !is_supervisor {
                    return Done::Illegal;
                }
                match self.transactions.drop_frame(hart, now, &mut Words(&self.memory.ram)) {
                    Ok(loss) => {
                        if let Some(loss) = loss {
                            self.note_rollback(&loss);
                            self.release_losers(loss.id, now);
                        }
                        self.update_watched();
                        Done::Retired
                    }
                    Err(_) => Done::Illegal,
                }
            }
        }
    }

    fn begin(&mut self, hart: usize, destination: u8, now: u64) -> Done {
        let checkpoint = (!self.transactions.is_active(hart)).then(|| self.checkpoint(hart, destination));
        let mut words = Words(&self.memory.ram);
        let begun = self
            .transactions
            .begin(hart, now, &mut words, || checkpoint.expect("a transaction begins only where none is active"));
        match begun {
            Begun::Outermost => {
                let cycles = self.configuration.costs().begin_cycles;
                self.charge_transaction(hart, cycles);
                let id = self.transactions.active_id(hart);
                let begin = Clocks { cycle: now, ..self.clocks(hart) };
                self.accounting.sizes.begun(id, begin);
                self.update_watched();
            }
            Begun::Nested => {
                if let Some(subject) = self.transactions.subject(hart) {
                    let (id, depth) = (subject.id, subject.depth);
                    self.accounting.sizes.nested(id, depth);
                }
            }
            Begun::NoRoom => return Done::Illegal,
            Begun::TooDeep(loss) => {
                self.retired(hart);
                self.note_rollback(&loss);
                self.restart(hart, &loss);
                self.take_interrupt(hart);
                return Done::Restarted;
            }
        }
        self.memory.hot[hart].x[usize::from(destination)] = Cause::None.status(0);
        Done::Retired
    }

    /// A restart replaced an instruction that was executed: it counts, and the program counter has changed.
    fn retired(&mut self, hart: usize) {
        let hot = &mut self.memory.hot[hart];
        hot.cycle += 1;
        hot.instructions += 1;
    }

    /// xtest: the word joins the read set only if it has the expected value.
    fn execute_test(&mut self, hart: usize, op: Op) -> Done {
        match self.test(hart, op) {
            Ok(equal) => {
                self.memory.hot[hart].x[usize::from(op.rd)] = u64::from(equal);
                Done::Retired
            }
            Err(stop) => stop.into(),
        }
    }

    fn test(&mut self, hart: usize, op: Op) -> Result<bool, Stop> {
        let at = Position::between_runs(hart);
        let (address, size_bytes) = self.operand(hart, op, CAUSE_LOAD_MISALIGNED)?;
        self.note_atomic(at, address);
        let expected = self.memory.hot[hart].x[usize::from(op.rs2)] & mask(size_bytes);
        let physical = self.locate(at, address, Access::Load)?;
        self.admit(at, physical, Access::Load)?;
        self.add_before(at, physical, size_bytes)?;
        let party = self.party(hart, Access::Load);
        let request = self.request(at, party, physical, size_bytes, false);
        self.resolve(at, &request)?;
        let equal = self.seen_bytes(hart, physical, size_bytes) == expected;
        let (_, flags) = self.memory.translate(hart, address, Access::Load, at.cycles())?;
        self.enter(at, address, physical, flags, &request, equal)?;
        self.check_read(at, physical, size_bytes, equal)?;
        Ok(equal)
    }

    /// xcas: a compare-and-swap that the contention manager may refuse outside a transaction.
    fn execute_compare_and_swap(&mut self, hart: usize, op: Op) -> Done {
        let answer = match self.compare_and_swap(hart, op) {
            Ok(answer) => answer,
            Err(Stop::Refused) => CompareAndSwap::Refused,
            Err(stop) => return stop.into(),
        };
        self.memory.hot[hart].x[usize::from(op.rd)] = answer as u64;
        Done::Retired
    }

    fn compare_and_swap(&mut self, hart: usize, op: Op) -> Result<CompareAndSwap, Stop> {
        let at = Position::between_runs(hart);
        let (address, size_bytes) = self.operand(hart, op, CAUSE_STORE_MISALIGNED)?;
        self.note_atomic(at, address);
        let expected = self.memory.hot[hart].x[usize::from(op.rs2)] & mask(size_bytes);
        let new = self.memory.hot[hart].x[(op.imm as u32 >> 27) as usize];
        let physical = self.locate(at, address, Access::Store)?;
        let (_, flags) = self.memory.translate(hart, address, Access::Store, at.cycles())?;
        // The line comes for writing also where the words differ, so that the next try finds it here.
        self.memory.own(hart, physical, at.cycles())?;
        self.add_before(at, physical, size_bytes)?;
        let party = if self.transactions.is_active(hart) { Party::Transaction(hart) } else { Party::Arbitrated(hart) };
        let request = self.request(at, party, physical, size_bytes, false);
        self.resolve(at, &request)?;
        let differs = self.memory.ram.read(physical, size_bytes) != expected;
        if differs {
            self.enter(at, address, physical, flags, &request, true)?;
            self.check_read(at, physical, size_bytes, true)?;
            return Ok(CompareAndSwap::Differed);
        }
        let request = concord_htm::Request { write: true, ..request };
        self.resolve(at, &request)?;
        self.enter(at, address, physical, flags, &request, true)?;
        self.check_read(at, physical, size_bytes, true)?;
        self.write_ram(at, physical, size_bytes, new)?;
        Ok(CompareAndSwap::Swapped)
    }

    /// The address and the width of an xtest or xcas.
    fn operand(&self, hart: usize, op: Op, misaligned: u64) -> Result<(u64, u64), Stop> {
        let address = self.memory.hot[hart].x[usize::from(op.rs1)];
        let size_bytes = 1 << (op.imm as u32 >> 12 & 3);
        if !address.is_multiple_of(size_bytes) {
            return Err(Stop::Trap { cause: misaligned, value: address });
        }
        Ok((address, size_bytes))
    }

    /// An op that a transaction may not execute: an SBI call that is more than a query, or a write of a register
    /// outside the checkpoint.
    pub(crate) fn is_irrevocable(&self, hart: usize, op: Op) -> bool {
        match op.kind {
            Kind::EnvironmentCall => self.harts[hart].privilege == Privilege::Supervisor && !self.is_query(hart),
            Kind::Csr => {
                let instruction = op.imm as u32;
                let (csr, source) = (instruction >> 20, instruction >> 15 & 31);
                let writes = instruction >> 12 & 3 == 1 || source != 0;
                // An illegal instruction raises its exception first.
                writes && csr >> 10 != 3 && registers::is_irrevocable(csr) && self.read_csr(hart, csr).is_ok()
            }
            _ => false,
        }
    }
}

fn mask(size_bytes: u64) -> u64 {
    u64::MAX >> (64 - 8 * size_bytes)
}

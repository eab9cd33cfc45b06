//! Xmetatm on the machine: connects the harts and the memory system to the engine of `sim/htm` (`docs/xmetatm.md`).
//!
//! A transaction begins in `instructions.rs`. Each access that the line table does not answer passes through
//! `access.rs`. This file handles the losers, and the effects of transactions on the rest of the machine.

mod access;
mod checking;
mod deferred;
mod instructions;
mod registers;

use crate::accounting::critical_sections::Rollback;
use crate::accounting::sizes::Clocks;
use crate::accounting::trace::Doing;
use crate::hart::{Activity, Hart, Privilege};
use crate::machine::Machine;
use crate::planted::PlantedFault;
pub(crate) use checking::Watch;
use concord_abi::htm::{Cause, XTRAP_PREVIOUS};
use concord_htm::{
    Ended, Engine, Loss, Masks, Memory, Party, Popped, Request, WORD_BYTES, WORD_SHIFT, Word, word_mask,
};
use concord_isa::op::SINK;
use concord_mem::cache::line_of;
use concord_mem::hot::HotState;
use concord_mem::line_table::Rights;
use concord_mem::ram::{LINE_BYTES, LINE_SHIFT, Ram};
pub(crate) use instructions::Done;
use serde::{Deserialize, Serialize};

pub(crate) type Transactions = Engine<Checkpoint>;

/// The state besides memory that xbegin saves and a restart restores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    x: [u64; 32],
    f: [u64; 32],
    /// The address after the xbegin.
    pc: u64,
    privilege: Privilege,
    sstatus: u64,
    sie: u64,
    sscratch: u64,
    sepc: u64,
    scause: u64,
    stval: u64,
    fcsr: u64,
    xtrap: u64,
    /// The register that receives the status word.
    destination: u8,
}

impl Checkpoint {
    fn put_back(&self, hart: &mut Hart, hot: &mut HotState) {
        hot.x[..32].copy_from_slice(&self.x);
        hot.f[..32].copy_from_slice(&self.f);
        hot.pc = self.pc;
        hart.privilege = self.privilege;
        hot.sstatus = self.sstatus;
        hart.sie = self.sie;
        hart.sscratch = self.sscratch;
        hart.sepc = self.sepc;
        hart.scause = self.scause;
        hart.stval = self.stval;
        hot.fcsr = self.fcsr;
        hart.xtrap = self.xtrap;
    }

    /// True if a hart can return to this checkpoint. For checkpoints that were read from a file.
    fn is_possible(&self) -> bool {
        let (mut hart, mut hot) = (Hart::default(), HotState::default());
        self.put_back(&mut hart, &mut hot);
        hart.is_possible(&hot) && self.destination != 0 && self.destination <= SINK
    }
}

/// The accesses outside a transaction that the line table of a hart may answer for a line: those that no other
/// transaction's words forbid.
fn rights_outside(masks: &Masks) -> Rights {
    Rights { read: masks.line_is_readable, write: masks.line_is_writable, readable_words: 0, writable_words: 0 }
}

/// RAM, as the undo log accesses it.
pub(crate) struct Words<'a>(pub &'a Ram);

impl Memory for Words<'_> {
    #[inline]
    fn load(&self, word: Word) -> u64 {
        self.0.read(word << WORD_SHIFT, WORD_BYTES)
    }

    #[inline]
    fn store(&mut self, word: Word, value: u64) {
        self.0.write(word << WORD_SHIFT, WORD_BYTES, value);
    }
}

impl Machine {
    fn checkpoint(&self, hart: usize, destination: u8) -> Checkpoint {
        let (state, hot) = (&self.harts[hart], &self.memory.hot[hart]);
        Checkpoint {
            x: hot.x[..32].try_into().expect("a hart has 32 registers"),
            f: hot.f[..32].try_into().expect("a hart has 32 registers"),
            pc: hot.pc.wrapping_add(4),
            privilege: state.privilege,
            sstatus: hot.sstatus,
            sie: state.sie,
            sscratch: state.sscratch,
            sepc: state.sepc,
            scause: state.scause,
            stval: state.stval,
            fcsr: hot.fcsr,
            xtrap: state.xtrap,
            destination,
        }
    }

    /// Updates the state that depends on whether a transaction is live. Callers must call it whenever a transaction has
    /// begun, ended or been restored.
    pub(crate) fn update_watched(&mut self) {
        let lives = self.transactions.is_live();
        self.watch.is_on = lives || self.watch.checker.is_some();
        self.memory.set_noting_evictions(lives);
    }

    /// A hart's transaction ended or was suspended: narrows its line table to the present rights for the lines of its
    /// sets.
    fn release_lines(&mut self, hart: usize, lines: &[concord_htm::Line]) {
        for line in lines {
            let masks = self.transactions.masks(hart, *line);
            self.memory.narrow(hart, line_of(line << LINE_SHIFT), rights_outside(&masks));
        }
    }

    /// Cycles that the timed gear charges and the functional one does not.
    fn charge_transaction(&mut self, hart: usize, cycles: u64) {
        if self.memory.is_timed() {
            self.memory.hot[hart].cycle += cycles;
        }
    }

    /// Restarts the transactions that lost to an access of `hart`. Returns the loss of the hart's own transaction; the
    /// caller restarts that one after it has left the instruction.
    fn settle(&mut self, hart: Option<usize>, losses: &mut Vec<Loss>) -> Option<Box<Loss>> {
        let mut own_loss = None;
        for loss in losses.drain(..) {
            self.note_rollback(&loss);
            if !loss.active {
                continue;
            }
            if hart == Some(loss.hart) {
                own_loss = Some(Box::new(loss));
            } else {
                let loser = loss.hart;
                self.restart(loser, &loss);
                self.update_next_turn(loser, self.memory.hot[loser].cycle);
            }
        }
        own_loss
    }

    /// A transaction's old words are back in memory: drops everything that was derived from the new ones.
    fn note_rollback(&mut self, loss: &Loss) {
        if Cause::of_status(loss.status) == Cause::None {
            self.accounting.sizes.dropped(loss.id);
        }
        self.trace_attempt(loss.hart, loss.id, loss.attempt_cycle, Some(loss.status));
        self.accounting.critical_sections.rolled_back(&Rollback {
            hart: loss.hart,
            id: loss.id,
            cause: Cause::of_status(loss.status),
            active: loss.active,
            attempt_cycle: loss.attempt_cycle,
        });
        for word in &loss.restored {
            self.memory.note_change(word << WORD_SHIFT);
        }
        self.drop_stale_code();
        self.release_lines(loss.hart, &loss.lines);
        self.check_rollback(loss);
        if loss.active {
            self.drop_tainted_translations(loss.hart);
        }
    }

    /// Drops translations that the walker made from page-table entries of the hart's own transaction, because no other
    /// party may see them.
    fn drop_tainted_translations(&mut self, hart: usize) {
        if std::mem::take(&mut self.harts[hart].translations_tainted) && !self.has_fault(PlantedFault::KeptTranslation)
        {
            self.memory.flush_translations(hart, None);
        }
    }

    /// Puts a hart back after the xbegin of its transaction, which lost and whose memory is already rolled back.
    pub(crate) fn restart(&mut self, hart: usize, loss: &Loss) {
        self.leave_queue_early(hart);
        let costs = self.configuration.costs();
        let restored_units = self.transactions.policy().units(loss.restored.len() as u64);
        let cycles = restored_units * costs.rollback_word_cycles + loss.overflowed_lines * costs.overflow_cycles;
        self.charge_transaction(hart, cycles);
        self.account(hart);
        let lost_cycles = self.memory.hot[hart].cycle.saturating_sub(loss.attempt_cycle);
        let cause = Cause::of_status(loss.status);
        self.accounting.critical_sections.restarted(hart, loss.id, cause, lost_cycles, loss.backoff_cycles);
        let Some(checkpoint) = self.transactions.checkpoint(hart) else { return };
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        checkpoint.put_back(state, hot);
        hot.x[usize::from(checkpoint.destination)] = loss.status;
        state.activity = Activity::Running;
        self.memory.core(hart).reservation = None;
        self.update_context(hart);
        let mut begin = self.clocks(hart);
        begin.cycle = begin.cycle.saturating_add(loss.backoff_cycles);
        self.transactions.begin_attempt(hart, begin.cycle);
        self.accounting.sizes.begun(loss.id, begin);
        self.back_off(hart, loss.backoff_cycles);
    }

    /// Stalls the hart for this many cycles, unless an interrupt comes.
    pub(crate) fn back_off(&mut self, hart: usize, cycles: u64) {
        if cycles == 0 {
            return;
        }
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        state.activity = Activity::BackingOff { until: hot.cycle + cycles };
        hot.limit = 0;
    }

    /// The hart restarts its own transaction, between two instructions. `place` is the address of the code that caused
    /// it.
    pub(crate) fn restart_own(&mut self, hart: usize, status: u64, place: u64) {
        let now = self.memory.hot[hart].cycle;
        let running = self.running(hart, self.harts[hart].privilege == Privilege::User);
        let mut words = Words(&self.memory.ram);
        if let Some(loss) = self.transactions.restart(hart, status, now, &mut words) {
            if Cause::of_status(status) == Cause::NeedExclusive {
                let origin = self.accounting.origins.of(running);
                self.accounting.critical_sections.needs_exclusive(hart, loss.id, place, origin);
            }
            self.note_rollback(&loss);
            self.restart(hart, &loss);
            self.take_interrupt(hart);
        }
    }

    /// The hart was about to execute an operation that cannot be rolled back.
    pub(crate) fn cancel(&mut self, hart: usize) {
        self.restart_own(hart, Cause::NeedExclusive.status(0), self.memory.hot[hart].pc);
    }

    /// A trap suspends the hart's active transaction.
    pub(crate) fn suspend_for_trap(&mut self, hart: usize) {
        if !self.transactions.is_active(hart) {
            self.harts[hart].xtrap = 0;
            return;
        }
        let now = self.memory.hot[hart].cycle;
        let id = self.transactions.active_id(hart);
        let (lines, loss) = self.transactions.trap(hart, now, &mut Words(&self.memory.ram));
        self.harts[hart].xtrap = XTRAP_PREVIOUS;
        self.suspended(hart, id, &lines);
        if let Some(loss) = loss {
            self.note_rollback(&loss);
        }
    }

    /// Handles the suspension of a transaction by a trap or by xpush. An id of 0 means that no transaction was active.
    fn suspended(&mut self, hart: usize, id: u64, lines: &[concord_htm::Line]) {
        self.accounting.critical_sections.suspended(hart, id, self.memory.hot[hart].cycle);
        self.accounting.sizes.suspended(id, self.clocks(hart));
        self.release_lines(hart, lines);
        self.drop_tainted_translations(hart);
        self.update_watched();
    }

    /// `sret` with `xtrap.PT`: resumes the transaction that the trap suspended. Returns whether the return itself must
    /// still happen; `None` if the instruction is illegal.
    pub(crate) fn return_to_transaction(&mut self, hart: usize) -> Option<bool> {
        let now = self.memory.hot[hart].cycle;
        let popped = self.transactions.pop(hart, true, now).ok()?;
        self.update_watched();
        Some(match popped {
            Popped::Restarted(loss) => {
                self.note_trap_return(hart);
                self.restart(hart, &loss);
                self.take_interrupt(hart);
                false
            }
            Popped::Resumed | Popped::Nothing => {
                self.resumed(hart);
                self.harts[hart].xtrap = 0;
                true
            }
        })
    }

    /// Handles the resumption of a transaction.
    fn resumed(&mut self, hart: usize) {
        let (id, now) = (self.transactions.active_id(hart), self.memory.hot[hart].cycle);
        self.accounting.critical_sections.resumed(hart, id, now);
        self.accounting.sizes.resumed(id, self.clocks(hart));
    }

    /// A hart starts: resets its part of the extension.
    pub(crate) fn reset_transactions(&mut self, hart: usize, now: u64) {
        for loss in self.transactions.reset_hart(hart, now, &mut Words(&self.memory.ram)) {
            self.note_rollback(&loss);
            self.release_losers(loss.id, now);
        }
        self.update_watched();
    }

    /// A transaction committed: the line table returns to normal, and the costs are charged.
    fn committed(&mut self, hart: usize, ended: &Ended, granules: u64) {
        if let Ended::Committed { lines, overflowed_lines, attempt_cycle, id } = ended {
            self.accounting.sizes.committed(*id, self.clocks(hart), granules);
            self.trace_attempt(hart, *id, *attempt_cycle, None);
            self.accounting.critical_sections.committed(hart, *id, self.memory.hot[hart].cycle);
            let costs = self.configuration.costs();
            self.release_lines(hart, lines);
            self.harts[hart].translations_tainted = false;
            self.charge_transaction(hart, costs.commit_cycles + overflowed_lines * costs.overflow_cycles);
            self.update_watched();
            self.release_losers(*id, self.memory.hot[hart].cycle);
        }
    }

    /// A transaction is over at `now`: those that back off for it go on.
    fn release_losers(&mut self, winner_id: u64, now: u64) {
        for hart in self.transactions.release_losers(winner_id) {
            let Activity::BackingOff { until } = self.harts[hart].activity else { continue };
            // The hart may be ahead of the winner's.
            let end = now.max(self.memory.hot[hart].cycle).min(until);
            self.harts[hart].activity = Activity::BackingOff { until: end };
            let id = self.transactions.active_id(hart);
            self.transactions.shorten_backoff(hart, until - end);
            self.accounting.critical_sections.stall_was_cut(hart, id, until - end);
            self.accounting.sizes.begun(id, Clocks { cycle: end, ..self.clocks(hart) });
            self.update_next_turn(hart, now);
        }
    }

    /// Handles lines that left first-level caches since the last call. Called between turns.
    #[inline]
    pub(crate) fn note_evictions(&mut self) {
        if self.memory.has_evictions() {
            self.settle_evictions(None);
        }
    }

    /// The same during an access of a hart. Returns the loss of the hart's own transaction, as [`Machine::settle`]
    /// does.
    #[inline]
    fn note_evictions_of(&mut self, hart: usize) -> Option<Box<Loss>> {
        if self.memory.has_evictions() { self.settle_evictions(Some(hart)) } else { None }
    }

    fn settle_evictions(&mut self, hart: Option<usize>) -> Option<Box<Loss>> {
        let costs = self.configuration.costs();
        let mut losses = Vec::new();
        for (core, line) in self.memory.take_evictions() {
            let now = self.memory.hot[core].cycle;
            let line = u64::from(concord_mem::cache::physical_line(line));
            match self.transactions.evicted(core, line, now, &mut Words(&self.memory.ram)) {
                concord_htm::Evicted::Nothing => {}
                concord_htm::Evicted::Overflowed => self.charge_transaction(core, costs.overflow_cycles),
                concord_htm::Evicted::Lost(lost) => losses.extend(lost),
            }
        }
        self.settle(hart, &mut losses)
    }

    /// Runs an access of devices to memory: they see committed memory, and their writes win.
    pub(crate) fn with_committed_memory<R>(&mut self, act: impl FnOnce(&mut Machine) -> R) -> R {
        if !self.transactions.has_written() {
            return act(self);
        }
        self.transactions.take_out(&mut Words(&self.memory.ram));
        let result = act(self);
        self.transactions.put_in(&mut Words(&self.memory.ram));
        result
    }

    /// A device wrote to a range of RAM: transactions with words of the range in their sets lose.
    pub(crate) fn resolve_device_write(&mut self, address: u64, length: u64, now: u64) {
        if !self.transactions.is_live() || length == 0 || !self.memory.ram.contains(address, length) {
            return;
        }
        let mut losses = Vec::new();
        let end = address + length;
        let mut at = address;
        while at < end {
            let part = (LINE_BYTES - at % LINE_BYTES).min(end - at);
            let words = word_mask(at, part);
            let request = Request { party: Party::Device, line: at >> LINE_SHIFT, words, write: true, pc: 0, now };
            self.transactions.resolve(&request, &mut Words(&self.memory.ram), &mut losses);
            at += part;
        }
        self.check_device_write(address, length);
        self.settle(None, &mut losses);
    }

    /// Adds the attempt that ends now to the timeline, with the status word of its restart or as committed.
    fn trace_attempt(&mut self, hart: usize, id: u64, begin_cycle: u64, status: Option<u64>) {
        if self.accounting.trace.is_enabled() {
            let cause = status.map(Cause::of_status);
            let call_site = self.accounting.critical_sections.call_site(id);
            self.accounting.trace.push(
                hart,
                Doing::Attempt { cause, call_site },
                begin_cycle,
                self.memory.hot[hart].cycle,
            );
        }
    }
}

impl Machine {
    /// Takes over the transactions of a snapshot, after the harts and the memory system were restored.
    pub(crate) fn restore_transactions(&mut self, mut saved: Transactions) -> Result<(), String> {
        let ram = &self.memory.ram;
        saved
            .restore(self.harts.len(), &self.configuration.policy(), |word| {
                ram.contains(word << WORD_SHIFT, WORD_BYTES)
            })
            .map_err(|error| error.to_string())?;
        if !saved.checkpoints().all(Checkpoint::is_possible) {
            return Err("a transaction would go back to impossible registers".to_owned());
        }
        for (hart, state) in self.harts.iter().enumerate() {
            if matches!(state.activity, Activity::BackingOff { .. }) && !saved.is_active(hart) {
                return Err(format!("hart {hart} backs off without a transaction"));
            }
        }
        self.transactions = saved;
        if self.configuration.check_isolation {
            self.watch_isolation();
        }
        self.update_watched();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_from_a_file_is_one_that_a_hart_can_be_put_back_to() {
        let good = Checkpoint {
            x: [0; 32],
            f: [0; 32],
            pc: 0x8020_0004,
            privilege: Privilege::User,
            sstatus: 0,
            sie: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            fcsr: 0,
            xtrap: XTRAP_PREVIOUS,
            destination: SINK,
        };
        assert!(good.is_possible());
        let damaged = [
            Checkpoint { pc: 0x8020_0005, ..good.clone() },
            Checkpoint { sstatus: u64::MAX, ..good.clone() },
            Checkpoint { sie: 1 << 63, ..good.clone() },
            Checkpoint { sepc: 1, ..good.clone() },
            Checkpoint { fcsr: 0x100, ..good.clone() },
            Checkpoint { xtrap: 2, ..good.clone() },
            Checkpoint { destination: 0, ..good.clone() },
            Checkpoint { destination: SINK + 1, ..good.clone() },
            Checkpoint { x: [1; 32], ..good },
        ];
        for (index, checkpoint) in damaged.iter().enumerate() {
            assert!(!checkpoint.is_possible(), "{index}");
        }
    }
}

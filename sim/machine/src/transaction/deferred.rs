//! Deferred additions (`docs/xmetatm.md`, "Deferred additions"): the machine's part of `sim/htm/src/deferred.rs`.

use crate::execute::door::Stop;
use crate::execute::position::Position;
use crate::machine::Machine;
use crate::planted::PlantedFault;
use crate::transaction::Words;
use concord_htm::{DeferredAdd, Party, Request, word_mask};
use concord_mem::fault::Access;
use concord_mem::ram::LINE_SHIFT;

impl Machine {
    /// Defers an addition of the hart's transaction whose result nobody reads; false if it must execute as any AMO.
    #[inline]
    pub(crate) fn defer_add(&mut self, at: Position, address: u64, size_bytes: u64, amount: u64) -> Result<bool, Stop> {
        if self.transactions.policy().deferred_adds == 0 || !self.transactions.is_active(at.hart) {
            return Ok(false);
        }
        let address = self.locate(at, address, Access::Store)?;
        let add = DeferredAdd { address, size_bytes, amount, pc: self.pc_in_run(at) };
        let is_deferred = self.transactions.defer(at.hart, add);
        if is_deferred && let Some(checker) = &mut self.watch.checker {
            checker.defer(self.transactions.active_id(at.hart), &add);
        }
        Ok(is_deferred)
    }

    /// Makes ordinary accesses of the deferred additions to granules that the hart's transaction is about to access. A [`Stop`]
    /// means that the access must not happen now.
    pub(super) fn add_before(&mut self, at: Position, physical: u64, size_bytes: u64) -> Result<(), Stop> {
        let (line, words) = (physical >> LINE_SHIFT, word_mask(physical, size_bytes));
        while let Some(add) = self.transactions.deferred_at(at.hart, line, words) {
            self.resolve(at, &self.request_to_add(at, Party::Transaction(at.hart), &add))?;
            self.charge_add(at.hart, &add);
            if let Some(own_loss) = self.note_evictions_of(at.hart) {
                return Err(Stop::Lost(own_loss));
            }
            self.transactions.join(at.hart, line, add.words(), true, add.pc, &Words(&self.memory.ram));
            self.transactions.forget_deferred(at.hart, &add);
            self.add(at, &add)?;
        }
        Ok(())
    }

    /// Makes the deferred additions of the hart's transaction if its next end commits. They win as non-transactional stores do, so
    /// the commit cannot fail.
    pub(super) fn add_at_commit(&mut self, hart: usize) -> Result<(), Stop> {
        let at = Position::between_runs(hart);
        let adds = self.transactions.take_deferred_at_commit(hart);
        // All losers' words are back in memory before any of it changes.
        for add in &adds {
            self.resolve(at, &self.request_to_add(at, Party::Nontransactional(hart), add))?;
        }
        for add in &adds {
            self.charge_add(hart, add);
            self.add(at, add)?;
            if self.has_fault(PlantedFault::AddedTwice) {
                self.add(at, add)?;
            }
        }
        Ok(())
    }

    fn request_to_add(&self, at: Position, party: Party, add: &DeferredAdd) -> Request {
        Request { party, line: add.line(), words: add.words(), write: true, pc: add.pc, now: self.now(at) }
    }

    /// Charges the store of an addition. Its virtual address may mean something else by now, so the line table has no part in it.
    fn charge_add(&mut self, hart: usize, add: &DeferredAdd) {
        if self.memory.is_timed() && self.transactions.masks(hart, add.line()).others_overflowed {
            let cycles = self.configuration.costs().overflow_check_cycles;
            self.memory.charge(hart, cycles);
        }
        self.memory.touch_store(hart, add.address);
        self.drop_stale_code();
    }

    fn add(&mut self, at: Position, add: &DeferredAdd) -> Result<(), Stop> {
        let old = self.memory.ram.read(add.address, add.size_bytes);
        let new = add.apply(old);
        self.write_ram(at, add.address, add.size_bytes, new)?;
        self.check_add(at.hart, add, old, new)
    }
}

//! The isolation checker's input (`--check-isolation`): every access of the run, by whole words, and the end of each
//! transaction. It changes no state that the guest or the statistics could see.

use crate::events::End;
use crate::execute::door::Stop;
use crate::execute::position::Position;
use crate::machine::Machine;
use crate::transaction::Words;
use concord_abi::exit::Exit;
use concord_htm::check::{Checker, Observer, Violation};
use concord_htm::{DeferredAdd, Ended, Loss, Memory, WORD_SHIFT};
use concord_mem::translation::WalkerAccess;

/// The watch over accesses beyond the line table.
#[derive(Default)]
pub(crate) struct Watch {
    /// A transaction is live, or the isolation checker is on. Accesses and walks that miss the line table then take the
    /// longer path.
    pub is_on: bool,
    pub checker: Option<Checker>,
    /// The checker's first violation.
    pub violation: Option<String>,
}

/// The words that an access touches.
pub(super) fn words_at(physical: u64, size_bytes: u64) -> std::ops::RangeInclusive<u64> {
    physical >> WORD_SHIFT..=(physical + size_bytes - 1) >> WORD_SHIFT
}

impl Machine {
    fn observer(&self, hart: usize) -> Observer {
        match self.transactions.active_id(hart) {
            0 => Observer::Hart(hart),
            id => Observer::Transaction { id, hart },
        }
    }

    /// Reads RAM for a hart.
    #[inline]
    pub(crate) fn read_ram(&mut self, at: Position, physical: u64, size_bytes: u64) -> Result<u64, Stop> {
        if self.watch.is_on {
            self.check_read(at, physical, size_bytes, true)?;
            return Ok(self.seen_bytes(at.hart, physical, size_bytes));
        }
        Ok(self.memory.ram.read(physical, size_bytes))
    }

    /// Writes RAM for a hart.
    #[inline]
    pub(crate) fn write_ram(&mut self, at: Position, physical: u64, size_bytes: u64, value: u64) -> Result<(), Stop> {
        if self.watch.is_on && self.watch.checker.is_some() {
            return self.write_ram_checked(at, physical, size_bytes, value);
        }
        self.memory.ram.write(physical, size_bytes, value);
        Ok(())
    }

    fn write_ram_checked(&mut self, at: Position, physical: u64, size_bytes: u64, value: u64) -> Result<(), Stop> {
        let (observer, pc) = (self.observer(at.hart), self.pc_in_run(at));
        let old: Vec<u64> = words_at(physical, size_bytes).map(|word| Words(&self.memory.ram).load(word)).collect();
        self.memory.ram.write(physical, size_bytes, value);
        let Some(checker) = &mut self.watch.checker else { return Ok(()) };
        let mut result = Ok(());
        for (word, old) in words_at(physical, size_bytes).zip(old) {
            let new = Words(&self.memory.ram).load(word);
            result = result.and_then(|()| checker.write(observer, word, old, new, pc));
        }
        self.report(at.hart, result)
    }

    /// A hart is about to use a value from memory. `depends` is false if an xtest only found that the value differs.
    pub(crate) fn check_read(
        &mut self,
        at: Position,
        physical: u64,
        size_bytes: u64,
        depends: bool,
    ) -> Result<(), Stop> {
        if self.watch.checker.is_none() {
            return Ok(());
        }
        let (observer, pc) = (self.observer(at.hart), self.pc_in_run(at));
        let words: Vec<_> = words_at(physical, size_bytes).map(|word| (word, self.seen_word(at.hart, word))).collect();
        let Some(checker) = &mut self.watch.checker else { return Ok(()) };
        let mut result = Ok(());
        for (word, value) in words {
            result = result.and_then(|()| match depends {
                true => checker.read(observer, word, value, pc),
                false => checker.test(observer, word, value, pc),
            });
        }
        self.report(at.hart, result)
    }

    /// A hart's walker is about to make these accesses.
    pub(super) fn check_walk(&mut self, at: Position, steps: &[WalkerAccess]) {
        if self.watch.checker.is_none() || steps.is_empty() {
            return;
        }
        let observer = Observer::Walker { hart: at.hart, active: self.transactions.active_id(at.hart) };
        let pc = self.pc_in_run(at);
        let Some(checker) = &mut self.watch.checker else { return };
        let mut result = Ok(());
        for step in steps {
            for (index, word) in words_at(step.address, 8).enumerate() {
                let value = Words(&self.memory.ram).load(word);
                // The bits that a walker sets lie in an entry's first word.
                result = result.and_then(|()| match step.store && index == 0 {
                    true => checker.write(observer, word, value, value | step.bits, pc),
                    false => checker.read(observer, word, value, pc),
                });
            }
        }
        // A walk cannot be interrupted; the run ends after its instruction.
        let _ = self.report(at.hart, result);
    }

    /// A device wrote to a range of RAM, and transactions with words of it have lost.
    pub(super) fn check_device_write(&mut self, address: u64, length: u64) {
        let Some(checker) = &mut self.watch.checker else { return };
        let mut result = Ok(());
        for word in words_at(address, length) {
            let value = Words(&self.memory.ram).load(word);
            result = result.and_then(|()| checker.write(Observer::Device, word, value, value, 0));
        }
        let _ = self.report(0, result);
    }

    /// The hart's transaction made a deferred addition.
    pub(super) fn check_add(&mut self, hart: usize, add: &DeferredAdd, old: u64, new: u64) -> Result<(), Stop> {
        let id = self.transactions.active_id(hart);
        let Some(checker) = &mut self.watch.checker else { return Ok(()) };
        let result = checker.add(id, add, old, new);
        self.report(hart, result)
    }

    pub(super) fn check_commit(&mut self, hart: usize, ended: &Ended) {
        if let (Some(checker), Ended::Committed { id, .. }) = (&mut self.watch.checker, ended) {
            let result = checker.commit(*id, &Words(&self.memory.ram));
            let _ = self.report(hart, result);
        }
    }

    pub(super) fn check_rollback(&mut self, loss: &Loss) {
        if let Some(checker) = &mut self.watch.checker {
            let result = checker.rollback(loss.id, &Words(&self.memory.ram));
            let _ = self.report(loss.hart, result);
        }
    }

    /// Checks every access from here on, as if the configuration had asked for it from the beginning.
    pub fn check_isolation(&mut self) {
        self.configuration.check_isolation = true;
        if self.watch.checker.is_none() {
            self.watch_isolation();
        }
    }

    /// Switches the checker on, for a machine that may have live transactions.
    pub(crate) fn watch_isolation(&mut self) {
        let mut checker = Checker::new(self.transactions.policy().outside_reads);
        let (written, deferred) = (self.transactions.written_words(), self.transactions.deferred_adds());
        checker.adopt(written, deferred, &Words(&self.memory.ram));
        self.watch.checker = Some(checker);
        self.update_watched();
    }

    /// The first violation ends the run.
    fn report(&mut self, hart: usize, result: Result<(), Violation>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            Err(violation) => {
                self.watch.violation.get_or_insert_with(|| violation.to_string());
                self.end(End { exit: Exit::IsolationViolated, code: 0, hart: Some(hart) });
                Err(Stop::Ended)
            }
        }
    }
}

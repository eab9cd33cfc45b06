//! Engines from a snapshot: checks of their invariants, and derived state that is built again.

use crate::context::Frame;
use crate::engine::Engine;
use crate::policy::Policy;
use crate::statistics::{COUNT_MAX, Counters};
use crate::transaction::{Slot, Transaction};
use crate::{Line, WORD_SHIFT, Word, index_in_line, line_of};
use concord_abi::htm::{DEPTH_MAX, FRAMES_MAX};
use std::collections::{BTreeMap, BTreeSet};

/// The reason why a saved engine cannot belong to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its transactions are impossible: {0}")]
pub struct StateError(&'static str);

fn ensure(holds: bool, what: &'static str) -> Result<(), StateError> {
    if holds { Ok(()) } else { Err(StateError(what)) }
}

impl<C> Engine<C> {
    /// The checkpoint of each transaction.
    pub fn checkpoints(&self) -> impl Iterator<Item = &C> {
        self.transactions.iter().flatten().map(|transaction| &transaction.checkpoint)
    }

    /// Takes over the state from a file: checks it, builds the directory again, and completes the policy, which must
    /// otherwise be `policy`. `is_word` tells which words exist.
    ///
    /// # Errors
    /// [`StateError`] names the broken invariant; the engine must not be used any further.
    pub fn restore(&mut self, harts: usize, policy: &Policy, is_word: impl Fn(Word) -> bool) -> Result<(), StateError> {
        self.policy = self.policy.completed(policy);
        ensure(self.policy == *policy, "they follow other policies than the board's")?;
        ensure(
            self.harts.len() == harts && self.counters.len() == harts,
            "the number of harts differs from the board's",
        )?;
        ensure(self.random != 0, "the generator of random numbers is at its fixed point")?;
        let live = self.transactions.iter().flatten().count();
        ensure(self.live as usize == live, "the count of live transactions is wrong")?;
        ensure(self.next_id < COUNT_MAX, "the next id is too large")?;
        ensure(self.counters.iter().all(Counters::is_possible), "a counter is higher than a run can count")?;
        self.check_owners()?;
        let is_word = |word: Word| word <= Word::MAX >> WORD_SHIFT && is_word(word);
        let mut writers = BTreeMap::new();
        let transactions = std::mem::take(&mut self.transactions);
        let live = || transactions.iter().enumerate().filter_map(|(slot, live)| Some((slot as Slot, live.as_ref()?)));
        for (slot, transaction) in live() {
            self.check(transaction, harts)?;
            for undo in &transaction.undo {
                ensure(is_word(undo.word), "a word of a write set does not exist")?;
                ensure(writers.insert(undo.word, slot).is_none(), "a word is in a write set twice")?;
            }
        }
        for (slot, transaction) in live() {
            self.check_deferred(transaction, &is_word)?;
            for read in &transaction.reads {
                ensure(is_word(read.word), "a word of a read set does not exist")?;
                let writer = writers.get(&read.word);
                ensure(
                    writer.is_none_or(|writer| *writer == slot),
                    "a word is in a read set and in another's write set",
                )?;
            }
            self.index(slot, transaction)?;
        }
        self.transactions = transactions;
        Ok(())
    }

    /// The writes of live transactions: id, word and the word's committed value. A checker that is switched on for a
    /// resumed run adopts them.
    pub fn written_words(&self) -> impl Iterator<Item = (u64, Word, u64)> {
        let live = self.transactions.iter().flatten();
        live.flat_map(|transaction| transaction.undo.iter().map(|undo| (transaction.id, undo.word, undo.old)))
    }

    /// Each transaction is the active one of exactly one hart, or belongs to exactly one frame.
    fn check_owners(&self) -> Result<(), StateError> {
        let mut owned = BTreeSet::new();
        let mut own = |slot: Slot, suspended: bool| {
            let transaction = self.transactions.get(slot as usize).and_then(Option::as_ref);
            let transaction =
                transaction.ok_or(StateError("a hart or a frame names a transaction that does not exist"))?;
            ensure(transaction.suspended == suspended, "a transaction's suspension mark is wrong")?;
            ensure(owned.insert(slot), "a transaction has two owners")
        };
        let mut contexts = BTreeSet::new();
        for (hart, state) in self.harts.iter().enumerate() {
            if let Some(slot) = state.active {
                own(slot, false)?;
                ensure(self.transaction(slot).hart == hart, "an active transaction is on another hart")?;
                ensure(self.transaction(slot).doom.is_none(), "an active transaction is doomed")?;
                ensure(state.frames.len() < FRAMES_MAX, "an active transaction has no room to be suspended")?;
            }
            ensure(state.context == 0 || contexts.insert(state.context), "a context is current on two harts")?;
            ensure(state.context != 0 || state.own_frames.is_empty(), "a hart's own context is current and parked")?;
        }
        ensure(self.parked.keys().all(|id| *id != 0 && !contexts.contains(id)), "a context is current and parked")?;
        let current = self.harts.iter().flat_map(|state| [&state.frames, &state.own_frames]);
        for frames in current.chain(self.parked.values()) {
            ensure(frames.len() <= FRAMES_MAX, "a context has too many frames")?;
            for slot in frames.iter().filter_map(|frame: &Frame| frame.transaction) {
                own(slot, true)?;
            }
        }
        ensure(owned.len() == self.live as usize, "a transaction has no owner")
    }

    fn check(&self, transaction: &Transaction<C>, harts: usize) -> Result<(), StateError> {
        ensure(transaction.hart < harts, "a transaction names a hart that does not exist")?;
        ensure((1..=DEPTH_MAX).contains(&transaction.depth), "a transaction has an impossible depth")?;
        ensure(transaction.id != 0 && transaction.id < self.next_id, "a transaction has an impossible id")?;
        let is_empty = transaction.reads.is_empty() && transaction.undo.is_empty() && transaction.adds.is_empty();
        ensure(transaction.doom.is_none() || is_empty, "a doomed transaction has sets")
    }

    /// A transaction's deferred additions are as [`Engine::defer`] leaves them: few, aligned, in RAM, and each alone in its granules.
    fn check_deferred(&self, transaction: &Transaction<C>, is_word: &impl Fn(Word) -> bool) -> Result<(), StateError> {
        let adds = &transaction.adds;
        ensure(adds.len() <= self.policy.deferred_adds as usize, "a transaction defers too many additions")?;
        let mut taken = BTreeSet::new();
        for add in adds {
            let is_aligned = matches!(add.size_bytes, 4 | 8) && add.address.is_multiple_of(add.size_bytes);
            ensure(is_aligned, "a deferred addition has an impossible place")?;
            for word in crate::words_of(add.line(), self.policy.span(add.words())) {
                ensure(is_word(word), "a deferred addition has an impossible place")?;
                let in_sets = transaction.undo.iter().any(|undo| undo.word == word)
                    || transaction.reads.iter().any(|read| read.word == word);
                ensure(taken.insert((add.address, word)) && !in_sets, "a deferred addition is not alone")?;
            }
        }
        let words: BTreeSet<Word> = taken.iter().map(|(_, word)| *word).collect();
        ensure(words.len() == taken.len(), "a deferred addition is not alone")
    }

    /// Enters a transaction's words into the directory.
    fn index(&mut self, slot: Slot, transaction: &Transaction<C>) -> Result<(), StateError> {
        let mut lines = BTreeSet::new();
        let mut words = BTreeSet::new();
        for read in &transaction.reads {
            self.directory.member(line_of(read.word), slot).0.read |= 1 << index_in_line(read.word);
            lines.insert(line_of(read.word));
            words.insert(read.word);
        }
        for undo in &transaction.undo {
            self.directory.member(line_of(undo.word), slot).0.write |= 1 << index_in_line(undo.word);
            lines.insert(line_of(undo.word));
            words.insert(undo.word);
        }
        ensure(
            self.policy.units(words.len() as u64) == transaction.size_words,
            "a transaction's size differs from its sets'",
        )?;
        for line in &lines {
            let member = self.directory.member(*line, slot).0;
            let is_whole = |words| self.policy.span(words) == words || words == 0;
            ensure(is_whole(member.read) && is_whole(member.write), "a part of a granule is in a set")?;
        }
        let named: BTreeSet<Line> = transaction.lines.iter().copied().collect();
        ensure(
            named == lines && lines.len() == transaction.lines.len(),
            "a transaction's lines differ from its words'",
        )?;
        for line in &transaction.overflowed {
            ensure(lines.remove(line), "an overflowed line is in no set, or is listed twice")?;
            self.directory.member(*line, slot).0.overflowed = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Faults that are planted outside the engine, so that it has no code for them: in the requests that it gets, and in
//! the memory that its undo log writes.

use super::program::WORDS;
use concord_htm::{Memory, Word};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A word is missing from the undo log: rollbacks do not restore it.
    MissingUndo,
    /// A set loses a line that leaves the first-level cache: until its transaction ends, accesses find no conflict
    /// there.
    ForgottenOnEviction,
    /// An AMO executes without a check for conflicts.
    UncheckedSwap,
    /// The undo log puts back eight bytes for each granule of four: a rollback changes the word beside.
    WideUndo,
    /// A load that reads around a transaction's write gets the new value.
    SeenWrite,
    /// A commit makes its deferred additions twice.
    AddedTwice,
}

/// The word that [`Fault::MissingUndo`] does not restore.
const MISSING: Word = WORDS / 2;

/// Memory, as the undo log accesses it.
pub struct Undoing<'a> {
    words: &'a mut [u64],
    fault: Option<Fault>,
    /// For [`Fault::WideUndo`]: words beside written ones, with their values at the time of the write.
    beside: Option<&'a BTreeMap<Word, u64>>,
}

impl<'a> Undoing<'a> {
    pub fn new(words: &'a mut [u64], fault: Option<Fault>) -> Undoing<'a> {
        Undoing { words, fault, beside: None }
    }

    /// The words beside that a rollback restores under [`Fault::WideUndo`].
    pub fn beside(self, beside: &'a BTreeMap<Word, u64>) -> Undoing<'a> {
        Undoing { beside: Some(beside), ..self }
    }
}

/// The other half of eight bytes.
pub fn word_beside(word: Word) -> Word {
    word ^ 1
}

impl Memory for Undoing<'_> {
    fn load(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    fn store(&mut self, word: Word, value: u64) {
        if self.fault != Some(Fault::MissingUndo) || word != MISSING {
            self.words[word as usize] = value;
        }
        let beside = self.beside.and_then(|beside| beside.get(&word_beside(word)));
        if let (Some(Fault::WideUndo), Some(value)) = (self.fault, beside) {
            self.words[word_beside(word) as usize] = *value;
        }
    }
}

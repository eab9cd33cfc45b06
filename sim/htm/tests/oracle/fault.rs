//! Faults that are planted outside the engine, so that it has no code for them: in the requests that it gets, and in
//! the memory that its undo log writes.

use super::program::WORDS;
use concord_htm::{Memory, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A word is missing from the undo log: rollbacks do not restore it.
    MissingUndo,
    /// A set loses a line that leaves the first-level cache: until its transaction ends, accesses find no conflict
    /// there.
    ForgottenOnEviction,
    /// An AMO executes without a check for conflicts.
    UncheckedSwap,
}

/// The word that [`Fault::MissingUndo`] does not restore.
const MISSING: Word = WORDS / 2;

/// Memory, as the undo log accesses it.
pub struct Undoing<'a> {
    words: &'a mut [u64],
    fault: Option<Fault>,
}

impl<'a> Undoing<'a> {
    pub fn new(words: &'a mut [u64], fault: Option<Fault>) -> Undoing<'a> {
        Undoing { words, fault }
    }
}

impl Memory for Undoing<'_> {
    fn load(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    fn store(&mut self, word: Word, value: u64) {
        if self.fault != Some(Fault::MissingUndo) || word != MISSING {
            self.words[word as usize] = value;
        }
    }
}

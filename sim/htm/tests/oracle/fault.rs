//! Faults that are planted from outside, so that nothing of them is in the engine: in what it is asked, and in what its undo
//! log gets to do.

use super::program::WORDS;
use concord_htm::{Memory, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A word is missing from the undo log: rollbacks do not put it back.
    MissingUndo,
    /// A set forgets a line that leaves the first-level cache: while its transaction lives, no conflict is found there.
    ForgottenOnEviction,
    /// No conflict is looked for when an AMO is about to be made.
    UncheckedSwap,
}

/// The word that [`Fault::MissingUndo`] does not put back.
const MISSING: Word = WORDS / 2;

/// Memory, as the undo log sees it.
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

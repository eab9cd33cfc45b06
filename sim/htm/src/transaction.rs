//! One transaction: its identity, its checkpoint, its logs.

use crate::deferred::DeferredAdd;
use crate::manager::Contender;
use crate::{Line, Word};
use serde::{Deserialize, Serialize};

/// The index of a transaction in the engine, until it commits.
pub(crate) type Slot = u32;

/// A word of the write set: its old value, and the program counter of its first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    pub word: Word,
    pub old: u64,
    pub pc: u64,
}

/// A word that is only in the read set, and the program counter of its first read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Read {
    pub word: Word,
    pub pc: u64,
}

/// The conflict that a transaction lost: the physical address of the word, and the winner's id (0 for a
/// non-transactional access).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Defeat {
    pub address: u64,
    pub winner_id: u64,
}

/// A restart. A suspended transaction restarts when it is popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restart {
    pub status: u64,
    pub backoff_cycles: u64,
    /// The conflict, if the restart has one as its cause.
    pub defeat: Option<Defeat>,
}

/// A transaction, active or suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transaction<C> {
    pub id: u64,
    /// The hart that it runs on, or was suspended on.
    pub hart: usize,
    pub suspended: bool,
    pub doom: Option<Restart>,
    pub depth: u32,
    pub checkpoint: C,
    /// The conflict priority at its begin.
    pub priority: u8,
    /// The first begin, in cycles.
    pub begin_cycle: u64,
    /// The begin of this attempt, in cycles.
    pub attempt_cycle: u64,
    pub restarts: u32,
    pub waits: u32,
    /// A trap interrupted the transaction's back-off or wait.
    pub stalled: bool,
    /// The status word of this attempt.
    pub status: u64,
    /// Words opened in earlier attempts.
    pub karma_words: u64,
    /// Words in the sets of this attempt.
    pub size_words: u64,
    pub reads: Vec<Read>,
    pub undo: Vec<Undo>,
    /// Additions that its commit makes.
    pub adds: Vec<DeferredAdd>,
    /// Lines with a word in a set, in the order in which they joined.
    pub lines: Vec<Line>,
    /// Lines among these that left the first-level cache.
    pub overflowed: Vec<Line>,
}

impl<C> Transaction<C> {
    pub fn contender(&self) -> Contender {
        Contender {
            id: self.id,
            priority: self.priority,
            size_words: self.size_words,
            begin_cycle: self.begin_cycle,
            restarts: self.restarts,
            karma_words: self.karma_words.saturating_add(self.size_words),
            waits: self.waits,
        }
    }

    /// The program counter of the first access to a word of its sets.
    pub fn first_access_pc(&self, word: Word) -> u64 {
        let written = self.undo.iter().find(|undo| undo.word == word).map(|undo| undo.pc);
        let read = self.reads.iter().find(|read| read.word == word).map(|read| read.pc);
        read.or(written).unwrap_or(0)
    }
}

/// The transaction that a hart's registers describe: the active one, or else the last one suspended in its context.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a, C> {
    pub id: u64,
    pub suspended: bool,
    pub doomed: bool,
    pub stalled: bool,
    pub overflowed: bool,
    pub depth: u32,
    pub status: u64,
    pub size_words: u64,
    pub begin_cycle: u64,
    pub checkpoint: &'a C,
}

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

/// A transaction's waits for its present access, and those for it in this attempt.
///
/// Snapshots and digests have them as one number, of which a count of waits alone is the same as a plain count. So an
/// attempt that blocks no older transaction has the digest of a machine whose managers ask for no such mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub(crate) struct Stalls {
    /// How often the transaction has waited for this access.
    pub waits: u32,
    /// An older transaction has waited for this one.
    pub blocks_older: bool,
}

/// The bit of the mark in the number, above the count.
const BLOCKS_OLDER_BIT: u64 = 1 << 32;

impl From<Stalls> for u64 {
    fn from(stalls: Stalls) -> u64 {
        u64::from(stalls.waits) | if stalls.blocks_older { BLOCKS_OLDER_BIT } else { 0 }
    }
}

impl From<u64> for Stalls {
    fn from(number: u64) -> Stalls {
        Stalls { waits: number as u32, blocks_older: number & BLOCKS_OLDER_BIT != 0 }
    }
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
    pub stalls: Stalls,
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
            waits: self.stalls.waits,
            blocks_older: self.stalls.blocks_older,
            is_suspended: self.suspended,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_without_a_mark_are_written_as_a_count() {
        for waits in [0, 1, 127, 128, u32::MAX] {
            let stalls = Stalls { waits, blocks_older: false };
            assert_eq!(postcard::to_stdvec(&stalls).unwrap(), postcard::to_stdvec(&waits).unwrap());
            let marked = Stalls { blocks_older: true, ..stalls };
            assert_eq!([stalls, marked].map(|stalls| Stalls::from(u64::from(stalls))), [stalls, marked]);
        }
    }
}

//! Reports of the isolation checker.

use crate::{WORD_SHIFT, Word};
use std::fmt;

/// A party that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observer {
    /// A transaction, on the hart where it is active.
    Transaction {
        id: u64,
        hart: usize,
    },
    /// A hart outside any transaction.
    Hart(usize),
    /// A hart's page walker. It sees the writes of the hart's active transaction; `active` is that transaction's id, 0
    /// for none. A mark that it sets in the transaction's write set
    /// ([`Engine::active_wrote`](crate::Engine::active_wrote)) counts as a write of the transaction and is reported as
    /// such.
    Walker {
        hart: usize,
        active: u64,
    },
    Device,
}

impl Observer {
    /// The transaction whose uncommitted words the observer may see; 0 for none.
    pub(super) fn transaction_id(self) -> u64 {
        match self {
            Observer::Transaction { id, .. } => id,
            Observer::Walker { active, .. } => active,
            Observer::Hart(_) | Observer::Device => 0,
        }
    }
}

impl fmt::Display for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Observer::Transaction { id, hart } => write!(formatter, "transaction {id} on hart {hart}"),
            Observer::Hart(hart) => write!(formatter, "hart {hart}, outside any transaction,"),
            Observer::Walker { hart, .. } => write!(formatter, "the page walker of hart {hart}"),
            Observer::Device => write!(formatter, "a device"),
        }
    }
}

/// The live transaction that wrote a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    pub id: u64,
    /// The program counter of its last write; 0 if that was before the checker existed.
    pub pc: u64,
    /// Accesses of the whole machine since the transaction first wrote the word.
    pub age_accesses: u64,
}

impl fmt::Display for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "transaction {} wrote at pc {:#x}, {} accesses ago", self.id, self.pc, self.age_accesses)
    }
}

fn address(word: &Word) -> u64 {
    word << WORD_SHIFT
}

/// A broken promise of transactions. Values are those of whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An observer read an uncommitted word of a transaction.
    #[error(
        "{observer} read {seen:#x} at address {:#x} (pc {pc:#x}), where {committed:#x} is committed: {writer}, and has not \
         committed",
        address(word)
    )]
    Uncommitted { observer: Observer, pc: u64, word: Word, seen: u64, committed: u64, writer: Writer },
    /// An observer overwrote an uncommitted word of a transaction.
    #[error(
        "{observer} wrote {new:#x} at address {:#x} (pc {pc:#x}), where {committed:#x} is committed: {writer}, and has not \
         committed",
        address(word)
    )]
    Overwritten { observer: Observer, pc: u64, word: Word, new: u64, committed: u64, writer: Writer },
    /// A transaction found a value that differs from the one that it had left or seen before.
    #[error(
        "{observer} found {seen:#x} at address {:#x} (pc {pc:#x}), where it had {expected:#x} before (pc {known_pc:#x})",
        address(word)
    )]
    Changed { observer: Observer, pc: u64, word: Word, seen: u64, expected: u64, known_pc: u64 },
    /// A commit does not fit the serial order.
    #[error(
        "the commit of transaction {id} does not fit the serial order: at address {:#x} it read {seen:#x} (pc {pc:#x}), but \
         {committed:#x} is committed",
        address(word)
    )]
    Order { id: u64, pc: u64, word: Word, seen: u64, committed: u64 },
    /// After a commit, memory does not hold the value that the transaction wrote.
    #[error(
        "the commit of transaction {id} left {found:#x} at address {:#x}, where it wrote {written:#x} last (pc {pc:#x})",
        address(word)
    )]
    Lost { id: u64, pc: u64, word: Word, written: u64, found: u64 },
    /// A deferred addition added something else than its sum, or was made where none was due.
    #[error(
        "transaction {id} put {new:#x} at address {address:#x}, where it found {old:#x} and was to add {sum:#x} (pc {pc:#x})"
    )]
    Added { id: u64, pc: u64, address: u64, old: u64, new: u64, sum: u64 },
    /// A commit did not make a deferred addition.
    #[error("the commit of transaction {id} did not add {sum:#x} at address {address:#x}")]
    NotAdded { id: u64, address: u64, sum: u64 },
    /// A rollback did not restore a written word.
    #[error(
        "the rollback of transaction {id} left {found:#x} at address {:#x}, where {committed:#x} is committed (written at pc \
         {pc:#x})",
        address(word)
    )]
    NotRestored { id: u64, pc: u64, word: Word, found: u64, committed: u64 },
    /// A rollback changed a word that its transaction had not written.
    #[error(
        "the rollback of transaction {id} put {found:#x} at address {:#x}, which it had not written and which held {expected:#x}",
        address(word)
    )]
    Clobbered { id: u64, word: Word, found: u64, expected: u64 },
}

//! What transactions did, by hart.

use concord_abi::htm::Cause;
use serde::{Deserialize, Serialize};

/// No run comes near it, and sums of counters below it do not overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 56;

/// One hart's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Transactions that began; restarts do not count again.
    pub begun: u64,
    /// Begins inside a transaction.
    pub nested: u64,
    pub committed: u64,
    /// Restarts, by [`Cause`]; where that of [`Cause::None`] would be, transactions that were dropped.
    pub restarts: [u64; 8],
    /// Suspensions by `xpush` and by traps.
    pub suspended: u64,
    /// Cycles of attempts that committed, from their begin or restart on, suspended ones included.
    pub committed_cycles: u64,
    /// The same, of attempts that did not.
    pub wasted_cycles: u64,
    /// Cycles drawn for back-off after lost conflicts.
    pub backoff_cycles: u64,
    /// Cycles that a requester waited for a holder.
    pub wait_cycles: u64,
    /// Words in the sets of committed transactions.
    pub committed_words: u64,
    /// Words in the sets of attempts that did not commit.
    pub wasted_words: u64,
    /// The largest set of a committed transaction.
    pub size_words_max: u64,
    pub depth_max: u32,
    /// Lines of sets that left the first-level cache.
    pub overflowed_lines: u64,
    /// Compare-and-swaps outside transactions that met a transaction's words.
    pub arbitrated: u64,
    /// Those of them that were refused.
    pub refused: u64,
}

impl Counters {
    pub fn restarts_of(&self, cause: Cause) -> u64 {
        self.restarts[cause as usize]
    }

    /// Suspended transactions that were given up.
    pub fn dropped(&self) -> u64 {
        self.restarts_of(Cause::None)
    }

    /// Restarts of every cause.
    pub fn restarts_total(&self) -> u64 {
        self.restarts[Cause::None as usize + 1..].iter().sum()
    }

    /// Whether a run can have counted this far.
    pub(crate) fn is_possible(&self) -> bool {
        let counts = [
            self.begun,
            self.nested,
            self.committed,
            self.suspended,
            self.committed_cycles,
            self.wasted_cycles,
            self.backoff_cycles,
            self.wait_cycles,
            self.committed_words,
            self.wasted_words,
            self.size_words_max,
            self.overflowed_lines,
            self.arbitrated,
            self.refused,
        ];
        counts.iter().chain(&self.restarts).all(|count| *count < COUNT_MAX)
    }
}

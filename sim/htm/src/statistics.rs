//! Counters of transactions, by hart. Words have four bytes where that is the granule, and eight bytes otherwise
//! ([`Policy::units`](crate::policy::Policy::units)).

use concord_abi::htm::Cause;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;

/// The exclusive upper bound of a counter. No run comes near it, and sums of counters below it do not overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 56;

/// One hart's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Transactions that began; restarts do not count again.
    pub begun: u64,
    /// Begins inside a transaction.
    pub nested: u64,
    pub committed: u64,
    /// Suspended transactions that the kernel dropped (`xdrop`).
    pub dropped: u64,
    pub restarts: RestartCounts,
    /// Suspensions by `xpush` and by traps.
    pub suspended: u64,
    /// Cycles of attempts that committed, from their begin or restart to their end. Time in suspension counts as well.
    pub committed_cycles: u64,
    /// Cycles of attempts that did not commit, counted in the same way.
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
    /// Compare-and-swaps outside transactions that conflicted with a transaction.
    pub arbitrated: u64,
    /// Compare-and-swaps among these that were refused.
    pub refused: u64,
}

/// Restarts, by cause. JSON has them by the causes' names, in alphabetical order; a snapshot has them in the order of
/// [`Cause::RESTARTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestartCounts([u64; Cause::RESTARTS.len()]);

impl RestartCounts {
    /// Restarts of one cause; 0 of [`Cause::None`].
    pub fn of(&self, cause: Cause) -> u64 {
        if cause == Cause::None { 0 } else { self.0[cause as usize - 1] }
    }

    /// # Panics
    /// On [`Cause::None`], which restarts nothing.
    pub fn of_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.0[cause as usize - 1]
    }

    /// Restarts of every cause.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The causes with their counts, in the order of [`Cause::RESTARTS`].
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::RESTARTS.into_iter().map(|(cause, _)| (cause, self.of(cause)))
    }
}

impl Serialize for RestartCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        self.iter().map(|(cause, count)| (cause.name(), count)).collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RestartCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RestartCounts, D::Error> {
        if !deserializer.is_human_readable() {
            return Deserialize::deserialize(deserializer).map(RestartCounts);
        }
        let mut counts = RestartCounts::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let cause = Cause::named(&name);
            let cause = cause.ok_or_else(|| de::Error::custom(format!("no restart has the cause {name:?}")))?;
            *counts.of_mut(cause) = count;
        }
        Ok(counts)
    }
}

impl Counters {
    /// Counts a lost attempt with this status word: as a restart, or as a dropped transaction if the word has no cause.
    pub(crate) fn count_loss(&mut self, status: u64) {
        match Cause::of_status(status) {
            Cause::None => self.dropped += 1,
            cause => *self.restarts.of_mut(cause) += 1,
        }
    }

    /// Whether a run can count this far.
    pub(crate) fn is_possible(&self) -> bool {
        let counts = [
            self.begun,
            self.nested,
            self.committed,
            self.dropped,
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
        counts.iter().chain(&self.restarts.0).all(|count| *count < COUNT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_at_its_cause_or_as_dropped() {
        let mut counters = Counters::default();
        for status in [Cause::Conflict.status(0), Cause::Explicit.status(9), Cause::Explicit.status(0), 0] {
            counters.count_loss(status);
        }
        assert_eq!(counters.dropped, 1);
        assert_eq!(counters.restarts.total(), 3);
        assert_eq!((counters.restarts.of(Cause::Explicit), counters.restarts.of(Cause::None)), (2, 0));
    }

    /// Snapshots of version 0.1 have one array of eight numbers here; the first is the count of dropped transactions.
    #[test]
    fn a_snapshot_has_dropped_transactions_before_the_restarts_by_cause() {
        let mut counters = Counters { dropped: 9, ..Counters::default() };
        for (cause, _) in Cause::RESTARTS {
            *counters.restarts.of_mut(cause) = cause as u64;
        }
        let bytes = postcard::to_stdvec(&counters).unwrap();
        assert_eq!(bytes[3..11], [9, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(postcard::from_bytes::<Counters>(&bytes), Ok(counters));
    }
}

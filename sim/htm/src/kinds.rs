//! Conflicts by the kind of their parties, and what else is known of those that have equal keys.
//!
//! These accounts are no part of a machine's state: the engine's digest is without them, and a snapshot keeps them
//! beside the engine.

use crate::profile::{Conflict, ConflictKey, KEYS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parties of a conflict, one of which is always a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// Two transactions.
    Transactions,
    /// A transaction and an access outside transactions, or a device's. The transaction loses.
    Asymmetric,
    /// A transaction and a compare-and-swap outside transactions that the contention manager allowed.
    Granted,
    /// The same, refused. Nothing is lost: the compare-and-swap is tried again.
    Refused,
}

impl ConflictKind {
    /// Every kind, with its name in results.
    pub const ALL: [(ConflictKind, &'static str); 4] = [
        (ConflictKind::Transactions, "transactions"),
        (ConflictKind::Asymmetric, "asymmetric"),
        (ConflictKind::Granted, "granted"),
        (ConflictKind::Refused, "refused"),
    ];
}

/// The conflicts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTotals {
    pub count: u64,
    /// Cycles since the begin or restart of the losers.
    pub lost_cycles: u64,
    /// Cycles drawn for the losers' back-off.
    pub backoff_cycles: u64,
    /// Conflicts in which the party with the lower conflict priority won.
    pub inversions: u64,
    /// Those among them in which the loser's scheduling policy was real-time and the winner's was not.
    pub policy_inversions: u64,
}

/// What the profile does not say of the conflicts with one key. Documents of earlier versions lack it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairDetails {
    /// Conflicts in which the holder had written the word; in the others it had read it.
    pub holder_writes: u64,
    /// Cycles drawn for the losers' back-off.
    pub backoff_cycles: u64,
}

/// The least conflict priority of a real-time scheduling policy: the upper two bits of a priority are the policy, of
/// which 2 and 3 are real-time (`linux/overlay/kernel/sched/cx_priority.c`).
const PRIORITY_REAL_TIME: u8 = 2 << 6;

/// Whether a party of another policy won against one of a real-time policy.
pub(crate) fn inverts_policy(winner_priority: u8, loser_priority: u8) -> bool {
    loser_priority >= PRIORITY_REAL_TIME && winner_priority < PRIORITY_REAL_TIME
}

/// The sums over all conflicts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds {
    totals: [KindTotals; ConflictKind::ALL.len()],
    pairs: BTreeMap<ConflictKey, PairDetails>,
    /// For each live transaction whose last back-off was for the transaction that won, the conflict. The back-off may
    /// turn out shorter than it was counted.
    followed: BTreeMap<u64, ConflictKey>,
}

fn add(sum: &mut u64, number: u64) {
    *sum = sum.saturating_add(number);
}

impl Kinds {
    pub(crate) fn add(&mut self, conflict: &Conflict) {
        let totals = &mut self.totals[conflict.kind as usize];
        add(&mut totals.count, 1);
        add(&mut totals.lost_cycles, conflict.lost_cycles);
        add(&mut totals.inversions, u64::from(conflict.inversion));
        add(&mut totals.policy_inversions, u64::from(conflict.policy_inversion));
        if let Some(details) = self.details(&conflict.key) {
            add(&mut details.holder_writes, u64::from(conflict.holder_writes));
        }
    }

    /// The loser of a conflict that was counted backs off.
    pub(crate) fn add_backoff(&mut self, kind: ConflictKind, key: &ConflictKey, cycles: u64) {
        add(&mut self.totals[kind as usize].backoff_cycles, cycles);
        if let Some(details) = self.details(key) {
            add(&mut details.backoff_cycles, cycles);
        }
    }

    /// Remembers the conflict that a transaction lost to another, for [`Kinds::take_backoff`].
    pub(crate) fn follow_backoff(&mut self, loser_id: u64, key: ConflictKey) {
        self.followed.insert(loser_id, key);
    }

    /// So many cycles of a transaction's back-off were counted that did not pass.
    pub(crate) fn take_backoff(&mut self, loser_id: u64, cycles: u64) {
        let Some(key) = self.followed.get(&loser_id) else { return };
        let totals = &mut self.totals[ConflictKind::Transactions as usize].backoff_cycles;
        *totals = totals.saturating_sub(cycles);
        if let Some(details) = self.pairs.get_mut(key) {
            details.backoff_cycles = details.backoff_cycles.saturating_sub(cycles);
        }
    }

    /// A transaction is over, or backs off for another reason.
    pub(crate) fn forget(&mut self, id: u64) {
        self.followed.remove(&id);
    }

    fn details(&mut self, key: &ConflictKey) -> Option<&mut PairDetails> {
        let has_room = self.pairs.len() < KEYS_MAX || self.pairs.contains_key(key);
        has_room.then(|| self.pairs.entry(*key).or_default())
    }

    pub fn of(&self, kind: ConflictKind) -> &KindTotals {
        &self.totals[kind as usize]
    }

    /// What is known of the conflicts with a key.
    pub fn of_pair(&self, key: &ConflictKey) -> PairDetails {
        self.pairs.get(key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_is_above_all_other_policies() {
        let [batch, fair, fifo, deadline] = [63, 1 << 6 | 20, 2 << 6, 3 << 6 | 63];
        assert!(inverts_policy(fair, fifo) && inverts_policy(batch, deadline));
        assert!(!inverts_policy(batch, fair), "both are not real-time");
        assert!(!inverts_policy(fifo, deadline), "both are real-time");
        assert!(!inverts_policy(fifo, fair));
    }
}

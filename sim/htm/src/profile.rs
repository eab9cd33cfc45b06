//! The conflict profile: for each conflict both program counters, the word, the winner, the rule, and the cost.

use crate::kinds::ConflictKind;
use crate::manager::Rule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The properties of a conflict. Conflicts with equal keys are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConflictKey {
    /// The program counter of the access that found the conflict; 0 for a device.
    pub requester_pc: u64,
    /// The program counter of the holder's first access to the word.
    pub holder_pc: u64,
    /// The physical address of the word.
    pub address: u64,
    pub requester_is_transactional: bool,
    pub requester_writes: bool,
    pub requester_won: bool,
    pub rule: Rule,
}

/// The cost of the conflicts with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictTotals {
    pub count: u64,
    /// Cycles since the begin or restart of the losers.
    pub lost_cycles: u64,
    /// Words in the losers' sets.
    pub lost_words: u64,
    /// Conflicts in which the party with the lower conflict priority won.
    pub inversions: u64,
}

impl ConflictTotals {
    fn add(&mut self, other: &ConflictTotals) {
        self.count = self.count.saturating_add(other.count);
        self.lost_cycles = self.lost_cycles.saturating_add(other.lost_cycles);
        self.lost_words = self.lost_words.saturating_add(other.lost_words);
        self.inversions = self.inversions.saturating_add(other.inversions);
    }
}

/// One conflict, for a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub key: ConflictKey,
    pub kind: ConflictKind,
    pub cycle: u64,
    /// The requester's hart; `None` for a device.
    pub requester_hart: Option<usize>,
    /// The hart on which the holder runs, or ran last.
    pub holder_hart: usize,
    /// 0 outside a transaction.
    pub requester_id: u64,
    pub holder_id: u64,
    pub lost_cycles: u64,
    pub lost_words: u64,
    /// The holder had written the word.
    pub holder_writes: bool,
    pub inversion: bool,
    pub policy_inversion: bool,
}

/// The greatest number of keys. A guest can produce more, and the host's memory is limited.
pub(crate) const KEYS_MAX: usize = 1 << 16;

/// The sums over all conflicts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    totals: BTreeMap<ConflictKey, ConflictTotals>,
    /// Conflicts whose keys came after the limit on keys was reached.
    pub others: ConflictTotals,
}

impl Profile {
    pub(crate) fn add(&mut self, conflict: &Conflict) {
        let is_known = self.totals.contains_key(&conflict.key);
        let totals = if is_known || self.totals.len() < KEYS_MAX {
            self.totals.entry(conflict.key).or_default()
        } else {
            &mut self.others
        };
        totals.add(&ConflictTotals {
            count: 1,
            lost_cycles: conflict.lost_cycles,
            lost_words: conflict.lost_words,
            inversions: u64::from(conflict.inversion),
        });
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ConflictKey, &ConflictTotals)> {
        self.totals.iter()
    }

    /// All conflicts together.
    pub fn sum(&self) -> ConflictTotals {
        let mut sum = ConflictTotals::default();
        self.totals.values().chain([&self.others]).for_each(|totals| sum.add(totals));
        sum
    }
}

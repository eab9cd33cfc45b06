//! The choices of an experimenter, as data.

use crate::manager::Manager;
use serde::{Deserialize, Serialize};

/// The unit of sets and of conflict detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Eight bytes, as in MetaTM.
    #[default]
    Word,
    /// A cache line, as in most processors that were sold.
    Line,
}

/// The kind of transactional processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Transactions may be larger than the cache and are suspended by traps (MetaTM).
    #[default]
    Virtualized,
    /// A line of a set that leaves the first-level cache, or a trap, restarts the transaction.
    BestEffort,
    /// No transactional processor: the transactional instructions do not exist, as on any other machine.
    None,
}

/// The policies of an [`Engine`](crate::Engine).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub manager: Manager,
    pub granularity: Granularity,
    pub mode: Mode,
    /// Back-off after a lost conflict: a random number of cycles below this bound, which doubles with each restart so
    /// far.
    pub backoff_base_cycles: u64,
    /// How often the bound doubles at most. Under [`Manager::RequesterWins`] only back-off resolves a repeated
    /// conflict, so there the bound doubles a few times more.
    pub backoff_exponent_max: u32,
    /// The number of restarts of either party from which [`Manager::SizeMatters`] and [`Manager::Polka`] go by age, so
    /// that no transaction starves.
    pub restart_threshold: u32,
}

impl Default for Policy {
    /// The paper's policy: SizeMatters by word, with exponential back-off (section 7). The numbers are our choice.
    fn default() -> Policy {
        Policy {
            manager: Manager::SizeMatters,
            granularity: Granularity::Word,
            mode: Mode::Virtualized,
            backoff_base_cycles: 64,
            backoff_exponent_max: 10,
            restart_threshold: 8,
        }
    }
}

impl Policy {
    /// The exclusive upper bound of a back-off after `count` restarts, in cycles; at least 1.
    pub(crate) fn backoff_bound_cycles(&self, count: u32) -> u64 {
        let exponent = count.min(self.manager.get().backoff_exponent_max(self));
        self.backoff_base_cycles.saturating_mul(1u64.checked_shl(exponent).unwrap_or(u64::MAX)).max(1)
    }

    /// The words that a request for `words` of a line covers.
    #[inline]
    pub fn span(&self, words: u8) -> u8 {
        match self.granularity {
            Granularity::Word => words,
            Granularity::Line => 0xff,
        }
    }
}

//! What an experimenter may choose, as data.

use crate::manager::Manager;
use serde::{Deserialize, Serialize};

/// The unit in which sets are kept and conflicts are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Eight bytes, as in MetaTM.
    #[default]
    Word,
    /// A cache line, as in most processors that were sold.
    Line,
}

/// Which kind of transactional processor this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Transactions may be larger than the cache and are suspended by traps (MetaTM).
    #[default]
    Virtualized,
    /// A line of a set that leaves the first-level cache, or a trap, restarts the transaction.
    BestEffort,
    /// No transactional processor: its instructions do not exist, as on any other machine.
    None,
}

/// The policies of an [`Engine`](crate::Engine).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub manager: Manager,
    pub granularity: Granularity,
    pub mode: Mode,
    /// Back-off after a lost conflict: a random number of cycles below this, doubled for each restart so far.
    pub backoff_base_cycles: u64,
    /// How often it is doubled at most. Under [`Manager::RequesterWins`] nothing but back-off ends a conflict for good, and it
    /// doubles a few times more.
    pub backoff_exponent_max: u32,
    /// Restarts of either party from which on [`Manager::SizeMatters`] and [`Manager::Polka`] go by age, so that no transaction
    /// starves.
    pub restart_threshold: u32,
}

impl Default for Policy {
    /// The paper's: SizeMatters by word, with exponential back-off (section 7). The numbers are ours.
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
    /// The greatest number of cycles that a back-off after `count` restarts stays below; at least 1.
    pub(crate) fn backoff_bound_cycles(&self, count: u32) -> u64 {
        let exponent = count.min(self.manager.get().backoff_exponent_max(self));
        self.backoff_base_cycles.saturating_mul(1u64.checked_shl(exponent).unwrap_or(u64::MAX)).max(1)
    }

    /// The words that a request for `words` of a line stands for.
    #[inline]
    pub fn span(&self, words: u8) -> u8 {
        match self.granularity {
            Granularity::Word => words,
            Granularity::Line => 0xff,
        }
    }
}

//! The choices of an experimenter, as data.

use crate::manager::Manager;
use crate::{LINE_WORDS, WORD_SHIFT, Word};
use serde::{Deserialize, Serialize};

/// The unit of sets and of conflict detection: the granule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Eight bytes: a register of this architecture.
    #[default]
    Word,
    /// A cache line, as in most processors that were sold.
    Line,
    /// Four bytes: MetaTM's granule, a word of the IA-32 architecture.
    Word32,
}

impl Granularity {
    /// Every granularity, from the finest to the coarsest.
    pub const ALL: [Granularity; 3] = [Granularity::Word32, Granularity::Word, Granularity::Line];

    /// The name in options, boards and results.
    pub fn name(self) -> &'static str {
        match self {
            Granularity::Word32 => "word32",
            Granularity::Word => "word",
            Granularity::Line => "line",
        }
    }

    /// The unit of sizes in statistics, costs and managers is a word of four bytes where that is the granule, and one of
    /// eight bytes otherwise; this is the binary logarithm of its words of four bytes.
    #[inline]
    fn unit_shift(self) -> u32 {
        match self {
            Granularity::Word32 => 0,
            Granularity::Word | Granularity::Line => 1,
        }
    }
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

/// What a hart's load outside transactions does to a transaction that wrote the granule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideReads {
    /// The load wins: the transaction loses, and the load reads what the rollback put back.
    #[default]
    Wins,
    /// The load reads the committed value from the undo log, and nobody loses.
    Committed,
}

impl OutsideReads {
    /// Every choice.
    pub const ALL: [OutsideReads; 2] = [OutsideReads::Wins, OutsideReads::Committed];

    /// The name in options, boards and results.
    pub fn name(self) -> &'static str {
        match self {
            OutsideReads::Wins => "wins",
            OutsideReads::Committed => "committed",
        }
    }
}

/// How long the loser of a conflict backs off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// A random time, below a bound that doubles with each restart.
    #[default]
    Random,
    /// Until the transaction that won has committed or been dropped, but at most the greatest of those bounds and then
    /// a random time; after a conflict that no transaction won, a random time. A winner that loses in its turn is still
    /// waited for: under [`Manager::RequesterWins`] transactions that were released by losses ended each other for
    /// ever.
    Winner,
}

impl Backoff {
    /// Every choice.
    pub const ALL: [Backoff; 2] = [Backoff::Random, Backoff::Winner];

    /// The name in options, boards and results.
    pub fn name(self) -> &'static str {
        match self {
            Backoff::Random => "random",
            Backoff::Winner => "winner",
        }
    }
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
    /// Not written with an engine, as all that follows: who reads an engine has its policies, and passes them to
    /// [`Engine::restore`](crate::Engine::restore).
    #[serde(skip)]
    pub outside_reads: OutsideReads,
    /// The most additions that a transaction defers to its commit; 0 for none.
    #[serde(skip)]
    pub deferred_adds: u32,
    #[serde(skip)]
    pub backoff: Backoff,
}

impl Default for Policy {
    /// The paper's policy, SizeMatters with exponential back-off (section 7), by eight bytes. The numbers are our choice.
    fn default() -> Policy {
        Policy {
            manager: Manager::SizeMatters,
            granularity: Granularity::Word,
            mode: Mode::Virtualized,
            backoff_base_cycles: 64,
            backoff_exponent_max: 10,
            restart_threshold: 8,
            outside_reads: OutsideReads::Wins,
            deferred_adds: 0,
            backoff: Backoff::Random,
        }
    }
}

impl Policy {
    /// The exclusive upper bound of a back-off after `count` restarts, in cycles; at least 1.
    pub(crate) fn backoff_bound_cycles(&self, count: u32) -> u64 {
        let exponent = count.min(self.manager.get().backoff_exponent_max(self));
        self.backoff_base_cycles.saturating_mul(1u64.checked_shl(exponent).unwrap_or(u64::MAX)).max(1)
    }

    /// The longest time that a loser backs off for a winner which does not end, in cycles, before it backs off for a
    /// random time.
    pub(crate) fn winner_bound_cycles(&self) -> u64 {
        self.backoff_base_cycles.saturating_mul(1u64.checked_shl(self.backoff_exponent_max).unwrap_or(u64::MAX))
    }

    /// This policy with those parts that are not written with an engine from `other`.
    pub(crate) fn completed(self, other: &Policy) -> Policy {
        Policy {
            outside_reads: other.outside_reads,
            deferred_adds: other.deferred_adds,
            backoff: other.backoff,
            ..self
        }
    }

    /// The words that a request for `words` of a line covers: those of every granule that it touches.
    #[inline]
    pub fn span(&self, words: u16) -> u16 {
        match self.granularity {
            Granularity::Word32 => words,
            Granularity::Word => {
                let first = (words | words >> 1) & 0x5555;
                first | first << 1
            }
            Granularity::Line => 0xffff,
        }
    }

    /// The size of so many words of whole granules, in units ([`Granularity::unit_shift`]).
    #[inline]
    pub fn units(&self, words: u64) -> u64 {
        words >> self.granularity.unit_shift()
    }

    /// The granules of so many units.
    pub fn granules(&self, units: u64) -> u64 {
        match self.granularity {
            Granularity::Word32 | Granularity::Word => units,
            Granularity::Line => units / self.units(LINE_WORDS.into()),
        }
    }

    /// The physical address of the unit that a word is in.
    pub(crate) fn unit_address(&self, word: Word) -> u64 {
        let shift = self.granularity.unit_shift();
        word >> shift << (shift + WORD_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_covers_the_granules_that_it_touches() {
        let of = |granularity| Policy { granularity, ..Policy::default() };
        assert_eq!(of(Granularity::Word32).span(0b0010_0000_1100_0001), 0b0010_0000_1100_0001);
        assert_eq!(of(Granularity::Word).span(0b0010_0000_1100_0001), 0b0011_0000_1100_0011);
        assert_eq!(of(Granularity::Line).span(1), 0xffff);
        let sizes = |policy: Policy| [policy.units(16), policy.granules(policy.units(16)), policy.unit_address(7)];
        assert_eq!(sizes(of(Granularity::Word32)), [16, 16, 28]);
        assert_eq!(sizes(of(Granularity::Word)), [8, 8, 24]);
        assert_eq!(sizes(of(Granularity::Line)), [8, 1, 24]);
    }

    #[test]
    fn names_are_those_of_boards() {
        for granularity in Granularity::ALL {
            assert_eq!(serde_json::to_string(&granularity).unwrap(), format!("{:?}", granularity.name()));
        }
        for backoff in Backoff::ALL {
            assert_eq!(serde_json::to_string(&backoff).unwrap(), format!("{:?}", backoff.name()));
        }
        for reads in OutsideReads::ALL {
            assert_eq!(serde_json::to_string(&reads).unwrap(), format!("{:?}", reads.name()));
        }
    }
}

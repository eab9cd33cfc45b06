//! Contention managers decide conflicts: which of the two parties continues. Each manager is one file;
//! `docs/how-to/contention-manager.md` says how to add one.

mod os_prio;
mod polka;
mod requester_stalls;
mod requester_wins;
mod size_matters;
mod timestamp;

use crate::policy::Policy;
use serde::{Deserialize, Serialize};

/// The registry of contention managers. A line gives the variant, the name in options, boards and results, and the
/// implementation. Every other list of managers is derived from it.
macro_rules! managers {
    ($($variant:ident = $name:literal => $implementation:expr;)*) => {
        /// The contention managers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Manager {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Manager {
            /// Every manager, in the order in which help pages and messages list them.
            pub const ALL: [Manager; [$($name),*].len()] = [$(Manager::$variant),*];

            /// The name in options, boards and results.
            pub fn name(self) -> &'static str {
                match self {
                    $(Manager::$variant => $name,)*
                }
            }

            pub(crate) fn get(self) -> &'static dyn ContentionManager {
                match self {
                    $(Manager::$variant => &$implementation,)*
                }
            }
        }
    };
}

managers! {
    Timestamp = "timestamp" => timestamp::Timestamp;
    SizeMatters = "size-matters" => size_matters::SizeMatters;
    OsPrio = "os-prio" => os_prio::OsPrio;
    Polka = "polka" => polka::Polka;
    RequesterWins = "requester-wins" => requester_wins::RequesterWins;
    RequesterStalls = "requester-stalls" => requester_stalls::RequesterStalls;
}

/// One of the two parties of a conflict: a transaction, or a compare-and-swap outside any (its id is then
/// [`u64::MAX`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    pub id: u64,
    /// The conflict priority that the kernel set; greater is more urgent.
    pub priority: u8,
    /// Words in the party's sets, in the unit of [`Policy::units`].
    pub size_words: u64,
    /// The party's first begin, in cycles; restarts do not change it.
    pub begin_cycle: u64,
    pub restarts: u32,
    /// Words that the party opened in all its attempts so far.
    pub karma_words: u64,
    /// How often the party has already waited for this access.
    pub waits: u32,
    /// In this attempt an older transaction has waited for the party.
    pub blocks_older: bool,
    /// The party is suspended, and goes on only when its thread does.
    pub is_suspended: bool,
}

impl Contender {
    /// Whether the party is a transaction, and not a compare-and-swap outside any.
    fn is_transaction(&self) -> bool {
        self.id != u64::MAX
    }

    /// Older, by begin time and then by id. The order is total, because ids are unique.
    pub(crate) fn is_older_than(&self, other: &Contender) -> bool {
        (self.begin_cycle, self.id) < (other.begin_cycle, other.id)
    }
}

/// The reason why a party won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A non-transactional access always wins.
    Nontransactional,
    /// The holder is suspended in the requester's own context and cannot continue before it, or both contexts have
    /// suspended transactions and the parties might wait for each other.
    Stack,
    Priority,
    Size,
    Age,
    Karma,
    Requester,
}

impl Rule {
    pub fn name(self) -> &'static str {
        match self {
            Rule::Nontransactional => "nontransactional",
            Rule::Stack => "stack",
            Rule::Priority => "priority",
            Rule::Size => "size",
            Rule::Age => "age",
            Rule::Karma => "karma",
            Rule::Requester => "requester",
        }
    }
}

/// A contention manager's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    RequesterWins(Rule),
    HolderWins(Rule),
    /// The requester retries after a random number of cycles below this bound.
    Wait {
        bound_cycles: u64,
    },
}

impl Decision {
    fn requester_wins(wins: bool, rule: Rule) -> Decision {
        if wins { Decision::RequesterWins(rule) } else { Decision::HolderWins(rule) }
    }
}

/// Decides conflicts. A manager has no state of its own: it decides by the contenders and the policy alone.
pub trait ContentionManager: Sync {
    fn decide(&self, requester: &Contender, holder: &Contender, policy: &Policy) -> Decision;

    /// How often the back-off doubles at most.
    fn backoff_exponent_max(&self, policy: &Policy) -> u32 {
        policy.backoff_exponent_max
    }
}

/// Whether either party has restarted so often that progress matters more than the manager's usual rule.
fn is_starving(requester: &Contender, holder: &Contender, policy: &Policy) -> bool {
    requester.restarts.max(holder.restarts) >= policy.restart_threshold
}

#[cfg(test)]
mod tests;

//! Polka (Scherer and Scott, "Advanced Contention Management for Dynamic Software Transactional Memory", PODC 2005). A
//! transaction's worth is its karma, the number of words that it opened in all its attempts. A requester with less
//! karma than the holder waits one round for each word of the difference, each round about twice as long as the one
//! before, and then wins.
//!
//! Departures from the paper: at most [`ROUNDS_MAX`] rounds, since the sets of a kernel's transactions differ by
//! hundreds of words, and the paper's objects were few; and from a number of restarts on the older transaction wins,
//! since two transactions that are longer than all rounds together would end each other for ever.

use super::timestamp::Timestamp;
use super::{Contender, ContentionManager, Decision, Rule, is_starving};
use crate::policy::Policy;

pub(super) struct Polka;

const ROUNDS_MAX: u64 = 8;

impl ContentionManager for Polka {
    fn decide(&self, requester: &Contender, holder: &Contender, policy: &Policy) -> Decision {
        let poorer_by = holder.karma_words.saturating_sub(requester.karma_words);
        let waits = u64::from(requester.waits);
        if waits < ROUNDS_MAX && is_starving(requester, holder, policy) {
            return Timestamp.decide(requester, holder, policy);
        }
        if waits >= poorer_by.min(ROUNDS_MAX) {
            return Decision::RequesterWins(Rule::Karma);
        }
        Decision::Wait { bound_cycles: policy.backoff_bound_cycles(requester.waits) }
    }
}

//! Requester wins: the party that asks for the word gets it, as in most transactional processors that were sold, whose
//! coherence protocol cannot refuse (for instance Intel TSX). Only the random back-off prevents livelock of two
//! transactions, so it doubles a few times more than under the other managers: to four million cycles with the default
//! policy. That ends conflicts of transactions up to about a million cycles. Without a limit, a short transaction that
//! was unlucky twenty times would sleep for longer than most runs.

use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct RequesterWins;

const DOUBLINGS_MORE: u32 = 6;

impl ContentionManager for RequesterWins {
    fn decide(&self, _: &Contender, _: &Contender, _: &Policy) -> Decision {
        Decision::RequesterWins(Rule::Requester)
    }

    fn backoff_exponent_max(&self, policy: &Policy) -> u32 {
        policy.backoff_exponent_max.saturating_add(DOUBLINGS_MORE)
    }
}

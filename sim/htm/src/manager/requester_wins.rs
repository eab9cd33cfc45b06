//! Requester wins: whoever asks for the word gets it, as in most transactional processors that were sold, whose coherence
//! protocol cannot refuse (for instance Intel TSX). Only the random back-off stands between two transactions and livelock, so
//! it doubles with every restart until it is longer than any transaction, whatever the policy's greatest exponent is.

use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct RequesterWins;

impl ContentionManager for RequesterWins {
    fn decide(&self, _: &Contender, _: &Contender, _: &Policy) -> Decision {
        Decision::RequesterWins(Rule::Requester)
    }

    fn backoff_exponent_max(&self, _: &Policy) -> u32 {
        u32::MAX
    }
}

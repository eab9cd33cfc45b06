//! Requester wins: whoever asks for the word gets it, as in most transactional processors that were sold, whose coherence
//! protocol cannot refuse (for instance Intel TSX). Only the random back-off stands between two transactions and livelock.

use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct RequesterWins;

impl ContentionManager for RequesterWins {
    fn decide(&self, _: &Contender, _: &Contender, _: &Policy) -> Decision {
        Decision::RequesterWins(Rule::Requester)
    }
}

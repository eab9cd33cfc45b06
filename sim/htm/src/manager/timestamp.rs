//! Timestamp: the older transaction wins (Rajwar and Goodman, "Transactional Lock-Free Execution of Lock-Based Programs",
//! ASPLOS 2002). Restarts do not refresh the time, so every transaction becomes the oldest one and commits.

use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct Timestamp;

impl ContentionManager for Timestamp {
    fn decide(&self, requester: &Contender, holder: &Contender, _: &Policy) -> Decision {
        Decision::requester_wins(requester.is_older_than(holder), Rule::Age)
    }
}

//! SizeMatters: the transaction with the larger sets wins, since more work would be lost with it (Ramadan et al., "MetaTM/TxLinux:
//! Transactional Memory for an Operating System", ISCA 2007); from a number of restarts on, and between equals, the older one.

use super::timestamp::Timestamp;
use super::{Contender, ContentionManager, Decision, Rule, is_starving};
use crate::policy::Policy;

pub(super) struct SizeMatters;

impl ContentionManager for SizeMatters {
    fn decide(&self, requester: &Contender, holder: &Contender, policy: &Policy) -> Decision {
        if is_starving(requester, holder, policy) || requester.size_words == holder.size_words {
            return Timestamp.decide(requester, holder, policy);
        }
        Decision::requester_wins(requester.size_words > holder.size_words, Rule::Size)
    }
}

//! os_prio: the transaction that the operating system's scheduler values most wins; between equals SizeMatters decides, and
//! between equals in that, age (Rossbach et al., "TxLinux", SOSP 2007, section 6.1).

use super::size_matters::SizeMatters;
use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct OsPrio;

impl ContentionManager for OsPrio {
    fn decide(&self, requester: &Contender, holder: &Contender, policy: &Policy) -> Decision {
        if requester.priority == holder.priority {
            return SizeMatters.decide(requester, holder, policy);
        }
        Decision::requester_wins(requester.priority > holder.priority, Rule::Priority)
    }
}

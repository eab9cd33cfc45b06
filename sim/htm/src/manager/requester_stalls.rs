//! Requester stalls: the requester waits until the holder ends, so that conflicts cost time instead of work (Moore,
//! Bobba, Moravan, Hill and Wood, "LogTM: Log-based Transactional Memory", HPCA 2006). A transaction for which an older
//! one has waited may be part of a cycle of waits; if it would itself wait for an older one, it loses. Every cycle of
//! waits has such a transaction: follow the waits from the oldest one, and take the first that waits for an older one
//! than itself.
//!
//! Departures from the paper:
//! - The requester asks again after a random number of cycles below the base of back-off. The paper's asks all the
//!   time.
//! - A holder may be suspended. It goes on only when its thread does, and a compare-and-swap outside transactions on
//!   its hart may meanwhile be refused on the requester's account, which leaves no mark. So a requester soon goes by
//!   age against a suspended holder, and a compare-and-swap soon does against any.
//! - After very many rounds, age decides in any case: a program may wait in a transaction for something that the
//!   requester has.

use super::timestamp::Timestamp;
use super::{Contender, ContentionManager, Decision, Rule};
use crate::policy::Policy;

pub(super) struct RequesterStalls;

/// The most rounds for a holder that runs; a choice: half a million cycles with the default policy.
const ROUNDS_MAX: u32 = 1 << 14;

/// The most rounds where the marks do not show every cycle; a choice: four thousand cycles with the default policy,
/// which is enough for a short interrupt.
const UNMARKED_ROUNDS_MAX: u32 = 1 << 7;

impl ContentionManager for RequesterStalls {
    fn decide(&self, requester: &Contender, holder: &Contender, policy: &Policy) -> Decision {
        let is_marked = requester.is_transaction() && !holder.is_suspended;
        if requester.waits >= if is_marked { ROUNDS_MAX } else { UNMARKED_ROUNDS_MAX } {
            return Timestamp.decide(requester, holder, policy);
        }
        if requester.blocks_older && holder.is_older_than(requester) {
            return Decision::HolderWins(Rule::Age);
        }
        Decision::Wait { bound_cycles: policy.backoff_bound_cycles(0) }
    }
}

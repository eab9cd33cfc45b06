//! Faults that a test plants in the machine, to see that the suite finds them. Without the feature `planted-faults`, which only
//! this crate's own tests switch on, nothing of them is compiled.

use crate::machine::Machine;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// No conflict is looked for when an AMO is about to be made.
    UncheckedAtomic,
    /// Translations outlive the page-table entries of the transaction that they were made from.
    KeptTranslation,
    /// A commit makes each deferred addition twice.
    AddedTwice,
    /// Decoded and translated code outlives a store to its page.
    ForgottenInvalidation,
    /// Translated code runs a cycle past the limit of the turn.
    MissedLimit,
    /// The fetch of the line at which translated code is entered is not charged.
    UnchargedFetch,
}

impl Machine {
    #[cfg(feature = "planted-faults")]
    pub fn plant(&mut self, fault: PlantedFault) {
        self.planted = Some(fault);
    }

    #[inline(always)]
    pub(crate) fn has_fault(&self, fault: PlantedFault) -> bool {
        cfg!(feature = "planted-faults") && self.planted == Some(fault)
    }
}

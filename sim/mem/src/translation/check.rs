//! Invariants of a translation cache by itself, for one read from a snapshot.

use super::{NO_TAG, TranslationCache, TranslationEntry};
use crate::ram::PAGE_SHIFT;
use crate::system::ensure;

/// The number of levels of the deepest page table, that of Sv48.
const LEVELS_MAX: u8 = 4;

impl TranslationCache {
    /// Checks every index.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for (slot, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.tag != NO_TAG) {
            let address = entry.tag >> 1 << PAGE_SHIFT;
            ensure(self.slot(address) == slot, "a translation is in another page's slot")?;
            ensure(entry.level < LEVELS_MAX, "a translation has an impossible level")?;
        }
        Ok(())
    }

    /// The physical addresses of the cached pages.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().filter(|entry| entry.tag != NO_TAG).map(TranslationEntry::page)
    }
}

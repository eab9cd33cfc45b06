//! Checks of line tables from a snapshot.

use super::{EMPTY, Entry, INVALID, LineTable, NO_LINE, USER, shift};
use crate::ram::Ram;

impl LineTable {
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Computes the host addresses of a table that was read from a snapshot and checked.
    pub(crate) fn rebase(&mut self, timed: bool, ram: &Ram) {
        for (slot, entry) in self.entries.iter_mut().enumerate() {
            if entry.is_withheld() {
                continue;
            }
            match (entry.virtual_address(timed, slot), entry.physical_address(timed)) {
                (Some(address), Some(physical)) => {
                    entry.addend = (ram.host_address(physical) as u64).wrapping_sub(address);
                }
                _ => *entry = EMPTY,
            }
        }
    }
}

impl Entry {
    /// True if this entry keeps its line in use but answers no access, because a transaction has words of the line
    /// or somebody waits for it.
    pub(crate) fn is_withheld(&self) -> bool {
        self.line != NO_LINE && self.read_tag == INVALID && self.write_tag == INVALID
    }

    /// The virtual address of the line for which this entry, found in `slot`, answers; `None` if its tags name no line,
    /// or one that does not belong in that slot. Tags that pass this test match accesses inside that line only.
    pub(crate) fn virtual_address(&self, timed: bool, slot: usize) -> Option<u64> {
        let tag = if self.read_tag == INVALID { self.write_tag } else { self.read_tag };
        let address = tag & u64::MAX << shift(timed);
        let is_sound = tag != INVALID
            && (self.write_tag == INVALID || self.write_tag == tag)
            && tag & !USER == address
            && LineTable::slot(timed, address) == slot;
        is_sound.then_some(address)
    }

    /// The physical address of the line; `None` if there is no such line.
    pub(crate) fn physical_address(&self, timed: bool) -> Option<u64> {
        (self.line != NO_LINE).then_some(u64::from(self.line) << shift(timed))
    }
}

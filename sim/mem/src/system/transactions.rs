//! What transactions need of the memory system: to see walks before they happen, to hear of evictions, and to take away what the
//! line table answers by itself. Who has which words in its sets is not known here.

use super::MemorySystem;
use crate::cache::{Line, physical_line};
use crate::fault::Access;
use crate::line_table::{INVALID, Rights};
use crate::ram::{PAGE_SHIFT, RAM_BASE};
use crate::translation::{MODE_BARE, WalkerAccess, find_leaf};

impl MemorySystem {
    /// What the walker would read and write for an access; nothing when the translation is known. Changes nothing.
    pub fn walk_steps(&self, core: usize, address: u64, access: Access) -> Vec<WalkerAccess> {
        let state = &self.cores[core];
        let is_known = match access {
            Access::Fetch => state.context.mode() == MODE_BARE,
            _ => state.find_translation(address, access).is_some(),
        };
        let mut steps = Vec::new();
        if !is_known {
            // What is wrong with the address comes out when it is translated.
            let _ = find_leaf(&self.ram, &state.context, address, access, |step| steps.push(step));
        }
        steps
    }

    /// Whether lines that leave a first-level data cache for want of room are noted.
    pub fn set_noting_evictions(&mut self, noting: bool) {
        self.notes_evictions = noting;
        if !noting {
            self.evictions.clear();
        }
    }

    /// A line left a core's first-level data cache, if there was one.
    #[cold]
    #[inline(never)]
    pub(super) fn note_eviction(&mut self, core: usize, victim: Option<Line>) {
        self.evictions.extend(victim.map(|victim| (core, victim)));
    }

    /// True when a line was evicted that nobody has asked for yet.
    #[inline]
    pub fn has_evictions(&self) -> bool {
        !self.evictions.is_empty()
    }

    /// A core and a line that left its first-level data cache, of those not asked for yet, in order.
    pub fn take_evictions(&mut self) -> Vec<(usize, Line)> {
        std::mem::take(&mut self.evictions)
    }

    /// Memory at a physical address changes without an access: a rollback puts an old word back, or no line table and no cache
    /// takes part, as in the functional gear while a transaction lives.
    pub fn note_change(&mut self, physical: u64) {
        self.note_store(((physical - RAM_BASE) >> PAGE_SHIFT) as usize);
    }

    /// Narrows what the line table of a core answers for a line to `rights`; what it does not answer now it does not later.
    pub fn narrow(&mut self, core: usize, line: Line, rights: Rights) {
        if !self.timed {
            return;
        }
        let (core, lines) = (&mut self.cores[core], &mut self.hot[core].lines);
        let Some(way) = core.data.find(line) else { return };
        let slot = core.data.slot(way);
        if slot < crate::line_table::ENTRIES && lines.holds(slot, physical_line(line)) {
            let entry = lines.entry(slot);
            if !rights.read {
                entry.read_tag = INVALID;
            }
            if !rights.write {
                entry.write_tag = INVALID;
            }
            entry.readable_words = rights.readable_words;
            entry.writable_words = rights.writable_words;
        }
    }

    /// Charges an access for what it cost beyond the caches.
    pub fn charge(&mut self, core: usize, cycles: u64) {
        self.cores[core].charge(&mut self.hot[core], cycles);
    }
}

//! The memory system's services for transactions: it shows walks before they happen, reports evictions, and narrows the
//! accesses that the line table answers by itself. It does not know the sets of transactions.

use super::{MemorySystem, Moment};
use crate::cache::{Line, line_of, physical_line};
use crate::fault::Access;
use crate::line_table::{INVALID, Rights};
use crate::ram::{PAGE_SHIFT, RAM_BASE};
use crate::translation::{MODE_BARE, WalkerAccess, find_leaf};

impl MemorySystem {
    /// The walker's reads and writes for an access; none if the translation is cached. Changes no state.
    pub fn walk_steps(&self, core: usize, address: u64, access: Access) -> Vec<WalkerAccess> {
        let state = &self.cores[core];
        let is_known = match access {
            Access::Fetch => state.context.mode() == MODE_BARE,
            _ => state.find_translation(address, access).is_some(),
        };
        let mut steps = Vec::new();
        if !is_known {
            // The translation itself will report an invalid address.
            let _ = find_leaf(&self.ram, &state.context, address, access, |step| steps.push(step));
        }
        steps
    }

    /// Sets whether the memory system notes the lines that leave a full first-level data cache.
    pub fn set_noting_evictions(&mut self, noting: bool) {
        self.notes_evictions = noting;
        if !noting {
            self.evictions.clear();
        }
    }

    /// Notes that a line left a core's first-level data cache, if one did.
    #[cold]
    #[inline(never)]
    pub(super) fn note_eviction(&mut self, core: usize, victim: Option<Line>) {
        self.evictions.extend(victim.map(|victim| (core, victim)));
    }

    /// True if there are noted evictions that [`MemorySystem::take_evictions`] has not taken yet.
    #[inline]
    pub fn has_evictions(&self) -> bool {
        !self.evictions.is_empty()
    }

    /// Takes the noted evictions, in order: a core, and a line that left its first-level data cache.
    pub fn take_evictions(&mut self) -> Vec<(usize, Line)> {
        std::mem::take(&mut self.evictions)
    }

    /// Notes that memory at a physical address changes without an access. Either a rollback restores an old word, or
    /// the line table and the caches take no part, as in the functional gear while a transaction is live.
    pub fn note_change(&mut self, physical: u64) {
        self.note_store(((physical - RAM_BASE) >> PAGE_SHIFT) as usize);
    }

    /// Charges a store to RAM by its physical address, as a walker's are, between two runs of ops: the line table gets no
    /// entry, and the store does not queue for its line.
    pub fn touch_store(&mut self, core: usize, physical: u64) {
        self.note_change(physical);
        if self.timed {
            self.touch_data(core, line_of(physical), true, Moment { ahead_cycles: 0, paid_cycles: None });
        }
    }

    /// Narrows a core's line table to `rights` for a line. Rights that it does not have now are not added.
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

    /// Charges the part of an access's cost that does not come from the caches.
    pub fn charge(&mut self, core: usize, cycles: u64) {
        self.cores[core].charge(&mut self.hot[core], cycles);
    }
}

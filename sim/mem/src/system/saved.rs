//! Saving and restoring a memory system, and its invariants between two accesses.
//!
//! A restored state comes from a file, so it is not trusted: [`MemorySystem::restore`] accepts only states that the
//! memory system can reach by itself, as far as indices, host addresses and coherence are concerned.

use super::{Core, MemorySystem, Model, PAGE_HAS_CODE, PAGE_TOUCHED, PAGE_WRITE_MAPPED};
use crate::contention::SavedQueues;
use crate::hot::HotState;
use crate::line_table::{INVALID, LineTable, NO_LINE};
use serde::{Deserialize, Serialize};

/// The part of a [`MemorySystem`] that a snapshot needs besides RAM.
#[derive(Serialize, Deserialize)]
pub struct SavedMemory {
    timed: bool,
    hot: Vec<HotState>,
    cores: Vec<Core>,
    perturbation: u64,
    pub(super) queues: SavedQueues,
    /// Indices of the touched pages of RAM. A snapshot contains pages that hold only zeroes nowhere else.
    touched_pages: Vec<u32>,
}

/// The reason why a saved state cannot belong to this memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the caches of {found} cores instead of {expected}")]
    Cores { found: usize, expected: usize },
    #[error("page {page}, which was touched, lies outside its RAM")]
    Page { page: u32 },
    #[error("{what}")]
    Queues { what: &'static str },
    #[error("core {core}: {what}")]
    Core { core: usize, what: &'static str },
}

/// Gives the error `what`, which describes the problem, unless the condition holds.
pub(crate) fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

impl SavedMemory {
    /// Checks that the state has the sizes of a board. The caller must do this before it allocates memory for that
    /// board: a state of the right sizes is itself as long as they require.
    ///
    /// # Errors
    /// [`StateError`] names the difference.
    pub fn check_sizes(&self, model: &Model, cores: usize) -> Result<(), StateError> {
        for found in [self.cores.len(), self.hot.len()] {
            if found != cores {
                return Err(StateError::Cores { found, expected: cores });
            }
        }
        for (core, state) in self.cores.iter().enumerate() {
            state.check_sizes(model).map_err(|what| StateError::Core { core, what })?;
        }
        Ok(())
    }
}

impl MemorySystem {
    /// The state besides RAM.
    pub fn save(&self) -> SavedMemory {
        SavedMemory {
            timed: self.timed,
            hot: self.hot.clone(),
            cores: self.cores.clone(),
            perturbation: self.perturbation,
            queues: self.queues.save(),
            touched_pages: self.touched_pages().map(|page| page as u32).collect(),
        }
    }

    /// Takes over a saved state, into a new memory system.
    ///
    /// # Errors
    /// [`StateError`] if the state does not fit this memory system, which must then not be used any further.
    pub fn restore(&mut self, saved: SavedMemory) -> Result<(), StateError> {
        saved.check_sizes(&self.model, self.cores.len())?;
        self.timed = saved.timed;
        self.perturbation = saved.perturbation;
        self.hot = saved.hot;
        self.cores = saved.cores;
        for (hot, core) in self.hot.iter_mut().zip(&mut self.cores) {
            hot.user = core.context.user_tag();
            core.second.find_recent();
        }
        let lines = self.holders.len();
        self.queues.restore(saved.queues, lines, saved.timed).map_err(|what| StateError::Queues { what })?;
        for (core, state) in self.cores.iter().enumerate() {
            let at = |what| StateError::Core { core, what };
            state.second.check(lines).map_err(at)?;
            for line in state.second.lines() {
                self.holders.insert(line, core);
            }
        }
        // Write rights matter only once a page's code is decoded again. Until then every page counts as mapped for
        // writing.
        for flags in &mut self.page_flags {
            *flags |= PAGE_WRITE_MAPPED;
        }
        for page in saved.touched_pages {
            if page as usize >= self.page_flags.len() {
                return Err(StateError::Page { page });
            }
            self.flag_touched(page as usize, 0);
        }
        self.check()?;
        for hot in &mut self.hot {
            hot.lines.rebase(saved.timed, &self.ram);
        }
        Ok(())
    }

    /// Checks the invariants between two accesses.
    ///
    /// # Errors
    /// [`StateError`] names the first core with a broken invariant.
    pub fn check(&self) -> Result<(), StateError> {
        debug_assert_eq!(self.touched_pages().count(), self.touched_pages_count());
        for core in 0..self.cores.len() {
            self.check_core(core).map_err(|what| StateError::Core { core, what })?;
        }
        Ok(())
    }

    fn check_core(&self, core: usize) -> Result<(), &'static str> {
        let state = &self.cores[core];
        let lines = self.holders.len();
        state.second.check(lines)?;
        for (line, shared) in state.second.lines_and_sharing() {
            let holders = self.holders.get(line);
            ensure(holders >> core & 1 == 1, "the line's holders do not name this core")?;
            ensure(shared || holders == 1 << core, "a line that is not shared has another holder")?;
        }
        state.data.check(lines)?;
        for (line, writable) in state.data.lines() {
            let owned = state.second.state(line).ok_or("the first-level cache holds more than the second")?;
            ensure(writable == owned.is_modified(), "a line is writable in only one of the two caches")?;
        }
        state.fetch.check(lines)?;
        state.data_translations.check()?;
        state.fetch_translations.check()?;
        for page in state.fetch_translations.pages() {
            ensure(self.ram.contains(page, 1), "a fetch translation leads out of RAM")?;
        }
        if let Some(line) = state.reservation {
            ensure((line as usize) < lines, "the reserved line is outside RAM")?;
            ensure(!self.timed || state.second.state(line).is_some(), "the reserved line is not cached")?;
        }
        self.check_line_table(state, &self.hot[core].lines)
    }

    fn check_line_table(&self, state: &Core, lines: &LineTable) -> Result<(), &'static str> {
        for (slot, entry) in lines.entries().iter().enumerate() {
            if entry.line == NO_LINE {
                continue;
            }
            let physical = entry.physical_address(self.timed).filter(|physical| self.ram.contains(*physical, 1));
            let physical = physical.ok_or("an entry of the line table leads out of RAM")?;
            if self.timed {
                let way = state.data.find(crate::cache::line_of(physical));
                let way = way.ok_or("the line table holds more than the first-level cache")?;
                ensure(state.data.slot(way) == slot, "the first-level cache does not know a line's entry")?;
                let writes = entry.write_tag != INVALID;
                ensure(!writes || state.data.is_writable(way), "the line table writes a line that is not modified")?;
                if entry.is_withheld() {
                    continue;
                }
                let is_waited_for = self.queues.is_waited_for(crate::cache::line_of(physical));
                ensure(!is_waited_for, "the line table answers for a line that somebody waits for")?;
            }
            let address =
                entry.virtual_address(self.timed, slot).ok_or("an entry of the line table has impossible tags")?;
            if state.context.is_bare() {
                ensure(address == physical, "an entry of the line table translates although translation is off")?;
            } else {
                ensure(
                    state.data_translations.find(address).is_some(),
                    "an entry of the line table has no translation",
                )?;
            }
            let page = ((physical - crate::ram::RAM_BASE) >> crate::ram::PAGE_SHIFT) as usize;
            let writes = entry.write_tag != INVALID;
            ensure(
                !writes || self.page_flags[page] & PAGE_HAS_CODE == 0,
                "a page with decoded code can be written to",
            )?;
            // A store that hits the line table does not mark its page as touched.
            ensure(!writes || self.page_flags[page] & PAGE_TOUCHED != 0, "a writable page is not marked as touched")?;
        }
        Ok(())
    }
}

impl Core {
    fn check_sizes(&self, model: &Model) -> Result<(), &'static str> {
        self.data.check_size(model.data)?;
        self.fetch.check_size(model.instruction)?;
        self.second.check_size(model.second)?;
        for translations in [&self.data_translations, &self.fetch_translations] {
            ensure(translations.len() == model.translation_entries, "a translation cache of another size")?;
        }
        Ok(())
    }
}

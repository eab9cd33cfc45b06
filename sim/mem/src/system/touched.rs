//! The pages of RAM that may hold values other than zero.

use super::{MemorySystem, PAGE_HAS_CODE, PAGE_TOUCHED};

impl MemorySystem {
    /// Prepares a page for a write: its decoded code becomes stale, and it may no longer be all zeroes.
    pub(super) fn note_store(&mut self, page: usize) {
        if self.page_flags[page] & PAGE_HAS_CODE != 0 {
            self.page_flags[page] &= !PAGE_HAS_CODE;
            self.stale_code.push(page as u32);
        }
        self.flag_touched(page, 0);
    }

    /// Marks a page as touched, and sets other flags of it.
    #[inline]
    pub(super) fn flag_touched(&mut self, page: usize, others: u8) {
        let flags = &mut self.page_flags[page];
        self.touched += usize::from(*flags & PAGE_TOUCHED == 0);
        *flags |= PAGE_TOUCHED | others;
    }

    /// The pages that may hold values other than zero, in order.
    pub fn touched_pages(&self) -> impl Iterator<Item = usize> + '_ {
        let touched = |(page, flags): (usize, &u8)| (flags & PAGE_TOUCHED != 0).then_some(page);
        self.page_flags.iter().enumerate().filter_map(touched)
    }

    /// Their number, which the machine asks for often, and which is therefore kept.
    pub fn touched_pages_count(&self) -> usize {
        self.touched
    }
}

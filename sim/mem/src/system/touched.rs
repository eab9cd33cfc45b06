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
    pub fn touched_pages(&self) -> TouchedPages<'_> {
        TouchedPages { flags: self.page_flags.iter().enumerate(), left: self.touched }
    }
}

/// The touched pages by index. The machine asks for their number often, so the number is kept.
pub struct TouchedPages<'a> {
    flags: std::iter::Enumerate<std::slice::Iter<'a, u8>>,
    left: usize,
}

impl Iterator for TouchedPages<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let (page, _) = self.flags.find(|(_, flags)| **flags & PAGE_TOUCHED != 0)?;
        self.left -= 1;
        Some(page)
    }

    fn count(self) -> usize {
        self.left
    }
}

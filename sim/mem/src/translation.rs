//! Address translation: Sv39 and Sv48 page-table walks and the translation caches
//! (privileged specification, "Supervisor-Level ISA", sections on Sv39 and Sv48).
//!
//! The walker sets accessed and dirty bits itself (Svadu), and no invalid entry is ever cached (Svvptc).

mod check;
#[cfg(test)]
mod tests;

use crate::fault::{Access, FaultKind};
use crate::line_table::USER;
use crate::ram::{PAGE_SHIFT, Ram};
use serde::{Deserialize, Serialize};

pub const VALID: u64 = 1;
pub const READ: u64 = 2;
pub const WRITE: u64 = 4;
pub const EXECUTE: u64 = 8;
pub const USER_PAGE: u64 = 16;
pub const ACCESSED: u64 = 64;
pub const DIRTY: u64 = 128;

/// `satp.MODE` values that the machine implements.
pub const MODE_BARE: u64 = 0;
pub const MODE_SV39: u64 = 8;
pub const MODE_SV48: u64 = 9;

/// The state that determines how a hart's addresses are translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    pub satp: u64,
    /// The hart is in user mode.
    pub user: bool,
    /// `sstatus.SUM`: supervisor mode may load from and store to user pages.
    pub supervisor_user_memory: bool,
    /// `sstatus.MXR`: executable pages may be loaded from.
    pub make_executable_readable: bool,
}

impl Context {
    #[inline]
    pub fn mode(&self) -> u64 {
        self.satp >> 60
    }

    /// The tag bit of the accesses that the line table answers in this context.
    #[inline]
    pub fn user_tag(&self) -> u64 {
        if self.user { USER } else { 0 }
    }

    pub fn is_bare(&self) -> bool {
        self.mode() == MODE_BARE
    }

    /// True if a leaf with these flags permits the access.
    #[inline]
    pub fn permits(&self, flags: u64, access: Access) -> bool {
        if flags & USER_PAGE != 0 {
            if !self.user && (access == Access::Fetch || !self.supervisor_user_memory) {
                return false;
            }
        } else if self.user {
            return false;
        }
        match access {
            Access::Fetch => flags & EXECUTE != 0,
            Access::Load => flags & READ != 0 || self.make_executable_readable && flags & EXECUTE != 0,
            Access::Store => flags & WRITE != 0,
        }
    }
}

/// A leaf that a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The physical address of the 4 KiB page that holds the address.
    pub page: u64,
    /// The low eight bits of the entry.
    pub flags: u64,
    /// 0 for a 4 KiB page, 1 for 2 MiB, ...
    pub level: u8,
}

/// One read or write of a page-table entry by the walker, for the cache model.
#[derive(Clone, Copy, Debug)]
pub struct WalkerAccess {
    pub address: u64,
    pub store: bool,
    /// The bits that a store sets.
    pub bits: u64,
}

/// Walks the page table for `address` and sets the leaf's accessed and dirty bits. The walker's own accesses go to
/// `walked`.
pub fn walk(
    ram: &Ram,
    context: &Context,
    address: u64,
    access: Access,
    mut walked: impl FnMut(WalkerAccess),
) -> Result<Leaf, FaultKind> {
    let mut store_address = None;
    let (leaf, entry) = find_leaf(ram, context, address, access, |step| {
        store_address = step.store.then_some(step.address);
        walked(step);
    })?;
    if let Some(store_address) = store_address {
        ram.write(store_address, 8, entry);
    }
    Ok(leaf)
}

/// Walks the page table for `address` without writing to it. `walked` gets the accesses that a walk makes, in order. If
/// the leaf's accessed or dirty bit must change, the last access is the store that sets it. Returns the leaf and the
/// entry with these bits set.
pub fn find_leaf(
    ram: &Ram,
    context: &Context,
    address: u64,
    access: Access,
    mut walked: impl FnMut(WalkerAccess),
) -> Result<(Leaf, u64), FaultKind> {
    let levels = if context.mode() == MODE_SV48 { 4 } else { 3 };
    let width = PAGE_SHIFT + 9 * levels;
    if ((address << (64 - width)) as i64 >> (64 - width)) as u64 != address {
        return Err(FaultKind::Page);
    }
    let mut table = (context.satp & ((1 << 44) - 1)) << PAGE_SHIFT;
    for level in (0..levels).rev() {
        let shift = PAGE_SHIFT + 9 * level;
        let entry_address = table + ((address >> shift & 511) << 3);
        if !ram.contains(entry_address, 8) {
            return Err(FaultKind::Access);
        }
        walked(WalkerAccess { address: entry_address, store: false, bits: 0 });
        let entry = ram.read(entry_address, 8);
        // Bits 54 to 63 are reserved: Svnapot and Svpbmt are not implemented.
        if entry & VALID == 0 || entry & (READ | WRITE) == WRITE || entry >> 54 != 0 {
            return Err(FaultKind::Page);
        }
        let physical = (entry >> 10 & ((1 << 44) - 1)) << PAGE_SHIFT;
        if entry & (READ | EXECUTE) == 0 {
            if entry & (ACCESSED | DIRTY | USER_PAGE) != 0 {
                return Err(FaultKind::Page);
            }
            table = physical;
            continue;
        }
        let offset_mask = (1u64 << shift) - 1;
        if physical & offset_mask != 0 || !context.permits(entry, access) {
            return Err(FaultKind::Page);
        }
        let wanted = entry | ACCESSED | if access == Access::Store { DIRTY } else { 0 };
        if wanted != entry {
            walked(WalkerAccess { address: entry_address, store: true, bits: wanted & !entry });
        }
        let page = physical | address & offset_mask & (u64::MAX << PAGE_SHIFT);
        return Ok((Leaf { page, flags: wanted & 0xff, level: level as u8 }, wanted));
    }
    Err(FaultKind::Page)
}

/// The physical page of a virtual address, whatever the permissions, without setting any bit. For the debugger and
/// other observers.
pub fn peek(ram: &Ram, context: &Context, address: u64) -> Option<u64> {
    if context.mode() == MODE_BARE {
        return Some(address & u64::MAX << PAGE_SHIFT);
    }
    let levels = if context.mode() == MODE_SV48 { 4 } else { 3 };
    let mut table = (context.satp & ((1 << 44) - 1)) << PAGE_SHIFT;
    for level in (0..levels).rev() {
        let shift = PAGE_SHIFT + 9 * level;
        let entry_address = table + ((address >> shift & 511) << 3);
        if !ram.contains(entry_address, 8) {
            return None;
        }
        let entry = ram.read(entry_address, 8);
        if entry & VALID == 0 {
            return None;
        }
        let physical = (entry >> 10 & ((1 << 44) - 1)) << PAGE_SHIFT;
        if entry & (READ | EXECUTE) != 0 {
            return Some(physical | address & ((1u64 << shift) - 1) & (u64::MAX << PAGE_SHIFT));
        }
        table = physical;
    }
    None
}

/// An entry of a translation cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TranslationEntry {
    /// Virtual page number shifted left by one, with the page's user bit; [`NO_TAG`] when empty.
    pub tag: u64,
    /// Physical address of the page, with the leaf's flags in the low bits.
    pub page_and_flags: u64,
    pub level: u8,
    /// For fetches only: the index of the page's decoded code, if there is any. It belongs to an accelerator, so it is
    /// not saved.
    #[serde(skip)]
    pub code: u32,
}

/// The tag of an empty entry.
pub const NO_TAG: u64 = u64::MAX;

const EMPTY: TranslationEntry = TranslationEntry { tag: NO_TAG, page_and_flags: 0, level: 0, code: 0 };

impl TranslationEntry {
    #[inline]
    pub fn page(&self) -> u64 {
        self.page_and_flags & u64::MAX << PAGE_SHIFT
    }

    #[inline]
    pub fn flags(&self) -> u64 {
        self.page_and_flags & 0xff
    }
}

/// A direct-mapped translation cache without address-space numbers: a write of `satp` empties it.
#[derive(Clone, Serialize, Deserialize)]
pub struct TranslationCache {
    entries: Vec<TranslationEntry>,
}

impl TranslationCache {
    /// A cache of `entries` entries, a power of two.
    pub fn new(entries: usize) -> TranslationCache {
        assert!(entries.is_power_of_two());
        TranslationCache { entries: vec![EMPTY; entries] }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.tag == NO_TAG)
    }

    #[inline]
    pub fn slot(&self, address: u64) -> usize {
        (address >> PAGE_SHIFT) as usize & (self.entries.len() - 1)
    }

    #[inline]
    pub fn entry(&mut self, slot: usize) -> &mut TranslationEntry {
        &mut self.entries[slot]
    }

    /// The entry for the virtual page of `address`, whatever its permissions.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&TranslationEntry> {
        let entry = &self.entries[self.slot(address)];
        (entry.tag >> 1 == address >> PAGE_SHIFT && entry.tag != NO_TAG).then_some(entry)
    }

    /// Fills the entry of `address` and returns the virtual address of the page that it replaced, if any.
    pub fn fill(&mut self, address: u64, leaf: Leaf) -> Option<u64> {
        let slot = self.slot(address);
        let user = u64::from(leaf.flags & USER_PAGE != 0);
        let tag = address >> PAGE_SHIFT << 1 | user;
        let old = self.entries[slot].tag;
        self.entries[slot] =
            TranslationEntry { tag, page_and_flags: leaf.page | leaf.flags, level: leaf.level, code: 0 };
        (old != NO_TAG && old >> 1 != tag >> 1).then_some(old >> 1 << PAGE_SHIFT)
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
    }

    /// Drops the translations that an `sfence.vma` of `address` names: its page, and every piece of a larger page
    /// around it. `dropped` gets the virtual pages.
    pub fn drop_address(&mut self, address: u64, mut dropped: impl FnMut(u64)) {
        for entry in &mut self.entries {
            if entry.tag == NO_TAG {
                continue;
            }
            let page = entry.tag >> 1;
            if page >> (9 * entry.level) == address >> PAGE_SHIFT >> (9 * entry.level) {
                *entry = EMPTY;
                dropped(page << PAGE_SHIFT);
            }
        }
    }

    /// Removes the indices of decoded code for every page.
    pub fn forget_code(&mut self) {
        for entry in &mut self.entries {
            entry.code = 0;
        }
    }
}

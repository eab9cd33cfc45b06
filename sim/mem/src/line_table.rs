//! The line table reduces most accesses to one comparison.
//!
//! It is a small direct-mapped table for each hart, keyed by virtual line (virtual page in the functional gear). A
//! matching entry answers translation, permission, alignment and first-level cache hit at once. The table is always a
//! subset of the translation cache and, in the timed gear, of the first-level data cache, so a hit changes no other
//! state. Its entries are also the reference bits of the cache's replacement (see `cache.rs`), so they are part of the
//! machine's state and are saved.

mod check;

use crate::ram::{LINE_SHIFT, PAGE_SHIFT};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of entries: a power of two, and at least the number of lines in a page.
pub const ENTRIES: usize = 512;
/// A tag that matches no access: an access leaves bits 4 and 5 of its tag zero.
pub const INVALID: u64 = u64::MAX;
/// A number that no line has.
pub const NO_LINE: u32 = u32::MAX;
/// The tag bit of entries for pages that user mode may access.
pub const USER: u64 = 8;

/// The table answers accesses to all of its lines.
pub const BY_LINE: u8 = 0;
/// The table answers accesses only to the words that are in the sets of the hart's transaction.
pub const BY_WORD: u8 = 1;
/// The table answers no access, so that the machine sees every one.
pub const NOTHING: u8 = 2;
/// Words are four bytes long.
pub const WORD_SHIFT: u32 = 2;
/// The words of an aligned access of eight bytes, shifted to the first of them; every shorter one touches one word.
const DOUBLE: u16 = 0b11;

/// One entry.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(32))]
pub struct Entry {
    /// Virtual line address with [`USER`], or [`INVALID`]. A matching load may proceed.
    pub read_tag: u64,
    /// The same for stores.
    pub write_tag: u64,
    /// Host address minus virtual address. Host addresses differ from run to run, so it is recomputed, not saved.
    #[serde(skip)]
    pub addend: u64,
    /// The physical line number (page number in the functional gear).
    pub line: u32,
    /// Words of the line in a set of the hart's active transaction, which its loads may access. A snapshot omits them:
    /// the owner of the sets restores them.
    #[serde(skip)]
    pub readable_words: u16,
    /// Words in the transaction's write set, which its stores may access.
    #[serde(skip)]
    pub writable_words: u16,
}

const EMPTY: Entry =
    Entry { read_tag: INVALID, write_tag: INVALID, addend: 0, line: NO_LINE, readable_words: 0, writable_words: 0 };

/// The accesses that transactions allow a hart to make through an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Loads outside a transaction.
    pub read: bool,
    /// Stores outside a transaction.
    pub write: bool,
    /// See [`Entry::readable_words`].
    pub readable_words: u16,
    /// See [`Entry::writable_words`].
    pub writable_words: u16,
}

impl Rights {
    /// The rights to a line of which no transaction has a word.
    pub const ALL: Rights = Rights { read: true, write: true, readable_words: 0, writable_words: 0 };
}

/// The granularity of a gear: lines where caches are modelled, pages where they are not.
#[inline]
pub const fn shift(timed: bool) -> u32 {
    if timed { LINE_SHIFT } else { PAGE_SHIFT }
}

/// The tag that an access of `size_bytes` must match: line address, user bit, and low bits that match only if the
/// access is naturally aligned.
#[inline(always)]
pub fn access_tag(timed: bool, address: u64, size_bytes: u64, user: u64) -> u64 {
    address & (u64::MAX << shift(timed) | (size_bytes - 1)) | user
}

/// The words that an aligned access needs in a set, shifted to the first of them.
#[inline(always)]
pub const fn words_needed(size_bytes: u64) -> u16 {
    if size_bytes == 8 { DOUBLE } else { 1 }
}

/// The table of one hart.
#[derive(Clone)]
#[repr(C)]
pub struct LineTable {
    entries: [Entry; ENTRIES],
}

impl Default for LineTable {
    fn default() -> LineTable {
        LineTable { entries: [EMPTY; ENTRIES] }
    }
}

impl Serialize for LineTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries.iter())
    }
}

impl<'de> Deserialize<'de> for LineTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LineTable, D::Error> {
        let entries = Vec::deserialize(deserializer)?.try_into();
        Ok(LineTable { entries: entries.map_err(|_| D::Error::custom("a line table of another size"))? })
    }
}

impl LineTable {
    #[inline(always)]
    pub fn slot(timed: bool, address: u64) -> usize {
        (address >> shift(timed)) as usize & (ENTRIES - 1)
    }

    /// The rule of a hit: the host address of an access that may proceed without the memory system. `answers` is one of
    /// [`BY_LINE`], [`BY_WORD`] and [`NOTHING`], and `user` is [`USER`] or 0.
    ///
    /// A hit changes no state. Arguments that the caller knows at compile time (all but the address) cost nothing.
    #[inline(always)]
    pub fn hit(&self, timed: bool, answers: u8, store: bool, address: u64, size_bytes: u64, user: u64) -> Option<u64> {
        if answers == NOTHING {
            return None;
        }
        let entry = self.matching(timed, store, address, size_bytes, user)?;
        let words = if store { entry.writable_words } else { entry.readable_words };
        let needed = words_needed(size_bytes);
        let is_member = answers != BY_WORD || words >> (address >> WORD_SHIFT & 15) & needed == needed;
        is_member.then(|| address.wrapping_add(entry.addend))
    }

    /// The entry whose tag an access matches: the entry has its line or page and allows this kind of access, and the
    /// access is aligned.
    #[inline(always)]
    pub fn matching(&self, timed: bool, store: bool, address: u64, size_bytes: u64, user: u64) -> Option<&Entry> {
        let entry = &self.entries[LineTable::slot(timed, address)];
        let tag = if store { entry.write_tag } else { entry.read_tag };
        (tag == access_tag(timed, address, size_bytes, user)).then_some(entry)
    }

    #[inline]
    pub fn entry(&mut self, slot: usize) -> &mut Entry {
        &mut self.entries[slot]
    }

    /// True if the entry in `slot` belongs to this physical line.
    #[inline]
    pub fn holds(&self, slot: usize, line: u32) -> bool {
        self.entries[slot].line == line
    }

    pub fn clear(&mut self) {
        self.entries.fill(EMPTY);
    }

    #[inline]
    pub fn drop_slot(&mut self, slot: usize) {
        let entry = &mut self.entries[slot];
        *entry = EMPTY;
    }

    /// Drops every entry of the virtual page that holds `address`.
    pub fn drop_page(&mut self, timed: bool, address: u64) {
        let page = address >> PAGE_SHIFT;
        let first = LineTable::slot(timed, page << PAGE_SHIFT);
        let count = 1 << (PAGE_SHIFT - shift(timed));
        for entry in &mut self.entries[first..first + count] {
            // An invalid tag has the page number of the last page of the address space; dropping an empty entry does no
            // harm.
            if entry.read_tag >> PAGE_SHIFT == page || entry.write_tag >> PAGE_SHIFT == page {
                *entry = EMPTY;
            }
        }
    }

    /// Revokes the right to store from every entry of a physical page, and leaves the right to load.
    pub fn revoke_writes_to_page(&mut self, timed: bool, physical_page: u32) {
        for entry in &mut self.entries {
            if entry.line != NO_LINE && entry.line >> (PAGE_SHIFT - shift(timed)) == physical_page {
                entry.write_tag = INVALID;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_aligned_accesses_of_the_same_privilege_only() {
        let tag = access_tag(true, 0x1040, 1, 0);
        assert_eq!(access_tag(true, 0x1048, 8, 0), tag);
        assert_ne!(access_tag(true, 0x1049, 8, 0), tag, "misaligned");
        assert_eq!(access_tag(true, 0x1049, 1, 0), tag);
        assert_ne!(access_tag(true, 0x1048, 8, USER), tag, "other privilege");
        assert_ne!(access_tag(true, u64::MAX, 8, USER), INVALID);
        assert_ne!(access_tag(false, u64::MAX, 1, USER), INVALID);
    }

    #[test]
    fn a_hit_needs_the_word_in_a_set_where_the_table_answers_by_word() {
        let mut table = LineTable::default();
        let tag = access_tag(true, 0x5000, 1, USER);
        let entry = Entry {
            read_tag: tag,
            write_tag: tag,
            addend: 0x100,
            readable_words: 0b1_1100,
            writable_words: 0b1_0000,
            ..EMPTY
        };
        *table.entry(LineTable::slot(true, 0x5000)) = entry;
        assert_eq!(table.hit(true, BY_LINE, false, 0x5000, 8, USER), Some(0x5100));
        assert_eq!(table.hit(true, BY_WORD, false, 0x5000, 8, USER), None);
        assert_eq!(table.hit(true, BY_WORD, false, 0x5008, 8, USER), Some(0x5108));
        assert_eq!(table.hit(true, BY_WORD, false, 0x500c, 4, USER), Some(0x510c));
        assert_eq!(table.hit(true, BY_WORD, true, 0x500c, 4, USER), None);
        assert_eq!(table.hit(true, BY_WORD, true, 0x5010, 4, USER), Some(0x5110));
        assert_eq!(table.hit(true, BY_WORD, true, 0x5013, 1, USER), Some(0x5113));
        assert_eq!(table.hit(true, BY_WORD, false, 0x5010, 8, USER), None, "the second word is in no set");
        assert_eq!(table.hit(true, BY_WORD, true, 0x5010, 8, USER), None, "the second word is in no set");
        assert_eq!(table.hit(true, NOTHING, false, 0x5010, 4, USER), None);
        assert_eq!(table.hit(true, BY_LINE, false, 0x5004, 8, USER), None, "misaligned");
        assert_eq!(table.hit(true, BY_LINE, false, 0x5000, 8, 0), None, "other privilege");
    }

    #[test]
    fn a_page_is_dropped_whole_and_alone() {
        let mut table = LineTable::default();
        for (address, line) in [(0x5000, 1), (0x5fc0, 2), (0x6000, 3)] {
            let tag = access_tag(true, address, 1, USER);
            *table.entry(LineTable::slot(true, address)) = Entry { read_tag: tag, line, ..EMPTY };
        }
        table.drop_page(true, 0x5123);
        assert!(!table.holds(LineTable::slot(true, 0x5000), 1));
        assert!(!table.holds(LineTable::slot(true, 0x5fc0), 2));
        assert!(table.holds(LineTable::slot(true, 0x6000), 3));
    }
}

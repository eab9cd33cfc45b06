//! The directory: which transactions have which words of a line in their sets. The coherence protocol would ask every
//! cache for this.

use crate::Line;
use crate::transaction::Slot;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// The words of one line that are in the sets of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub slot: Slot,
    pub read: u16,
    pub write: u16,
    pub overflowed: bool,
}

pub(crate) type Members = SmallVec<[Member; 2]>;

/// The lines of all sets. Code only looks lines up and never iterates, so the order of the map has no effect. The
/// members of a line are ordered by slot, so a directory rebuilt from the logs is equal to the original.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    lines: HashMap<Line, Members, BuildHasherDefault<AddressHasher>>,
}

impl Directory {
    #[inline]
    pub fn members(&self, line: Line) -> &[Member] {
        self.lines.get(&line).map_or(&[], |members| members)
    }

    /// The words of `line` that `slot` has; true if the member is new.
    #[inline]
    pub fn member(&mut self, line: Line, slot: Slot) -> (&mut Member, bool) {
        let members = self.lines.entry(line).or_default();
        let index = members.iter().position(|member| member.slot >= slot).unwrap_or(members.len());
        let is_new = members.get(index).is_none_or(|member| member.slot != slot);
        if is_new {
            members.insert(index, Member { slot, read: 0, write: 0, overflowed: false });
        }
        (&mut members[index], is_new)
    }

    /// As [`Directory::member`], but `None` if another transaction has a word of the line.
    #[inline]
    pub fn member_alone(&mut self, line: Line, slot: Slot) -> Option<(&mut Member, bool)> {
        let members = self.lines.entry(line).or_default();
        let is_new = members.is_empty();
        if is_new {
            members.push(Member { slot, read: 0, write: 0, overflowed: false });
        }
        match members.as_mut_slice() {
            [only] if only.slot == slot => Some((only, is_new)),
            _ => None,
        }
    }

    pub fn remove(&mut self, line: Line, slot: Slot) {
        if let Entry::Occupied(mut members) = self.lines.entry(line) {
            members.get_mut().retain(|member| member.slot != slot);
            if members.get().is_empty() {
                members.remove();
            }
        }
    }
}

/// Hashes addresses and line numbers (Fibonacci hashing: Knuth, "The Art of Computer Programming", volume 3, section
/// 6.4), for maps that code only looks things up in. It is the same in every run.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The map uses the low bits and the seven highest bits; the product's best bits are in its middle and at its
        // top.
        self.0 = product ^ product >> 32;
    }
}

//! Which transactions have which words of a line in their sets: what the coherence protocol would ask every cache.

use crate::Line;
use crate::transaction::Slot;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// What one transaction has of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub slot: Slot,
    pub read: u8,
    pub write: u8,
    pub overflowed: bool,
}

pub(crate) type Members = SmallVec<[Member; 2]>;

/// The lines of all sets. Only looked up, never walked through, so its order has no effect; the members of a line are in the
/// order of their slots, so that a directory that is made anew from the logs is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    lines: HashMap<Line, Members, BuildHasherDefault<AddressHasher>>,
}

impl Directory {
    #[inline]
    pub fn members(&self, line: Line) -> &[Member] {
        self.lines.get(&line).map_or(&[], |members| members)
    }

    /// What `slot` has of `line`; new when it had nothing.
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

    /// The same, where no other transaction has anything of the line.
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

/// Spreads addresses and numbers of lines (Fibonacci hashing: Knuth, "The Art of Computer Programming", volume 3, section 6.4), for
/// tables that are only looked up. It is the same in every run.
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
        // The table goes by the low bits and by the highest seven; the product's best bits are in its middle and above.
        self.0 = product ^ product >> 32;
    }
}

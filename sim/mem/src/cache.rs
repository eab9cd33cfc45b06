//! Tags and states of the caches. Data is always in RAM: these structures decide only what an access costs and which
//! other cores must learn of it.
//!
//! Lines are numbered from the beginning of RAM. Replacement in the first-level data cache is CLOCK (second chance),
//! and its reference bits are the live entries of the line table: the line table holds the lines that the hart uses,
//! and a hit there must not touch the cache. The second level is true LRU.

mod check;

use crate::aligned::{Aligned, Plain};
use crate::line_table::LineTable;
use crate::prefetch::prefetch;
use crate::ram::{LINE_BYTES, LINE_SHIFT, PAGE_BYTES, RAM_BASE};
use serde::{Deserialize, Serialize};

/// Size and shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    pub sets: usize,
    pub ways: usize,
}

impl Geometry {
    /// The way that follows `way` in the set, cyclically. (A remainder would cost more than the rest of a miss.)
    #[inline]
    fn after(self, way: u8) -> u8 {
        if usize::from(way) + 1 == self.ways { 0 } else { way + 1 }
    }
}

/// A line's number, counted from the beginning of RAM. Below 2^30 (64 GiB).
pub type Line = u32;

/// The physical number of a line, as the line table stores it.
#[inline]
pub fn physical_line(line: Line) -> u32 {
    line + (RAM_BASE >> LINE_SHIFT) as u32
}

/// The line that holds a physical address inside RAM.
#[inline]
pub fn line_of(address: u64) -> Line {
    ((address - RAM_BASE) >> LINE_SHIFT) as Line
}

const NO_LINE: u32 = u32::MAX;
const NO_SLOT: u16 = u16::MAX;

/// The place in a set of the way that `is_wanted` is true for; no two ways hold the same line.
#[inline(always)]
fn place_in<T: Copy>(set: &[T], is_wanted: impl Fn(T) -> bool) -> Option<usize> {
    // The common numbers of ways are written out, so that the search has no loop.
    match set.len() {
        4 => search(&set[..4], is_wanted),
        8 => search(&set[..8], is_wanted),
        _ => search(set, is_wanted),
    }
}

/// Looks at every way without a branch on what it holds: the host cannot guess where in a set a line is found.
#[inline(always)]
fn search<T: Copy>(set: &[T], is_wanted: impl Fn(T) -> bool) -> Option<usize> {
    let mut place = usize::MAX;
    for (index, way) in set.iter().enumerate() {
        place = if is_wanted(*way) { index } else { place };
    }
    (place != usize::MAX).then_some(place)
}

/// A way of a first-level data cache: the line, whether it may be stored to, and the slot of the line table that last
/// held it. All are in one word, so that a set fits into one line of the host's cache.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
struct DataWay(u64);

// SAFETY: a plain number of eight bytes.
unsafe impl Plain for DataWay {}

const WRITABLE: u64 = 1 << 32;
const SLOT_SHIFT: u32 = 48;
const NO_DATA: DataWay = DataWay(NO_LINE as u64 | (NO_SLOT as u64) << SLOT_SHIFT);

impl DataWay {
    fn new(line: Line, writable: bool) -> DataWay {
        DataWay(u64::from(line) | (NO_SLOT as u64) << SLOT_SHIFT | if writable { WRITABLE } else { 0 })
    }

    fn line(self) -> Line {
        self.0 as u32
    }

    fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    fn set_writable(&mut self, writable: bool) {
        self.0 = self.0 & !WRITABLE | if writable { WRITABLE } else { 0 };
    }

    /// The slot of the line table that last held the line, or a number that is no slot.
    fn slot(self) -> usize {
        (self.0 >> SLOT_SHIFT) as usize
    }

    fn set_slot(&mut self, slot: usize) {
        self.0 = self.0 & !(u64::MAX << SLOT_SHIFT) | (slot as u64) << SLOT_SHIFT;
    }

    /// The slot of the line table that holds the line now.
    fn live_slot(self, table: &LineTable) -> Option<usize> {
        let slot = self.slot();
        (slot != usize::from(NO_SLOT) && table.holds(slot, physical_line(self.line()))).then_some(slot)
    }
}

/// A first-level data cache.
#[derive(Clone, Serialize, Deserialize)]
pub struct DataCache {
    geometry: Geometry,
    ways: Aligned<DataWay>,
    /// The CLOCK hand of each set.
    hands: Vec<u8>,
    /// The line that the last fill replaced; none if the way was empty.
    #[serde(skip)]
    victim: Line,
}

impl DataCache {
    pub fn new(geometry: Geometry) -> DataCache {
        let ways = Aligned::new(NO_DATA, geometry.sets * geometry.ways);
        DataCache { geometry, ways, hands: vec![0; geometry.sets], victim: NO_LINE }
    }

    fn set_of(&self, line: Line) -> usize {
        line as usize & (self.geometry.sets - 1)
    }

    /// The index of the way that holds `line`.
    #[inline]
    pub fn find(&self, line: Line) -> Option<usize> {
        let first = self.set_of(line) * self.geometry.ways;
        let set = &self.ways[first..first + self.geometry.ways];
        place_in(set, |way| way.line() == line).map(|way| first + way)
    }

    #[inline]
    pub fn is_writable(&self, way: usize) -> bool {
        self.ways[way].is_writable()
    }

    pub fn set_writable(&mut self, way: usize, writable: bool) {
        self.ways[way].set_writable(writable);
    }

    /// Records that the line table is about to hold the line of `way` in `slot`, and removes its entry in any other
    /// slot.
    #[inline]
    pub fn set_slot(&mut self, way: usize, slot: usize, table: &mut LineTable) {
        if let Some(old) = self.ways[way].live_slot(table).filter(|old| *old != slot) {
            table.drop_slot(old);
        }
        self.ways[way].set_slot(slot);
    }

    /// Replaces a line that the line table does not hold by `line`. Returns the way.
    #[inline]
    pub fn fill(&mut self, line: Line, writable: bool, table: &mut LineTable) -> usize {
        let set = self.set_of(line);
        let first = set * self.geometry.ways;
        let ways = &mut self.ways[first..first + self.geometry.ways];
        let mut hand = self.hands[set];
        loop {
            let index = usize::from(hand);
            hand = self.geometry.after(hand);
            let way = &mut ways[index];
            // The line table's entry is the way's reference bit. Removing the entry gives the way its second chance.
            match way.live_slot(table) {
                Some(slot) => {
                    table.drop_slot(slot);
                    way.set_slot(usize::from(NO_SLOT));
                }
                None => {
                    self.victim = std::mem::replace(way, DataWay::new(line, writable)).line();
                    self.hands[set] = hand;
                    return first + index;
                }
            }
        }
    }

    /// The line that the last fill replaced, if any.
    pub fn victim(&self) -> Option<Line> {
        (self.victim != NO_LINE).then_some(self.victim)
    }

    /// Removes `line`, also from the line table.
    pub fn drop_line(&mut self, line: Line, table: &mut LineTable) {
        if let Some(way) = self.find(line) {
            if let Some(slot) = self.ways[way].live_slot(table) {
                table.drop_slot(slot);
            }
            self.ways[way] = NO_DATA;
        }
    }

    /// Keeps the line table from answering for `line`, which stays in use.
    pub fn withhold(&mut self, line: Line, table: &mut LineTable) {
        if let Some(slot) = self.find(line).and_then(|way| self.ways[way].live_slot(table)) {
            let entry = table.entry(slot);
            entry.read_tag = crate::line_table::INVALID;
            entry.write_tag = crate::line_table::INVALID;
        }
    }

    /// Revokes the right to store to `line`.
    pub fn revoke_write(&mut self, line: Line, table: &mut LineTable) {
        if let Some(way) = self.find(line) {
            self.set_writable(way, false);
            if let Some(slot) = self.ways[way].live_slot(table) {
                table.entry(slot).write_tag = crate::line_table::INVALID;
            }
        }
    }
}

/// A first-level instruction cache. It is not snooped; `fence.i` empties it. Replacement is first in, first out.
#[derive(Clone, Serialize, Deserialize)]
pub struct FetchCache {
    geometry: Geometry,
    tags: Aligned<u32>,
    hands: Vec<u8>,
    /// A direct-mapped accelerator, always a subset of `tags`.
    recent: Vec<u32>,
}

/// The length of a fetch cache's accelerator: a power of two, and at least the number of lines in a page.
const RECENT_LINES: usize = 256;

impl FetchCache {
    pub fn new(geometry: Geometry) -> FetchCache {
        FetchCache {
            geometry,
            tags: Aligned::new(NO_LINE, geometry.sets * geometry.ways),
            hands: vec![0; geometry.sets],
            recent: vec![NO_LINE; RECENT_LINES],
        }
    }

    /// True if the accelerator shows that `line` is cached.
    #[inline]
    pub fn hits(&self, line: Line) -> bool {
        self.recent[line as usize & (RECENT_LINES - 1)] == line
    }

    /// The part of the accelerator that may show the lines of the page that begins with `first_line`. It stays in its place.
    #[inline]
    pub fn recent_lines(&self, first_line: Line) -> *const Line {
        const { assert!(RECENT_LINES as u64 * LINE_BYTES >= PAGE_BYTES) };
        &raw const self.recent[first_line as usize & (RECENT_LINES - 1)]
    }

    /// Looks `line` up and inserts it if it is missing. True if it was cached.
    pub fn access(&mut self, line: Line) -> bool {
        let set = line as usize & (self.geometry.sets - 1);
        let first = set * self.geometry.ways;
        let hit = place_in(&self.tags[first..first + self.geometry.ways], |tag| tag == line).is_some();
        if !hit {
            let way = first + usize::from(self.hands[set]);
            self.hands[set] = self.geometry.after(self.hands[set]);
            let victim = std::mem::replace(&mut self.tags[way], line);
            let recent = &mut self.recent[victim as usize & (RECENT_LINES - 1)];
            if *recent == victim {
                *recent = NO_LINE;
            }
        }
        self.recent[line as usize & (RECENT_LINES - 1)] = line;
        hit
    }

    pub fn clear(&mut self) {
        self.tags.fill(NO_LINE);
        self.recent.fill(NO_LINE);
    }
}

/// The state of a line in a second-level cache; a line that is not cached is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Shared = 1,
    Exclusive = 2,
    Modified = 3,
}

impl State {
    fn from_bits(bits: u32) -> Option<State> {
        match bits & 3 {
            1 => Some(State::Shared),
            2 => Some(State::Exclusive),
            3 => Some(State::Modified),
            _ => None,
        }
    }
}

/// A private, unified second-level cache. It includes the first-level data cache. The ways of a set are ordered by use,
/// the most recent first.
#[derive(Clone, Serialize, Deserialize)]
pub struct SecondCache {
    geometry: Geometry,
    /// `line << 2 | state`; 0 is empty.
    tags: Aligned<u32>,
    /// The first tag of each set once more. Most accesses are to the line that its set accessed last, and find it here:
    /// in an eighth of the host's memory, and without a change of the order. A snapshot omits it.
    #[serde(skip)]
    recent: Aligned<u32>,
}

impl SecondCache {
    pub fn new(geometry: Geometry) -> SecondCache {
        let tags = Aligned::new(0, geometry.sets * geometry.ways);
        SecondCache { geometry, tags, recent: Aligned::new(0, geometry.sets) }
    }

    /// Computes the part that a snapshot omits, for a cache whose sizes were checked.
    pub(crate) fn find_recent(&mut self) {
        self.recent = Aligned::new(0, self.geometry.sets);
        for (recent, set) in self.recent.iter_mut().zip(self.tags.chunks_exact(self.geometry.ways)) {
            *recent = set[0];
        }
    }

    #[inline(always)]
    fn set_of(&self, line: Line) -> usize {
        line as usize & (self.geometry.sets - 1)
    }

    /// The ways of a set, and its first tag once more.
    #[inline(always)]
    fn set(&mut self, set: usize) -> (&mut [u32], &mut u32) {
        let first = set * self.geometry.ways;
        (&mut self.tags[first..first + self.geometry.ways], &mut self.recent[set])
    }

    /// Brings what an access to `line` looks at first into the host's caches.
    #[inline(always)]
    pub fn prefetch(&self, line: Line) {
        prefetch(self.recent.as_ptr().wrapping_add(self.set_of(line)));
    }

    /// The cached lines.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.tags.iter().filter(|tag| **tag != 0).map(|tag| tag >> 2)
    }

    /// The tag of `line`, or 0.
    #[inline]
    fn tag(&self, line: Line) -> u32 {
        let set = self.set_of(line);
        let recent = self.recent[set];
        if holds(recent, line) {
            return recent;
        }
        let first = set * self.geometry.ways;
        let ways = &self.tags[first..first + self.geometry.ways];
        place_in(ways, |tag| holds(tag, line)).map_or(0, |way| ways[way])
    }

    /// Changes the tag of `line`, if it is cached, in its place.
    #[inline]
    fn replace(&mut self, line: Line, tag: u32) {
        let (ways, recent) = self.set(self.set_of(line));
        if holds(*recent, line) {
            (ways[0], *recent) = (tag, tag);
        } else if let Some(way) = place_in(ways, |tag| holds(tag, line)) {
            ways[way] = tag;
        }
    }

    /// The state of `line`, which becomes the most recent of its set.
    #[inline]
    pub fn access(&mut self, line: Line) -> Option<State> {
        let recent = self.recent[self.set_of(line)];
        if holds(recent, line) { State::from_bits(recent) } else { self.access_less_recent(line) }
    }

    #[inline(never)]
    fn access_less_recent(&mut self, line: Line) -> Option<State> {
        let (ways, recent) = self.set(self.set_of(line));
        let way = place_in(ways, |tag| holds(tag, line))?;
        *recent = ways[way];
        bring_forward(ways, way);
        State::from_bits(*recent)
    }

    /// Sets the state of the line at the front of its set, which was accessed last.
    pub fn set_recent_state(&mut self, line: Line, state: State) {
        let tag = line << 2 | state as u32;
        let (ways, recent) = self.set(self.set_of(line));
        (ways[0], *recent) = (tag, tag);
    }

    /// The state of `line`, without changing the order of use.
    #[inline]
    pub fn state(&self, line: Line) -> Option<State> {
        State::from_bits(self.tag(line))
    }

    pub fn set_state(&mut self, line: Line, state: State) {
        self.replace(line, line << 2 | state as u32);
    }

    pub fn drop_line(&mut self, line: Line) {
        self.replace(line, 0);
    }

    /// Inserts `line`; returns the line that it replaced, and whether that line was modified.
    pub fn fill(&mut self, line: Line, state: State) -> Option<(Line, bool)> {
        let (ways, recent) = self.set(self.set_of(line));
        let way = ways.iter().position(|tag| *tag == 0).unwrap_or(ways.len() - 1);
        let victim = ways[way];
        bring_forward(ways, way);
        *recent = line << 2 | state as u32;
        ways[0] = *recent;
        State::from_bits(victim).map(|state| (victim >> 2, state == State::Modified))
    }
}

/// True if a tag of a second-level cache is that of `line`, in any state.
#[inline(always)]
fn holds(tag: u32, line: Line) -> bool {
    tag >> 2 == line && tag & 3 != 0
}

/// Moves the way with this index to the front of its set.
#[inline(always)]
fn bring_forward(set: &mut [u32], way: usize) {
    // As in `place_in`.
    match set.len() {
        8 => rotate(&mut set[..8], way),
        _ => set[..=way].rotate_right(1),
    }
}

/// Rotates the ways up to this one, without a branch on which one it is.
#[inline(always)]
fn rotate(set: &mut [u32], way: usize) {
    let tag = set[way];
    for index in (1..set.len()).rev() {
        set[index] = if index <= way { set[index - 1] } else { set[index] };
    }
    set[0] = tag;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_table::{Entry, INVALID};

    const GEOMETRY: Geometry = Geometry { sets: 2, ways: 2 };

    #[test]
    fn second_level_replaces_the_least_recently_used() {
        let mut cache = SecondCache::new(GEOMETRY);
        assert_eq!(cache.fill(0, State::Modified), None);
        assert_eq!(cache.fill(2, State::Shared), None);
        assert_eq!(cache.access(0), Some(State::Modified));
        assert_eq!(cache.fill(4, State::Exclusive), Some((2, false)));
        assert_eq!(cache.fill(6, State::Exclusive), Some((0, true)));
        assert_eq!(cache.state(1), None);
    }

    #[test]
    fn a_line_in_use_gets_a_second_chance() {
        let mut cache = DataCache::new(GEOMETRY);
        let mut table = LineTable::default();
        let way = cache.fill(0, false, &mut table);
        cache.fill(2, false, &mut table);
        cache.set_slot(way, 7, &mut table);
        let entry = table.entry(7);
        *entry = Entry { read_tag: 0, write_tag: INVALID, line: physical_line(0), ..*entry };
        cache.fill(4, false, &mut table);
        assert_eq!(cache.victim(), Some(2));
        assert!(cache.find(0).is_some() && cache.find(2).is_none(), "0 was referenced, so 2 went");
        assert!(!table.holds(7, physical_line(0)), "the second chance took the reference");
        cache.fill(6, false, &mut table);
        assert!(cache.find(0).is_none());
    }

    #[test]
    fn the_recent_lines_stay_a_subset_of_the_fetch_cache() {
        let mut cache = FetchCache::new(GEOMETRY);
        assert!(!cache.access(0));
        assert!(cache.hits(0) && cache.access(0));
        cache.access(2);
        cache.access(4);
        assert!(!cache.hits(0), "0 was first in, so first out");
        assert!(!cache.access(0));
    }
}

//! Invariants of the caches by themselves, for caches read from a snapshot.

use super::{DataCache, FetchCache, Geometry, Line, NO_LINE, NO_SLOT, RECENT_LINES, SecondCache, State};
use crate::line_table::ENTRIES;
use crate::system::ensure;

/// Checks the lines that a cache of this geometry holds by way, in a machine with `lines` lines of RAM.
fn check_lines(geometry: Geometry, held: impl Iterator<Item = Option<Line>>, lines: usize) -> Result<(), &'static str> {
    let mut set = Vec::with_capacity(geometry.ways);
    for (way, line) in held.enumerate() {
        if way % geometry.ways == 0 {
            set.clear();
        }
        let Some(line) = line else { continue };
        ensure((line as usize) < lines, "a cached line is outside RAM")?;
        ensure(line as usize & (geometry.sets - 1) == way / geometry.ways, "a cached line is in another line's set")?;
        ensure(!set.contains(&line), "a line is cached twice")?;
        set.push(line);
    }
    Ok(())
}

fn check_hands(geometry: Geometry, hands: &[u8]) -> Result<(), &'static str> {
    ensure(hands.iter().all(|hand| usize::from(*hand) < geometry.ways), "a replacement hand points past its set")
}

impl DataCache {
    pub(crate) fn check_size(&self, geometry: Geometry) -> Result<(), &'static str> {
        let fits = self.geometry == geometry && self.ways.len() == geometry.sets * geometry.ways;
        ensure(fits && self.hands.len() == geometry.sets, "a first-level data cache of another size")
    }

    /// Checks every index, in a machine with this many lines of RAM.
    pub(crate) fn check(&self, lines: usize) -> Result<(), &'static str> {
        let held = self.ways.iter().map(|way| (way.line() != NO_LINE).then_some(way.line()));
        check_lines(self.geometry, held, lines)?;
        check_hands(self.geometry, &self.hands)?;
        let mut slots = self.ways.iter().map(|way| way.slot());
        ensure(
            slots.all(|slot| slot < ENTRIES || slot == usize::from(NO_SLOT)),
            "a cached line names no entry of the line table",
        )
    }

    /// The cached lines, and whether each may be stored to.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, bool)> + '_ {
        self.ways.iter().filter(|way| way.line() != NO_LINE).map(|way| (way.line(), way.is_writable()))
    }

    /// The slot of the line table that last held the line of a way.
    pub(crate) fn slot(&self, way: usize) -> usize {
        self.ways[way].slot()
    }
}

impl FetchCache {
    pub(crate) fn check_size(&self, geometry: Geometry) -> Result<(), &'static str> {
        let fits = self.geometry == geometry && self.tags.len() == geometry.sets * geometry.ways;
        ensure(
            fits && self.hands.len() == geometry.sets && self.recent.len() == RECENT_LINES,
            "a first-level instruction cache of another size",
        )
    }

    /// Checks every index, in a machine with this many lines of RAM.
    pub(crate) fn check(&self, lines: usize) -> Result<(), &'static str> {
        check_lines(self.geometry, self.tags.iter().map(|tag| (*tag != NO_LINE).then_some(*tag)), lines)?;
        check_hands(self.geometry, &self.hands)?;
        let mut recent = self.recent.iter().enumerate().filter(|(_, line)| **line != NO_LINE);
        let is_cached = |line: Line| {
            let first = (line as usize & (self.geometry.sets - 1)) * self.geometry.ways;
            self.tags[first..first + self.geometry.ways].contains(&line)
        };
        ensure(
            recent.all(|(place, line)| *line as usize & (RECENT_LINES - 1) == place && is_cached(*line)),
            "a recent line of code is not cached",
        )
    }
}

impl State {
    pub(crate) fn is_modified(self) -> bool {
        self == State::Modified
    }
}

impl SecondCache {
    pub(crate) fn check_size(&self, geometry: Geometry) -> Result<(), &'static str> {
        let fits = self.geometry == geometry && self.tags.len() == geometry.sets * geometry.ways;
        ensure(fits, "a second-level cache of another size")
    }

    /// Checks every index, in a machine with this many lines of RAM.
    pub(crate) fn check(&self, lines: usize) -> Result<(), &'static str> {
        ensure(self.tags.iter().all(|tag| *tag == 0 || tag & 3 != 0), "a cached line has no state")?;
        let first = self.tags.chunks_exact(self.geometry.ways).map(|set| &set[0]);
        ensure(self.recent.iter().eq(first), "the most recent line of a set is another one")?;
        check_lines(self.geometry, self.tags.iter().map(|tag| (*tag != 0).then_some(tag >> 2)), lines)
    }

    /// The cached lines, and whether other caches may hold them too.
    pub(crate) fn lines_and_sharing(&self) -> impl Iterator<Item = (Line, bool)> + '_ {
        self.tags.iter().filter(|tag| **tag != 0).map(|tag| (tag >> 2, tag & 3 == State::Shared as u32))
    }
}

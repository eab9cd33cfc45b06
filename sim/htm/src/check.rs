//! The isolation checker: follows every access by word, with the values that were seen, and says where transactions were not
//! isolated, not serializable or not undone.
//!
//! It knows nothing of the engine's sets, logs and directory, so that a fault in these does not hide itself. What it takes from
//! outside is only who made an access, and which transaction committed or rolled back. Commits are validated by value, as in
//! NOrec (Dalessandro, Spear and Scott, "NOrec: Streamlining STM by Abolishing Ownership Records", PPoPP 2010): a transaction
//! fits the order in which commits and non-transactional accesses happened when everything that it read is what is committed
//! at its commit.

mod violation;

pub use violation::{Observer, Violation, Writer};

use crate::directory::AddressHasher;
use crate::{LINE_WORDS, Line, Memory, Word, index_in_line, line_of};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

type Map<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

/// A word that a live transaction wrote.
#[derive(Clone, Copy, Debug)]
struct Uncommitted {
    id: u64,
    committed: u64,
    present: u64,
    pc: u64,
    /// The number of the access that wrote it first.
    since: u64,
}

/// What a transaction read of a word that it had not written.
#[derive(Clone, Copy, Debug)]
struct Seen {
    value: u64,
    pc: u64,
}

#[derive(Clone, Debug, Default)]
struct Footprint {
    reads: BTreeMap<Word, Seen>,
    writes: BTreeSet<Word>,
    /// A device wrote over a word of its.
    overwritten: Option<(Word, u64)>,
}

/// A line with an uncommitted word in it: what its other words hold, as far as somebody accessed them since. A rollback that
/// puts back more than its transaction wrote shows in them.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    uncommitted_words: u32,
    known: u8,
    present: [u64; LINE_WORDS as usize],
}

/// Follows a run. Values are whole words: an access to a part of one is reported with all of it.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    footprints: Map<u64, Footprint>,
    uncommitted: Map<Word, Uncommitted>,
    neighbours: Map<Line, Neighbours>,
    accesses: u64,
}

impl Checker {
    pub fn new() -> Checker {
        Checker::default()
    }

    /// Learns of transactions that were live before the checker was there: `written` has their id, a word that they wrote, and
    /// the value committed for it, as [`Engine::written_words`](crate::Engine::written_words) gives them. What they read before
    /// is not validated.
    pub fn adopt(&mut self, written: impl IntoIterator<Item = (u64, Word, u64)>, memory: &impl Memory) {
        for (id, word, committed) in written {
            self.enter(word, Uncommitted { id, committed, present: memory.load(word), pc: 0, since: self.accesses });
        }
    }

    /// Somebody read `value`. For a transaction that is from now on what must be committed when it commits.
    ///
    /// # Errors
    /// [`Violation::Uncommitted`] and [`Violation::Changed`].
    #[inline]
    pub fn read(&mut self, observer: Observer, word: Word, value: u64, pc: u64) -> Result<(), Violation> {
        self.test(observer, word, value, pc)?;
        let Observer::Transaction { id, .. } = observer else { return Ok(()) };
        if self.uncommitted.get(&word).is_none_or(|written| written.id != id) {
            let reads = &mut self.footprints.entry(id).or_default().reads;
            reads.entry(word).or_insert(Seen { value, pc });
        }
        Ok(())
    }

    /// Somebody saw `value` and does not depend on it: an `xtest` that answered that memory differs. It must be isolated, and its
    /// transaction may commit although the word changed since (section 2 has xtest for this).
    ///
    /// # Errors
    /// [`Violation::Uncommitted`] and [`Violation::Changed`].
    #[inline]
    pub fn test(&mut self, observer: Observer, word: Word, value: u64, pc: u64) -> Result<(), Violation> {
        self.accesses += 1;
        if self.footprints.is_empty() {
            return Ok(());
        }
        let id = observer.transaction_id();
        match self.uncommitted.get(&word) {
            Some(written) if written.id == id => {
                if value != written.present {
                    let expected = written.present;
                    return Err(Violation::Changed { observer, pc, word, seen: value, expected, known_pc: written.pc });
                }
            }
            // Uncommitted words are taken out of memory while a device looks.
            Some(written) if observer == Observer::Device && value == written.committed => return Ok(()),
            Some(written) => {
                let (writer, committed) = (self.writer(written), written.committed);
                return Err(Violation::Uncommitted { observer, pc, word, seen: value, committed, writer });
            }
            None => self.check_repeated(observer, word, value, pc)?,
        }
        self.note_present(word, value);
        Ok(())
    }

    /// Somebody wrote `new` over `old`.
    ///
    /// # Errors
    /// [`Violation::Overwritten`] and [`Violation::Changed`].
    #[inline]
    pub fn write(&mut self, observer: Observer, word: Word, old: u64, new: u64, pc: u64) -> Result<(), Violation> {
        self.accesses += 1;
        let is_transaction = matches!(observer, Observer::Transaction { .. });
        if self.footprints.is_empty() && !is_transaction {
            return Ok(());
        }
        let id = observer.transaction_id();
        match self.uncommitted.get_mut(&word) {
            Some(written) if written.id == id => {
                let (expected, known_pc) = (written.present, written.pc);
                if old != expected {
                    return Err(Violation::Changed { observer, pc, word, seen: old, expected, known_pc });
                }
                (written.present, written.pc) = (new, pc);
            }
            // Its bytes are in memory, beside the committed ones: uncommitted words were taken out for it. The transaction may
            // only roll back now, to what the device left.
            Some(written) if observer == Observer::Device => {
                written.committed = new;
                let id = written.id;
                self.footprints.entry(id).or_default().overwritten = Some((word, new));
            }
            Some(written) => {
                let written = *written;
                let (writer, committed) = (self.writer(&written), written.committed);
                return Err(Violation::Overwritten { observer, pc, word, new, committed, writer });
            }
            None if is_transaction => {
                self.check_repeated(observer, word, old, pc)?;
                self.enter(word, Uncommitted { id, committed: old, present: new, pc, since: self.accesses });
            }
            None => self.forgive_walker(id, word, old, new),
        }
        self.note_present(word, new);
        Ok(())
    }

    /// A transaction committed. What it wrote is in memory still.
    ///
    /// # Errors
    /// [`Violation::Order`] and [`Violation::Lost`].
    pub fn commit(&mut self, id: u64, memory: &impl Memory) -> Result<(), Violation> {
        let Some(footprint) = self.footprints.remove(&id) else { return Ok(()) };
        if let Some((word, new)) = footprint.overwritten {
            let written = self.uncommitted[&word];
            let (writer, committed) = (self.writer(&written), written.committed);
            return Err(Violation::Overwritten { observer: Observer::Device, pc: 0, word, new, committed, writer });
        }
        for (word, seen) in &footprint.reads {
            let written = self.uncommitted.get(word);
            let committed = written.map_or_else(|| memory.load(*word), |written| written.committed);
            if committed != seen.value {
                return Err(Violation::Order { id, pc: seen.pc, word: *word, seen: seen.value, committed });
            }
        }
        for word in &footprint.writes {
            let (written, found) = (self.uncommitted[word], memory.load(*word));
            if found != written.present {
                return Err(Violation::Lost { id, pc: written.pc, word: *word, written: written.present, found });
            }
        }
        self.leave(&footprint);
        Ok(())
    }

    /// A transaction lost, and its words are said to be back in memory.
    ///
    /// # Errors
    /// [`Violation::NotRestored`] and [`Violation::Clobbered`].
    pub fn rollback(&mut self, id: u64, memory: &impl Memory) -> Result<(), Violation> {
        let Some(footprint) = self.footprints.remove(&id) else { return Ok(()) };
        for word in &footprint.writes {
            let (written, found) = (self.uncommitted[word], memory.load(*word));
            if found != written.committed {
                let committed = written.committed;
                return Err(Violation::NotRestored { id, pc: written.pc, word: *word, found, committed });
            }
            self.note_present(*word, found);
        }
        for word in &footprint.writes {
            self.check_neighbours(id, line_of(*word), memory)?;
        }
        self.leave(&footprint);
        Ok(())
    }

    /// Words beside those that a transaction wrote hold what they held.
    fn check_neighbours(&self, id: u64, line: Line, memory: &impl Memory) -> Result<(), Violation> {
        let neighbours = &self.neighbours[&line];
        for word in crate::words_of(line, neighbours.known) {
            let (expected, found) = (neighbours.present[index_in_line(word)], memory.load(word));
            if found != expected && !self.uncommitted.contains_key(&word) {
                return Err(Violation::Clobbered { id, word, found, expected });
            }
        }
        Ok(())
    }

    /// A transaction sees one value of a word as long as it does not write to it.
    fn check_repeated(&self, observer: Observer, word: Word, value: u64, pc: u64) -> Result<(), Violation> {
        let Observer::Transaction { id, .. } = observer else { return Ok(()) };
        match self.footprints.get(&id).and_then(|footprint| footprint.reads.get(&word)) {
            Some(seen) if seen.value != value => {
                let (expected, known_pc) = (seen.value, seen.pc);
                Err(Violation::Changed { observer, pc, word, seen: value, expected, known_pc })
            }
            _ => Ok(()),
        }
    }

    /// A hart's walker does not end the hart's own transaction when it marks a page-table entry that the transaction read.
    fn forgive_walker(&mut self, id: u64, word: Word, old: u64, new: u64) {
        let seen = self.footprints.get_mut(&id).and_then(|footprint| footprint.reads.get_mut(&word));
        if let Some(seen) = seen.filter(|seen| seen.value == old) {
            seen.value = new;
        }
    }

    fn writer(&self, written: &Uncommitted) -> Writer {
        Writer { id: written.id, pc: written.pc, age_accesses: self.accesses - written.since }
    }

    fn note_present(&mut self, word: Word, value: u64) {
        if let Some(neighbours) = self.neighbours.get_mut(&line_of(word)) {
            neighbours.known |= 1 << index_in_line(word);
            neighbours.present[index_in_line(word)] = value;
        }
    }

    fn enter(&mut self, word: Word, written: Uncommitted) {
        self.uncommitted.insert(word, written);
        self.footprints.entry(written.id).or_default().writes.insert(word);
        self.neighbours.entry(line_of(word)).or_default().uncommitted_words += 1;
    }

    fn leave(&mut self, footprint: &Footprint) {
        for word in &footprint.writes {
            self.uncommitted.remove(word);
            let line = line_of(*word);
            let neighbours = self.neighbours.get_mut(&line).expect("a line with an uncommitted word has neighbours");
            neighbours.uncommitted_words -= 1;
            if neighbours.uncommitted_words == 0 {
                self.neighbours.remove(&line);
            }
        }
    }
}

#[cfg(test)]
mod tests;

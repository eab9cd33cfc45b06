//! The isolation checker follows every access by word, with the values that were seen. It reports a transaction that
//! was not isolated, not serializable or not undone.
//!
//! It does not use the engine's sets, logs and directory, so a fault in these cannot hide itself. Callers tell it only
//! which party made an access, and which transaction committed or rolled back. It validates commits by value, as NOrec
//! does (Dalessandro, Spear and Scott, "NOrec: Streamlining STM by Abolishing Ownership Records", PPoPP 2010): a
//! transaction fits the order of commits and non-transactional accesses if every value that it read is the committed
//! one when it commits.

mod violation;

pub use violation::{Observer, Violation, Writer};

use crate::deferred::DeferredAdd;
use crate::directory::AddressHasher;
use crate::policy::OutsideReads;
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
    /// The number of the access that first wrote the word.
    since: u64,
}

/// A transaction's first read of a word that it had not written.
#[derive(Clone, Copy, Debug)]
struct Seen {
    value: u64,
    pc: u64,
}

#[derive(Clone, Debug, Default)]
struct Footprint {
    reads: BTreeMap<Word, Seen>,
    writes: BTreeSet<Word>,
    /// Sums that the transaction is to add before it commits or touches the place otherwise, by address and size.
    adds: BTreeMap<(u64, u64), u64>,
    /// A word of the transaction that a device overwrote, and the device's value.
    overwritten: Option<(Word, u64)>,
}

/// A line with an uncommitted word: the values of its other words, as far as accesses since then showed them. They
/// reveal a rollback that restores more than its transaction wrote.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    uncommitted_words: u32,
    known: u16,
    present: [u64; LINE_WORDS as usize],
}

/// Follows a run. Values are whole words: an access to a part of a word is reported with the value of the whole word.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    outside_reads: OutsideReads,
    footprints: Map<u64, Footprint>,
    uncommitted: Map<Word, Uncommitted>,
    neighbours: Map<Line, Neighbours>,
    accesses: u64,
}

impl Checker {
    /// A checker of a machine whose harts read so outside transactions.
    pub fn new(outside_reads: OutsideReads) -> Checker {
        Checker { outside_reads, ..Checker::default() }
    }

    /// Takes over the transactions that were live before the checker existed. `written` gives a transaction's id, a
    /// word that it wrote, and the word's committed value, as [`Engine::written_words`](crate::Engine::written_words)
    /// yields them, and `deferred` what [`Engine::deferred_adds`](crate::Engine::deferred_adds) yields. Their earlier reads are not validated.
    pub fn adopt(
        &mut self,
        written: impl IntoIterator<Item = (u64, Word, u64)>,
        deferred: impl IntoIterator<Item = (u64, DeferredAdd)>,
        memory: &impl Memory,
    ) {
        for (id, add) in deferred {
            self.defer(id, &add);
        }
        for (id, word, committed) in written {
            self.enter(word, Uncommitted { id, committed, present: memory.load(word), pc: 0, since: self.accesses });
        }
    }

    /// An observer read `value`. If it is a transaction, this value must be the committed one when the transaction
    /// commits.
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

    /// An observer saw `value` but does not depend on it: an `xtest` that answered that memory differs. The value must
    /// be isolated, but the transaction may commit even if the word changes later (section 2 introduces xtest for this
    /// purpose).
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
            // The engine takes uncommitted words out of memory for a device's access, and a hart may read around them.
            Some(written) if self.reads_committed(observer) && value == written.committed => return Ok(()),
            Some(written) => {
                let (writer, committed) = (self.writer(written), written.committed);
                return Err(Violation::Uncommitted { observer, pc, word, seen: value, committed, writer });
            }
            None => self.check_repeated(observer, word, value, pc)?,
        }
        self.note_present(word, value);
        Ok(())
    }

    /// An observer wrote `new` over `old`.
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
            // Memory holds the device's bytes beside committed ones, because the engine took the uncommitted words out.
            // The transaction can only roll back now, to the value that the device left.
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

    /// A transaction executed an addition that is to be made later.
    pub fn defer(&mut self, id: u64, add: &DeferredAdd) {
        let sum = self.footprints.entry(id).or_default().adds.entry((add.address, add.size_bytes)).or_default();
        *sum = sum.wrapping_add(add.amount);
    }

    /// A deferred addition was made: the transaction put `new` where `old` was. The write itself is reported as any other.
    ///
    /// # Errors
    /// [`Violation::Added`] if there was nothing to add there, or another sum.
    pub fn add(&mut self, id: u64, add: &DeferredAdd, old: u64, new: u64) -> Result<(), Violation> {
        let adds = self.footprints.get_mut(&id).map(|footprint| &mut footprint.adds);
        let sum = adds.and_then(|adds| adds.remove(&(add.address, add.size_bytes)));
        match sum {
            Some(amount) if DeferredAdd { amount, ..*add }.apply(old) == new => Ok(()),
            _ => Err(Violation::Added { id, pc: add.pc, address: add.address, old, new, sum: sum.unwrap_or(0) }),
        }
    }

    /// A transaction committed. Its writes are still in memory.
    ///
    /// # Errors
    /// [`Violation::Order`], [`Violation::Lost`] and [`Violation::NotAdded`].
    pub fn commit(&mut self, id: u64, memory: &impl Memory) -> Result<(), Violation> {
        let Some(footprint) = self.footprints.remove(&id) else { return Ok(()) };
        if let Some(((address, _), sum)) = footprint.adds.first_key_value() {
            return Err(Violation::NotAdded { id, address: *address, sum: *sum });
        }
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

    /// A transaction lost, and the engine reports that its words are back in memory.
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

    /// The words beside those that a transaction wrote still have their values.
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

    /// A transaction sees one value of a word until it writes to it.
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

    /// Whether an observer sees the committed value of an uncommitted word, and nobody loses.
    fn reads_committed(&self, observer: Observer) -> bool {
        match observer {
            Observer::Device => true,
            Observer::Hart(_) => self.outside_reads == OutsideReads::Committed,
            Observer::Transaction { .. } | Observer::Walker { .. } => false,
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

//! The cost of the guest's critical sections, by call site and by lock. It comes from the hints of
//! `sim/abi/src/hint.rs` from `LOCK_SPIN_BEGIN` on, joined with the fate of the transactions around the sections.
//!
//! A section belongs to the innermost transaction that is active when it begins. If that commits, the section counts,
//! with the spins that ended in it. If it restarts, the section is dropped: its cycles are then those of the restart,
//! which belongs to the call site of the outermost section. A handler above a suspended transaction has transactions
//! and sections of its own, and the cycles between a suspension and the resumption do not belong to the suspended
//! transaction. So no cycle counts twice.
//!
//! The accounts have no effect on the run. All of them are bounded: call sites, locks, and the open sections of a hart.

mod acquire;
mod locks;
pub mod report;
mod saved;
mod site;
#[cfg(test)]
mod tests;
mod transactions;

use acquire::Attempts;
use concord_abi::hint::{Hint, SectionKind};
use concord_htm::AddressHasher;
use locks::LockTable;
use serde::{Deserialize, Serialize};
use site::{Restarts, Site};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
pub(crate) use transactions::Rollback;
use transactions::{Followed, Live};

/// The greatest number of open critical sections of a hart outside transactions, and of open spins. The limit keeps a
/// guest that only begins sections from filling the host's memory.
const OPEN_MAX: usize = 64;
/// The greatest number of critical sections that count in one transaction.
const TRANSACTION_SECTIONS_MAX: usize = 1 << 16;
/// The greatest number of spins without a lock, and of restarts, that wait for their section.
const WAITING_MAX: usize = 8;
/// The greatest number of call sites. A kernel has some hundreds.
const SITES_MAX: usize = 1 << 12;
/// Locks with open sections are counted by this many low bits of their hash, so that most entries need not check every
/// hart.
const OPEN_HASH_BITS: u32 = 12;

/// The cost of waiting for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpinCost {
    cycles: u64,
    /// Cycles from the first access to the lock's word; `cycles` begin with the spin.
    acquire_cycles: u64,
    test_loops: u64,
    test_and_set_loops: u64,
}

impl SpinCost {
    fn add(&mut self, other: &SpinCost) {
        self.cycles += other.cycles;
        self.acquire_cycles += other.acquire_cycles;
        self.test_loops += other.test_loops;
        self.test_and_set_loops += other.test_and_set_loops;
    }
}

/// An open spin.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spin {
    lock: u64,
    since: u64,
    /// The cycle of the first access to the lock's word.
    first_access: u64,
    /// The cycles that the hart had booked by then. The cycles that handlers book meanwhile do not belong to the spin.
    booked_before: u64,
    cost: SpinCost,
}

impl Spin {
    /// Lets the spin begin at `cycle`, unless it began later.
    fn begin_at(&mut self, cycle: u64) {
        self.since = self.since.max(cycle);
        self.first_access = self.first_access.max(cycle);
    }
}

/// An open section, or one that ended inside a transaction that is still open.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    lock: u64,
    /// The index of its call site.
    site: u32,
    /// Its begin; its length once it has ended.
    cycles: u64,
    is_open: bool,
    is_transactional: bool,
    /// The number of harts in sections of the lock at its begin.
    others: u8,
    /// The cost of waiting for it, if it had to wait.
    spin: Option<SpinCost>,
    /// Cycles from the first access to the lock's word to the begin, if it did not have to wait.
    acquire_cycles: u64,
}

impl Section {
    /// Cycles from the first access to the lock's word to the begin, those of spins without the lock included.
    fn acquire_cycles(&self) -> u64 {
        self.acquire_cycles + self.spin.map_or(0, |cost| cost.acquire_cycles)
    }
}

/// The open spins, sections and transactions of one hart.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct HartSections {
    open: Vec<Section>,
    spins: Vec<Spin>,
    attempts: Attempts,
    /// Spins that ended without the lock.
    abandoned: Vec<(u64, SpinCost)>,
    /// Transactions with something to count that run here or were suspended here, the innermost last.
    transactions: Vec<Live>,
    /// Restarts that no section has followed yet.
    restarts: Vec<Followed>,
    /// Restarts of transactions that ended before their first section.
    owed: Option<Box<Restarts>>,
    /// Spin and restart cycles that this hart has booked.
    booked_cycles: u64,
    /// Sections that count, by the hart on which they began or committed.
    sections_count: u64,
}

/// A spin that ended with the lock, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spun {
    pub lock: u64,
    pub since: u64,
}

/// A lock hint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockHint {
    pub hart: usize,
    pub code: u16,
    /// Virtual address.
    pub lock: u64,
    /// The register `ra`.
    pub call_site: u64,
    pub now: u64,
    /// The id of the hart's active transaction, or 0.
    pub transaction: u64,
}

/// The accounts of a run, from its beginning or from the last begin of the region of interest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CriticalSections {
    sites: Vec<Site>,
    /// The index of each site in `sites`. Code only looks sites up.
    #[serde(skip)]
    places: HashMap<SiteKey, u32, BuildHasherDefault<AddressHasher>>,
    locks: LockTable,
    harts: Vec<HartSections>,
    /// Open sections by the hash of their lock.
    #[serde(skip)]
    open_by_hash: Vec<u32>,
    /// Transactions that have ended, kept for the memory that they hold.
    #[serde(skip)]
    spare: Vec<Live>,
}

/// A call site, for one kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SiteKey(u64, SectionKind);

impl Hash for SiteKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Code is aligned, so the kinds fit between addresses.
        state.write_u64(self.0.rotate_left(3) ^ self.1 as u64);
    }
}

fn hash(lock: u64) -> usize {
    (lock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - OPEN_HASH_BITS)) as usize
}

impl CriticalSections {
    pub fn new(harts: usize) -> CriticalSections {
        let mut sections = CriticalSections {
            // Sections beyond SITES_MAX count at these sites, which have no address.
            sites: SectionKind::ALL.iter().map(|(kind, _)| Site::new(0, *kind)).collect(),
            places: HashMap::default(),
            locks: LockTable::default(),
            harts: vec![HartSections::default(); harts],
            open_by_hash: Vec::new(),
            spare: Vec::new(),
        };
        sections.index();
        sections
    }

    /// Builds the state again that is not saved.
    fn index(&mut self) {
        self.places = (0..).zip(&self.sites).map(|(place, site)| (SiteKey(site.address, site.kind), place)).collect();
        self.open_by_hash = vec![0; 1 << OPEN_HASH_BITS];
        for lock in self.harts.iter().flat_map(HartSections::open_locks) {
            self.open_by_hash[hash(lock)] += 1;
        }
    }

    /// Resets the counts to zero. Open sections and spins stay open, and count from their hart's clock on.
    pub fn reset(&mut self, cycle: impl Fn(usize) -> u64) {
        self.sites.iter_mut().for_each(Site::reset);
        self.locks = LockTable::default();
        for (index, hart) in self.harts.iter_mut().enumerate() {
            hart.restart_clocks(cycle(index));
        }
    }

    /// A lock hint. Returns the spin that it ended with the lock.
    #[inline]
    pub fn hint(&mut self, hint: &LockHint) -> Option<Spun> {
        match Hint::from_code(hint.code)? {
            Hint::SectionEnd => self.end(hint),
            known if known.begins_section() => return self.begin(hint, known == Hint::SectionTransactional),
            Hint::LockSpinBegin => self.spin(hint),
            Hint::LockTest => self.waited(hint, |cost| cost.test_loops += 1),
            Hint::LockTestAndSet => self.waited(hint, |cost| cost.test_and_set_loops += 1),
            Hint::LockSpinAbandoned => self.abandon(hint),
            _ => {}
        }
        None
    }

    /// The open spins of a hart, or those of its transaction if one is active.
    fn spins(&mut self, hint: &LockHint) -> &mut Vec<Spin> {
        match hint.transaction {
            0 => &mut self.harts[hint.hart].spins,
            id => &mut self.live(hint.hart, id).spins,
        }
    }

    /// A hart's atomic begins at a virtual address, which may be a lock's, after so many instructions of the hart.
    #[inline]
    pub fn atomic(&mut self, hart: usize, address: u64, now: u64, instructions: u64) {
        self.harts[hart].attempts.begin(address, now, instructions);
    }

    /// A hart's store-conditional failed, and the hart tries again at once.
    #[inline]
    pub fn atomic_goes_on(&mut self, hart: usize) {
        self.harts[hart].attempts.go_on();
    }

    fn spin(&mut self, hint: &LockHint) {
        let booked_before = self.harts[hint.hart].booked_cycles;
        let first_access = self.harts[hint.hart].attempts.take(hint.lock).unwrap_or(hint.now);
        let spins = self.spins(hint);
        if spins.iter().any(|spin| spin.lock == hint.lock) {
            return;
        }
        if spins.len() == OPEN_MAX {
            spins.remove(0);
        }
        spins.push(Spin { lock: hint.lock, since: hint.now, first_access, booked_before, cost: SpinCost::default() });
    }

    fn waited(&mut self, hint: &LockHint, count: impl FnOnce(&mut SpinCost)) {
        let spin = match hint.transaction {
            0 => self.harts[hint.hart].spins.last_mut(),
            id => self.find_live(hint.hart, id).and_then(|live| live.spins.last_mut()),
        };
        if let Some(spin) = spin {
            count(&mut spin.cost);
        }
    }

    /// Ends the spin on a lock, and the spins above it that never ended.
    fn end_spin(&mut self, hint: &LockHint) -> Option<(Spin, SpinCost)> {
        let booked_cycles = self.harts[hint.hart].booked_cycles;
        let spins = match hint.transaction {
            0 => &mut self.harts[hint.hart].spins,
            id => &mut self.find_live(hint.hart, id)?.spins,
        };
        let place = spins.iter().rposition(|spin| spin.lock == hint.lock)?;
        spins.truncate(place + 1);
        let spin = spins.pop()?;
        let booked_meanwhile = booked_cycles.saturating_sub(spin.booked_before);
        let cycles_since = |begin: u64| hint.now.saturating_sub(begin).saturating_sub(booked_meanwhile);
        let (cycles, acquire_cycles) = (cycles_since(spin.since), cycles_since(spin.first_access));
        let cost = SpinCost { cycles, acquire_cycles, ..spin.cost };
        Some((spin, cost))
    }

    fn abandon(&mut self, hint: &LockHint) {
        let Some((_, cost)) = self.end_spin(hint) else { return };
        match hint.transaction {
            0 => {
                self.harts[hint.hart].booked_cycles += cost.cycles;
                self.leave_spin(hint.hart, hint.lock, cost);
            }
            id => {
                let abandoned = &mut self.live(hint.hart, id).abandoned;
                if abandoned.len() < TRANSACTION_SECTIONS_MAX {
                    abandoned.push((hint.lock, cost));
                }
            }
        }
    }

    /// A spin ended without the lock. The hart's next section of the lock takes it over; if none does so in time, it
    /// belongs to no call site.
    fn leave_spin(&mut self, hart: usize, lock: u64, cost: SpinCost) {
        let abandoned = &mut self.harts[hart].abandoned;
        match abandoned.iter_mut().find(|(of, _)| *of == lock) {
            Some((_, sum)) => sum.add(&cost),
            None => abandoned.push((lock, cost)),
        }
        if abandoned.len() > WAITING_MAX {
            let (lock, cost) = abandoned.remove(0);
            let site = &mut self.sites[SectionKind::Spin as usize];
            site.add_spin(&cost);
            site.totals.acquire_cycles += cost.acquire_cycles;
            let totals = self.locks.of(lock);
            totals.spin_cycles += cost.cycles;
            totals.acquire_cycles += cost.acquire_cycles;
        }
    }

    fn begin(&mut self, hint: &LockHint, is_transactional: bool) -> Option<Spun> {
        let kind = SectionKind::of_code(hint.code)?;
        let site = self.place(hint.call_site, kind);
        let ended = self.end_spin(hint);
        let first_access = self.harts[hint.hart].attempts.take(hint.lock).filter(|_| ended.is_none());
        let acquire_cycles = first_access.map_or(0, |begin| hint.now.saturating_sub(begin));
        let (spun, mut spin) = match ended {
            Some((spin, cost)) => (Some(Spun { lock: spin.lock, since: spin.since }), Some(cost)),
            None => (None, None),
        };
        let abandoned = match hint.transaction {
            0 => &mut self.harts[hint.hart].abandoned,
            id => &mut self.live(hint.hart, id).abandoned,
        };
        let booked_now = spin.map_or(0, |cost| cost.cycles);
        while let Some(place) = abandoned.iter().position(|(lock, _)| *lock == hint.lock) {
            spin.get_or_insert_default().add(&abandoned.remove(place).1);
        }
        let others = self.others(hint.hart, hint.lock);
        let section = Section {
            lock: hint.lock,
            site,
            cycles: hint.now,
            is_open: true,
            is_transactional,
            others,
            spin,
            acquire_cycles,
        };
        match hint.transaction {
            0 => {
                self.harts[hint.hart].booked_cycles += booked_now;
                self.begin_outside(hint.hart, section);
            }
            id => self.begin_inside(hint.hart, id, section),
        }
        spun
    }

    fn begin_outside(&mut self, hart: usize, section: Section) {
        self.follow_restart(hart, section.site, section.lock);
        if !section.is_transactional {
            self.count_begin(hart, &section);
        }
        self.open_by_hash[hash(section.lock)] += 1;
        let open = &mut self.harts[hart].open;
        open.push(section);
        if open.len() > OPEN_MAX {
            let oldest = open.remove(0);
            self.open_by_hash[hash(oldest.lock)] -= 1;
        }
    }

    /// Counts a section, except for its length.
    fn count_begin(&mut self, hart: usize, section: &Section) {
        self.harts[hart].sections_count += 1;
        self.sites[section.site as usize].count(section);
        let totals = self.locks.of(section.lock);
        match section.is_transactional {
            true => totals.transactional += 1,
            false => totals.locked += 1,
        }
        totals.spin_cycles += section.spin.map_or(0, |cost| cost.cycles);
        totals.acquire_cycles += section.acquire_cycles();
        totals.concurrency_max = totals.concurrency_max.max(section.others + 1);
    }

    fn count_end(&mut self, section: &Section) {
        let totals = &mut self.sites[section.site as usize].totals;
        match section.is_transactional {
            true => totals.transactional_cycles += section.cycles,
            false => totals.hold_cycles += section.cycles,
        }
    }

    fn end(&mut self, hint: &LockHint) {
        if self.open_by_hash[hash(hint.lock)] == 0 {
            return;
        }
        if hint.transaction != 0
            && let Some(live) = self.find_live(hint.hart, hint.transaction)
            && let Some(section) = live.sections.iter_mut().rfind(|open| open.is_open && open.lock == hint.lock)
        {
            section.is_open = false;
            section.cycles = hint.now.saturating_sub(section.cycles);
            live.depth -= 1;
            self.open_by_hash[hash(hint.lock)] -= 1;
            return;
        }
        // A hart may release a lock that another one took, such as the run queue's across a switch.
        let harts = self.harts.len();
        for hart in [hint.hart].into_iter().chain((0..harts).filter(|hart| *hart != hint.hart)) {
            let open = &mut self.harts[hart].open;
            let Some(place) = open.iter().rposition(|section| section.lock == hint.lock) else { continue };
            let mut section = open.remove(place);
            section.cycles = hint.now.saturating_sub(section.cycles);
            self.open_by_hash[hash(hint.lock)] -= 1;
            if section.is_transactional {
                self.count_begin(hart, &section);
            }
            return self.count_end(&section);
        }
    }

    /// The number of other harts in sections of a lock.
    #[inline]
    fn others(&self, hart: usize, lock: u64) -> u8 {
        if self.open_by_hash[hash(lock)] == 0 {
            return 0;
        }
        let others = self.harts.iter().enumerate().filter(|(other, _)| *other != hart);
        others.filter(|(_, state)| state.open_locks().any(|open| open == lock)).count() as u8
    }

    /// The index of a call site.
    #[inline]
    fn place(&mut self, address: u64, kind: SectionKind) -> u32 {
        let key = SiteKey(address, kind);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.sites.len() == SITES_MAX {
            return kind as u32;
        }
        let place = self.sites.len() as u32;
        self.sites.push(Site::new(address, kind));
        self.places.insert(key, place);
        place
    }
}

impl HartSections {
    /// The locks of the hart's open sections.
    fn open_locks(&self) -> impl Iterator<Item = u64> {
        let inside = self.transactions.iter().flat_map(|live| &live.sections);
        self.open.iter().chain(inside).filter(|section| section.is_open).map(|section| section.lock)
    }

    /// Lets open sections and spins begin at `cycle`, unless they began later.
    fn restart_clocks(&mut self, cycle: u64) {
        let Self { open, spins, transactions, attempts, abandoned, restarts, owed, sections_count, .. } = self;
        *sections_count = 0;
        abandoned.clear();
        attempts.forget();
        restarts.clear();
        *owed = None;
        open.iter_mut().for_each(|section| section.cycles = section.cycles.max(cycle));
        spins.iter_mut().for_each(|spin| spin.begin_at(cycle));
        transactions.iter_mut().for_each(|live| live.restart_clocks(cycle));
    }
}

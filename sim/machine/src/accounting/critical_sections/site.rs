//! The cost of the sections of one call site.

use super::saved::COUNT_MAX;
use super::{Section, SpinCost};
use crate::accounting::origins::Origin;
use concord_abi::hint::SectionKind;
use concord_abi::htm::Cause;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The greatest number of locks recorded for one call site.
const SITE_LOCKS_MAX: usize = 256;
/// The number of nesting depths with counts of their own; the last one includes all beyond.
const DEPTHS_MAX: usize = 16;
/// The greatest number of places that force exclusivity recorded for one call site.
const EXCLUSIVE_PLACES_MAX: usize = 256;

/// Restarts of transactions, by the number of their `Cause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restarts {
    pub counts: [u64; 8],
    /// Cycles of the attempts that were lost, and of the back-off after them.
    pub cycles: [u64; 8],
    /// For exclusivity, by the number of sections that were open, from one on.
    pub exclusive_by_depth: Vec<u64>,
    /// For exclusivity, by the number of the `Origin` of the code that forced it.
    pub exclusive_by_origin: [u64; Origin::ALL.len()],
    /// For exclusivity, by the place that forced it.
    pub exclusive_at: BTreeMap<u64, u64>,
}

impl Restarts {
    pub fn count(&mut self, cause: Cause) {
        self.counts[cause as usize] += 1;
    }

    pub fn add_cycles(&mut self, cause: Cause, cycles: u64) {
        self.cycles[cause as usize] += cycles;
    }

    pub fn take_cycles(&mut self, cause: u8, cycles: u64) {
        let sum = &mut self.cycles[usize::from(cause)];
        *sum = sum.saturating_sub(cycles);
    }

    /// A restart for exclusivity with `depth` sections open, before the first of which nothing asks for it.
    pub fn count_exclusive(&mut self, depth: u32, place: u64, origin: Origin) {
        self.exclusive_by_origin[origin as usize] += 1;
        add_at(&mut self.exclusive_by_depth, (depth.max(1) as usize).min(DEPTHS_MAX) - 1, 1);
        self.add_place(place, 1);
    }

    fn add_place(&mut self, place: u64, count: u64) {
        if self.exclusive_at.len() < EXCLUSIVE_PLACES_MAX || self.exclusive_at.contains_key(&place) {
            *self.exclusive_at.entry(place).or_default() += count;
        }
    }

    pub fn cycles_total(&self) -> u64 {
        self.cycles.iter().sum()
    }

    pub fn add(&mut self, other: &Restarts) {
        for cause in 0..self.counts.len() {
            self.counts[cause] += other.counts[cause];
            self.cycles[cause] += other.cycles[cause];
        }
        for (depth, count) in other.exclusive_by_depth.iter().enumerate() {
            add_at(&mut self.exclusive_by_depth, depth, *count);
        }
        for (sum, count) in self.exclusive_by_origin.iter_mut().zip(other.exclusive_by_origin) {
            *sum += count;
        }
        other.exclusive_at.iter().for_each(|(place, count)| self.add_place(*place, *count));
    }

    pub fn is_possible(&self) -> bool {
        let numbers =
            self.counts.iter().chain(&self.cycles).chain(&self.exclusive_by_depth).chain(&self.exclusive_by_origin);
        numbers.chain(self.exclusive_at.values()).all(|count| *count < COUNT_MAX)
    }
}

fn add_at(numbers: &mut Vec<u64>, place: usize, count: u64) {
    if numbers.len() <= place {
        numbers.resize(place + 1, 0);
    }
    numbers[place] += count;
}

/// The cost of sections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Totals {
    pub locked: u64,
    pub contended: u64,
    pub spin: SpinCost,
    /// Of sections that held the lock.
    pub acquire_cycles: u64,
    pub hold_cycles: u64,
    pub transactional: u64,
    /// As `acquire_cycles`, of sections that committed as transactions.
    pub subscribe_cycles: u64,
    pub transactional_cycles: u64,
    pub wait_cycles: u64,
    pub restarts: Restarts,
    /// Restarts, by cause, after which the section held its lock.
    pub exclusive_after: [u64; 8],
    /// Entries by the number of other harts in sections of the lock.
    pub concurrency: Vec<u64>,
}

impl Totals {
    /// Cycles lost to synchronization.
    pub fn cost_cycles(&self) -> u64 {
        self.spin.cycles + self.restarts.cycles_total() + self.wait_cycles
    }

    pub fn add(&mut self, other: &Totals) {
        self.locked += other.locked;
        self.contended += other.contended;
        self.spin.add(&other.spin);
        self.acquire_cycles += other.acquire_cycles;
        self.subscribe_cycles += other.subscribe_cycles;
        self.hold_cycles += other.hold_cycles;
        self.transactional += other.transactional;
        self.transactional_cycles += other.transactional_cycles;
        self.wait_cycles += other.wait_cycles;
        self.restarts.add(&other.restarts);
        for (sum, count) in self.exclusive_after.iter_mut().zip(other.exclusive_after) {
            *sum += count;
        }
        for (others, count) in other.concurrency.iter().enumerate() {
            add_at(&mut self.concurrency, others, *count);
        }
    }

    pub fn is_possible(&self) -> bool {
        let numbers = [
            self.locked,
            self.contended,
            self.spin.cycles,
            self.spin.test_loops,
            self.spin.test_and_set_loops,
            self.acquire_cycles,
            self.subscribe_cycles,
            self.hold_cycles,
            self.transactional,
            self.transactional_cycles,
            self.wait_cycles,
        ];
        let numbers = numbers.iter().chain(&self.exclusive_after).chain(&self.concurrency);
        numbers.into_iter().all(|count| *count < COUNT_MAX) && self.restarts.is_possible()
    }
}

/// One call site, for one kind of lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Site {
    /// The return address of the lock function.
    pub address: u64,
    pub kind: SectionKind,
    pub totals: Totals,
    /// The different locks, in order, up to [`SITE_LOCKS_MAX`].
    pub locks: Vec<u64>,
    last_lock: Option<u64>,
}

impl Site {
    pub fn new(address: u64, kind: SectionKind) -> Site {
        Site { address, kind, totals: Totals::default(), locks: Vec::new(), last_lock: None }
    }

    pub fn reset(&mut self) {
        *self = Site::new(self.address, self.kind);
    }

    pub fn is_used(&self) -> bool {
        self.totals != Totals::default()
    }

    /// Counts a section, except for its length.
    #[inline]
    pub fn count(&mut self, section: &Section) {
        let (count, cycles) = match section.is_transactional {
            true => (&mut self.totals.transactional, &mut self.totals.subscribe_cycles),
            false => (&mut self.totals.locked, &mut self.totals.acquire_cycles),
        };
        *count += 1;
        *cycles += section.acquire_cycles();
        if let Some(cost) = &section.spin {
            self.totals.contended += 1;
            self.add_spin(cost);
        }
        add_at(&mut self.totals.concurrency, usize::from(section.others), 1);
        if self.last_lock != Some(section.lock) {
            self.last_lock = Some(section.lock);
            self.note_lock(section.lock);
        }
    }

    pub fn add_spin(&mut self, cost: &SpinCost) {
        self.totals.spin.add(cost);
    }

    fn note_lock(&mut self, lock: u64) {
        if self.locks.len() < SITE_LOCKS_MAX
            && let Err(place) = self.locks.binary_search(&lock)
        {
            self.locks.insert(place, lock);
        }
    }
}

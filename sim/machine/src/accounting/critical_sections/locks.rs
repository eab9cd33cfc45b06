//! The cost of sections by lock. A kernel has hundreds of thousands of locks, most of which never cost anything.

use concord_htm::AddressHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

/// The greatest number of locks in the table.
const LOCKS_MAX: usize = 1 << 16;

/// The cost of the sections of one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockTotals {
    /// Critical sections that held the lock.
    pub locked: u64,
    /// Critical sections that committed as transactions.
    pub transactional: u64,
    pub spin_cycles: u64,
    /// Cycles from the first access to the lock's word to the begins of these sections, spins included.
    #[serde(default)]
    pub acquire_cycles: u64,
    /// Cycles of restarts of transactions whose outermost section was one of this lock.
    pub restart_cycles: u64,
    /// The greatest number of harts in sections of the lock at the same time.
    pub concurrency_max: u8,
}

impl LockTotals {
    /// Spin and restart cycles.
    pub fn cost_cycles(&self) -> u64 {
        self.spin_cycles + self.restart_cycles
    }
}

/// The totals by lock address. When the table is full, it drops the locks without cost, and of the others all but the
/// costliest half of its capacity. A dropped lock that returns begins at zero.
#[derive(Clone, Debug, Default)]
pub(super) struct LockTable {
    totals: HashMap<u64, LockTotals, BuildHasherDefault<AddressHasher>>,
}

impl LockTable {
    /// The totals of a lock.
    #[inline]
    pub fn of(&mut self, lock: u64) -> &mut LockTotals {
        if self.totals.len() >= LOCKS_MAX && !self.totals.contains_key(&lock) {
            self.make_room();
        }
        self.totals.entry(lock).or_default()
    }

    #[cold]
    fn make_room(&mut self) {
        self.totals.retain(|_, totals| totals.cost_cycles() > 0);
        let costliest = self.costliest(LOCKS_MAX / 2);
        self.totals = costliest.into_iter().collect();
    }

    /// The costliest locks, the costliest first.
    pub fn costliest(&self, count: usize) -> Vec<(u64, LockTotals)> {
        let mut all: Vec<(u64, LockTotals)> = self.totals.iter().map(|(lock, totals)| (*lock, *totals)).collect();
        // The address decides between equals, so that the order of the map has no effect.
        all.sort_unstable_by_key(|(lock, totals)| {
            (Reverse(totals.cost_cycles()), Reverse(totals.locked + totals.transactional), *lock)
        });
        all.truncate(count);
        all
    }

    pub fn all(&self) -> impl Iterator<Item = &LockTotals> {
        self.totals.values()
    }
}

impl Serialize for LockTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.totals.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LockTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LockTable, D::Error> {
        let totals = BTreeMap::<u64, LockTotals>::deserialize(deserializer)?;
        Ok(LockTable { totals: totals.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_keeps_the_costliest_locks() {
        let mut table = LockTable::default();
        for lock in 0..LOCKS_MAX as u64 {
            *table.of(lock) = LockTotals { locked: 1, spin_cycles: lock % 4, ..LockTotals::default() };
        }
        table.of(1 << 40).locked += 1;
        assert_eq!(table.totals.len(), LOCKS_MAX / 2 + 1);
        let costs: Vec<u64> = table.costliest(usize::MAX).iter().map(|(_, totals)| totals.cost_cycles()).collect();
        assert!(costs[..LOCKS_MAX / 4].iter().all(|cost| *cost == 3));
        assert!(costs[LOCKS_MAX / 4..LOCKS_MAX / 2].iter().all(|cost| *cost == 2));
        assert_eq!(table.of(2).locked, 1, "of equals the first");
        assert_eq!(table.of(LOCKS_MAX as u64 - 2).locked, 1);
        assert_eq!(table.of(1).locked, 0, "forgotten");
    }

    #[test]
    fn it_is_saved_and_restored() {
        let mut table = LockTable::default();
        for lock in [9, 3, 7] {
            table.of(lock << 12).locked = lock;
        }
        let bytes = postcard::to_stdvec(&table).unwrap();
        let restored: LockTable = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(restored.costliest(5), table.costliest(5));
        assert_eq!(postcard::to_stdvec(&restored).unwrap(), bytes);
    }
}

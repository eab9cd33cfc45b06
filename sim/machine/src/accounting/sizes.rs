//! The sizes of committed transactions ("TxLinux", SOSP 2007, section 7: 51 instructions and 449 cycles in the mean).
//!
//! A transaction's size is that of the attempt that committed: the instructions that retired in it and its cycles,
//! without those of its suspensions, the granules in its sets, and the greatest depth to which it nested. The accounts
//! have no effect on the run and are no part of its digest.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A histogram's bins are exact below this number, and as wide as 1 / 32 of their numbers from there on.
const EXACT: u64 = 64;
const EXACT_BITS: u32 = EXACT.trailing_zeros();
/// The bins of a power of two.
const BINS: u64 = EXACT / 2;

/// Numbers by their size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    count: u64,
    sum: u64,
    max: u64,
    bins: BTreeMap<u16, u64>,
}

/// A distribution in results. The median and the percentile are exact below 64, and at most 1 / 32 too small above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub count: u64,
    pub mean: f64,
    pub median: u64,
    pub percentile_99: u64,
    pub max: u64,
}

/// The sizes of committed transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionSizes {
    pub instructions: Distribution,
    pub cycles: Distribution,
    /// Granules in the read set and the write set.
    pub granules: Distribution,
    pub depth: Distribution,
}

/// The bin of a number: its leading bits, and where they stand.
fn bin_of(number: u64) -> u16 {
    if number < EXACT {
        return number as u16;
    }
    let shift = number.ilog2() - (EXACT_BITS - 1);
    (u64::from(shift) * BINS + (number >> shift)) as u16
}

/// The least number of a bin.
fn least_of(bin: u16) -> u64 {
    let bin = u64::from(bin);
    if bin < EXACT {
        return bin;
    }
    let shift = bin / BINS - 1;
    // A bin that no number has, from a damaged file, is as good as the last.
    (BINS + bin % BINS).checked_shl(shift as u32).unwrap_or(u64::MAX)
}

impl Histogram {
    fn add(&mut self, number: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(number);
        self.max = self.max.max(number);
        let bin = self.bins.entry(bin_of(number)).or_default();
        *bin = bin.saturating_add(1);
    }

    /// The number that so many of a hundred do not exceed, as far as bins tell; 0 of none.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        for (bin, count) in &self.bins {
            below += u128::from(*count);
            if below >= rank {
                return least_of(*bin);
            }
        }
        0
    }

    pub fn distribution(&self) -> Distribution {
        Distribution {
            count: self.count,
            mean: if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 },
            median: self.percentile(50),
            percentile_99: self.percentile(99),
            max: self.max,
        }
    }
}

/// The clocks of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clocks {
    pub instructions: u64,
    pub cycle: u64,
}

/// An attempt of a transaction that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    id: u64,
    /// What it has retired and spent up to its last suspension.
    instructions: u64,
    cycles: u64,
    /// Its hart's clocks at its begin or its last resumption; none while it is suspended.
    since: Option<Clocks>,
    depth_max: u64,
}

impl Open {
    fn begin(id: u64, at: Clocks) -> Open {
        Open { id, instructions: 0, cycles: 0, since: Some(at), depth_max: 1 }
    }

    /// Books what it has done since it was last active.
    fn stop(&mut self, at: Clocks) {
        if let Some(since) = self.since.take() {
            self.instructions = self.instructions.saturating_add(at.instructions.saturating_sub(since.instructions));
            self.cycles = self.cycles.saturating_add(at.cycle.saturating_sub(since.cycle));
        }
    }
}

/// The transactions of a run, from its beginning or from the last begin of the region of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sizes {
    open: Vec<Open>,
    instructions: Histogram,
    cycles: Histogram,
    granules: Histogram,
    depth: Histogram,
}

impl Sizes {
    /// Resets the counts to zero. Transactions that are open count whole when they commit.
    pub fn reset(&mut self) {
        *self = Sizes { open: std::mem::take(&mut self.open), ..Sizes::default() };
    }

    fn find(&mut self, id: u64) -> Option<&mut Open> {
        // The last transaction that began is the most likely one.
        self.open.iter_mut().rfind(|open| open.id == id)
    }

    /// A transaction began, or restarted and begins again at these clocks.
    pub fn begun(&mut self, id: u64, at: Clocks) {
        match self.find(id) {
            Some(open) => *open = Open::begin(id, at),
            None => self.open.push(Open::begin(id, at)),
        }
    }

    /// An active transaction nests to a depth.
    pub fn nested(&mut self, id: u64, depth: u32) {
        if let Some(open) = self.find(id) {
            open.depth_max = open.depth_max.max(u64::from(depth));
        }
    }

    pub fn suspended(&mut self, id: u64, at: Clocks) {
        if let Some(open) = self.find(id) {
            open.stop(at);
        }
    }

    pub fn resumed(&mut self, id: u64, at: Clocks) {
        if let Some(open) = self.find(id) {
            open.since = Some(at);
        }
    }

    /// A transaction ended without a commit.
    pub fn dropped(&mut self, id: u64) {
        self.open.retain(|open| open.id != id);
    }

    pub fn committed(&mut self, id: u64, at: Clocks, granules: u64) {
        let Some(place) = self.open.iter().rposition(|open| open.id == id) else { return };
        let mut open = self.open.swap_remove(place);
        open.stop(at);
        self.instructions.add(open.instructions);
        self.cycles.add(open.cycles);
        self.granules.add(granules);
        self.depth.add(open.depth_max);
    }

    pub fn result(&self) -> TransactionSizes {
        TransactionSizes {
            instructions: self.instructions.distribution(),
            cycles: self.cycles.distribution(),
            granules: self.granules.distribution(),
            depth: self.depth.distribution(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(numbers: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        numbers.into_iter().for_each(|number| histogram.add(number));
        histogram
    }

    #[test]
    fn a_distribution_has_known_answers() {
        let to_hundred = histogram(1..=100).distribution();
        let known = Distribution { count: 100, mean: 50.5, median: 50, percentile_99: 98, max: 100 };
        assert_eq!(to_hundred, known, "99 lies in a bin with 98");
        let skewed = histogram([vec![7; 99], vec![1000]].concat()).distribution();
        assert_eq!((skewed.median, skewed.percentile_99, skewed.max), (7, 7, 1000));
        assert_eq!(histogram([]).distribution(), Distribution::default());
    }

    #[test]
    fn a_size_is_without_suspensions_and_lost_attempts() {
        let at = |instructions, cycle| Clocks { instructions, cycle };
        let mut sizes = Sizes::default();
        sizes.begun(1, at(100, 1000));
        sizes.nested(1, 4);
        // It restarts, and backs off until cycle 1500.
        sizes.begun(1, at(150, 1500));
        sizes.nested(1, 2);
        sizes.suspended(1, at(160, 1520));
        sizes.begun(2, at(170, 1530));
        sizes.committed(2, at(171, 1532), 1);
        // On another hart, whose clocks differ.
        sizes.resumed(1, at(9000, 20_000));
        sizes.committed(1, at(9005, 20_030), 12);
        sizes.begun(3, at(0, 0));
        sizes.dropped(3);
        let TransactionSizes { instructions, cycles, granules, depth } = sizes.result();
        assert_eq!((instructions.max, instructions.mean), (15, 8.0));
        assert_eq!((cycles.max, granules.max, depth.max), (50, 12, 2));
        assert_eq!((depth.count, depth.median), (2, 1));
        assert!(sizes.open.is_empty());
    }

    proptest! {
        #[test]
        fn a_bin_has_numbers_of_about_its_size(number in any::<u64>(), shift in 0_u32..64) {
            let number = number >> shift;
            let least = least_of(bin_of(number));
            prop_assert!(least <= number && number - least <= number / BINS, "{least} for {number}");
            prop_assert!(number >= EXACT || least == number);
        }
    }
}

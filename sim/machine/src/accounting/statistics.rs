//! The counters of a run, or of its region of interest: samples of the program counter, and the counts of the other
//! parts.

use crate::accounting::critical_sections::report::SectionProfile;
use crate::accounting::sizes::TransactionSizes;
use crate::data::DataNames;
use crate::hart::{Hart, ModeCycles, Privilege};
use crate::machine::Machine;
use concord_htm::kinds::Kinds;
use concord_htm::profile::Profile;
use concord_mem::contention::QueueCounters;
use concord_mem::hot::HotState;
use concord_mem::system::Counters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One program-counter sample stands for this many cycles of a running hart. The number is prime, so that it resonates
/// with no loop.
pub const SAMPLE_CYCLES: u64 = 9973;

/// The clocks and counters at the beginning of the region of interest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Baseline {
    pub modes: Vec<ModeCycles>,
    pub instructions: Vec<u64>,
    pub cycle: u64,
}

/// Counters of a run, from its beginning or from the last begin of the region of interest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statistics {
    samples: BTreeMap<(Privilege, u64), u64>,
    next_samples: Vec<u64>,
    /// True while only the region of interest counts.
    pub baseline: Option<Baseline>,
    /// The counters at the end of the region of interest, if that has come.
    pub region: Option<Region>,
}

/// The cost of the region of interest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    pub modes: Vec<ModeCycles>,
    pub instructions: Vec<u64>,
    pub cycles: u64,
    pub counters: Vec<Counters>,
    /// What queues of contended lines cost, by hart.
    pub queues: Vec<QueueCounters>,
    pub samples: BTreeMap<(Privilege, u64), u64>,
    /// The counters of transactions, by hart.
    pub transactions: Vec<concord_htm::statistics::Counters>,
    /// The sizes of committed transactions.
    pub sizes: TransactionSizes,
    /// The conflicts of transactions.
    pub conflicts: Profile,
    pub conflict_kinds: Kinds,
    /// The cost of critical sections.
    pub sections: SectionProfile,
    /// The names of the data in these accounts, once the region has ended.
    pub names: Option<DataNames>,
}

impl Statistics {
    pub fn new(harts: usize) -> Statistics {
        Statistics { samples: BTreeMap::new(), next_samples: vec![SAMPLE_CYCLES; harts], baseline: None, region: None }
    }

    /// True if these counters belong to a machine with this many harts.
    pub(crate) fn fits(&self, harts: usize) -> bool {
        self.next_samples.len() == harts
            && self
                .baseline
                .as_ref()
                .is_none_or(|baseline| baseline.modes.len() == harts && baseline.instructions.len() == harts)
    }

    /// A hart slept for this long; no sample is due during its sleep.
    #[inline]
    pub(crate) fn slept(&mut self, hart: usize, cycles: u64) {
        self.next_samples[hart] += cycles;
    }

    /// Samples the program counter of a hart that has just run, if a sample is due.
    #[inline]
    pub(crate) fn sample(&mut self, hart: usize, privilege: Privilege, hot: &HotState) {
        if hot.cycle >= self.next_samples[hart] {
            let due = (hot.cycle - self.next_samples[hart]) / SAMPLE_CYCLES + 1;
            self.next_samples[hart] += due * SAMPLE_CYCLES;
            *self.samples.entry((privilege, hot.pc)).or_default() += due;
        }
    }
}

impl Machine {
    pub(crate) fn begin_region(&mut self) {
        let baseline = Baseline {
            modes: self.modes_now(),
            instructions: self.memory.hot.iter().map(|hot| hot.instructions).collect(),
            cycle: self.latest_cycle(),
        };
        self.memory.reset_counters();
        self.transactions.reset_statistics();
        self.accounting.sizes.reset();
        self.accounting.critical_sections.reset(|hart| self.memory.hot[hart].cycle);
        let statistics = &mut self.accounting.statistics;
        statistics.samples.clear();
        statistics.region = None;
        statistics.baseline = Some(baseline);
    }

    pub(crate) fn end_region(&mut self) {
        let region = self.named_region();
        self.accounting.statistics.region = Some(region);
    }

    /// [`Machine::region`] with the names of its data, which are those of now if the region goes on.
    pub(crate) fn named_region(&mut self) -> Region {
        let mut region = self.region();
        if region.names.is_none() {
            region.names = Some(self.data_names(&region));
        }
        region
    }

    fn latest_cycle(&self) -> u64 {
        self.memory.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0)
    }

    /// Every hart's cycles by mode up to now, without booking them: a sleeper may yet wake a little before the clock of the
    /// hart that is furthest ahead.
    fn modes_now(&self) -> Vec<ModeCycles> {
        let now = self.latest_cycle();
        let modes = |(hart, hot): (&Hart, &HotState)| {
            let mut hart = hart.clone();
            let until = if hart.is_busy() { hot.cycle } else { now };
            hart.account(until, self.bus.disk_use_cycles(until));
            hart.modes
        };
        self.harts.iter().zip(&self.memory.hot).map(modes).collect()
    }

    /// The counts since the run or the region of interest began; once the region has ended, those of the region.
    pub fn region(&self) -> Region {
        if let Some(region) = &self.accounting.statistics.region {
            return region.clone();
        }
        let baseline = self.accounting.statistics.baseline.as_ref();
        let modes = self.modes_now().into_iter().enumerate().map(|(index, modes)| {
            let before = baseline.map_or(ModeCycles::default(), |baseline| baseline.modes[index]);
            ModeCycles {
                user_cycles: modes.user_cycles - before.user_cycles,
                supervisor_cycles: modes.supervisor_cycles - before.supervisor_cycles,
                idle_cycles: modes.idle_cycles.saturating_sub(before.idle_cycles),
                io_wait_cycles: modes.io_wait_cycles.saturating_sub(before.io_wait_cycles),
            }
        });
        let instructions = self
            .memory
            .hot
            .iter()
            .enumerate()
            .map(|(index, hot)| hot.instructions - baseline.map_or(0, |baseline| baseline.instructions[index]));
        Region {
            modes: modes.collect(),
            instructions: instructions.collect(),
            cycles: self.latest_cycle() - baseline.map_or(0, |baseline| baseline.cycle),
            queues: self.memory.queue_counters().to_vec(),
            counters: self.memory.cores().iter().map(|core| core.counters).collect(),
            samples: self.accounting.statistics.samples.clone(),
            transactions: self.transactions.counters().to_vec(),
            sizes: self.accounting.sizes.result(),
            conflicts: self.transactions.profile().clone(),
            conflict_kinds: self.transactions.kinds().clone(),
            sections: self.accounting.critical_sections.profile(),
            names: None,
        }
    }
}

//! The accounts of a run: samples of program counters, critical sections, and the activities of each hart over time.

pub mod critical_sections;
pub mod origins;
pub mod sizes;
pub mod statistics;
pub mod timeline;
pub(crate) mod trace;

use crate::execute::position::Position;
use crate::machine::Machine;
use critical_sections::{CriticalSections, LockHint};
use origins::{Origins, Running};
use sizes::{Clocks, Sizes};
use statistics::Statistics;
use trace::{Doing, Trace};

/// The accounts of a run.
pub(crate) struct Accounting {
    /// Instructions retired by all harts.
    pub instructions: u64,
    pub statistics: Statistics,
    pub critical_sections: CriticalSections,
    pub sizes: Sizes,
    pub origins: Origins,
    pub trace: Trace,
}

impl Accounting {
    pub fn new(harts: usize) -> Accounting {
        Accounting {
            instructions: 0,
            statistics: Statistics::new(harts),
            critical_sections: CriticalSections::new(harts),
            sizes: Sizes::default(),
            origins: Origins::default(),
            trace: Trace::default(),
        }
    }
}

impl Machine {
    /// The thread that a hart runs, as `accounting/origins.rs` tells threads apart.
    pub(crate) fn running(&self, hart: usize, in_user_mode: bool) -> Running {
        const THREAD_POINTER: usize = 4;
        let pointer = if in_user_mode { self.harts[hart].sscratch } else { self.memory.hot[hart].x[THREAD_POINTER] };
        Running { hart, pointer }
    }

    /// A hart's clocks between two runs.
    pub(crate) fn clocks(&self, hart: usize) -> Clocks {
        let hot = &self.memory.hot[hart];
        Clocks { instructions: hot.instructions, cycle: hot.cycle }
    }

    /// Books a hart's cycles since its last booking under its present activity.
    pub(crate) fn account(&mut self, hart: usize) {
        let now = self.memory.hot[hart].cycle;
        self.accounting.trace.account(hart, &self.harts[hart], now);
        let disk_use_cycles = self.bus.disk_use_cycles(now);
        self.harts[hart].account(now, disk_use_cycles);
    }

    /// A lock hint during a run. It only counts.
    #[inline(never)]
    pub(crate) fn note_lock_hint(&mut self, at: Position, code: u16, lock: u64, call_site: u64) {
        let now = self.now(at);
        let transaction = self.transactions.active_id(at.hart);
        if let Some(spun) =
            self.accounting.critical_sections.hint(&LockHint { hart: at.hart, code, lock, call_site, now, transaction })
        {
            self.accounting.trace.push(at.hart, Doing::Spinning { lock: spun.lock, call_site }, spun.since, now);
        }
    }
}

//! Critical sections from a snapshot: checks of their invariants.

use super::locks::LockTotals;
use super::{CriticalSections, Section};

/// An upper bound that no run reaches; sums of numbers below it do not overflow.
pub(super) const COUNT_MAX: u64 = 1 << 56;

impl CriticalSections {
    /// Takes over the state from a file, for this number of harts; false if the state is impossible.
    pub fn restore(&mut self, harts: usize) -> bool {
        let sites = self.sites.len();
        let section_fits = |section: &Section| {
            (section.site as usize) < sites
                && section.cycles < 1 << 63
                && usize::from(section.others) < harts
                && section.spin.is_none_or(|cost| cost.is_possible())
                && section.acquire_cycles < COUNT_MAX
        };
        let kinds = CriticalSections::new(0).sites;
        let is_possible = self.harts.len() == harts
            && sites <= super::SITES_MAX
            && self.sites.iter().zip(&kinds).filter(|(site, kind)| site.kind == kind.kind).count() == kinds.len()
            && self.sites.iter().all(|site| site.totals.is_possible())
            && self.locks.all().all(|totals| {
                let LockTotals { locked, transactional, spin_cycles, acquire_cycles, restart_cycles, .. } = *totals;
                let numbers = [locked, transactional, spin_cycles, acquire_cycles, restart_cycles];
                numbers.iter().all(|count| *count < COUNT_MAX)
            })
            && self.harts.iter().all(|hart| {
                let spins = hart.spins.iter().chain(hart.transactions.iter().flat_map(|live| &live.spins));
                let abandoned = hart.abandoned.iter().chain(hart.transactions.iter().flat_map(|live| &live.abandoned));
                hart.open.iter().all(|section| section.is_open && section_fits(section))
                    && spins.into_iter().all(|spin| spin.cost.is_possible())
                    && abandoned.into_iter().all(|(_, cost)| cost.is_possible())
                    && hart.owed.as_ref().is_none_or(|owed| owed.is_possible())
                    && hart.booked_cycles < COUNT_MAX
                    && hart.sections_count < COUNT_MAX
                    && hart.attempts.is_possible()
                    && hart.transactions_are_possible(&section_fits, sites)
            });
        if is_possible {
            self.index();
        }
        is_possible
    }
}

impl super::SpinCost {
    fn is_possible(&self) -> bool {
        [self.cycles, self.acquire_cycles, self.test_loops, self.test_and_set_loops]
            .iter()
            .all(|count| *count < COUNT_MAX)
    }
}

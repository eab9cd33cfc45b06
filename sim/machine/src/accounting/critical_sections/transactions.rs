//! Critical sections in transactions: they count when the transaction commits, and are dropped when it restarts.

use super::site::Restarts;
use super::{CriticalSections, HartSections, Section, Spin, SpinCost, TRANSACTION_SECTIONS_MAX, WAITING_MAX, hash};
use crate::accounting::origins::Origin;
use concord_abi::htm::Cause;
use serde::{Deserialize, Serialize};

/// A transaction with something to count.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Live {
    pub id: u64,
    /// The call site and the lock of its outermost section, or of an earlier attempt's if this one has none yet.
    pub outermost: Option<(u32, u64)>,
    pub sections: Vec<Section>,
    /// The number of its open sections.
    pub depth: u32,
    pub spins: Vec<Spin>,
    pub abandoned: Vec<(u64, SpinCost)>,
    /// Restarts before there was an outermost section.
    pub owed: Option<Box<Restarts>>,
    suspended_since: Option<u64>,
    /// Cycles of this attempt in suspension.
    suspended_cycles: u64,
    /// Cycles that this attempt waited for other transactions.
    wait_cycles: u64,
    /// The cause of the restart for which it backs off, or last backed off.
    backs_off_for: u8,
    /// It waits or last waited for another transaction, and does not back off.
    waits: bool,
}

/// A restart that no section has followed yet, with its cause, and its call site if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    pub site: Option<u32>,
    pub cause: u8,
}

/// A rollback, as it happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rollback {
    /// The hart on which the transaction runs, or ran last.
    pub hart: usize,
    pub id: u64,
    pub cause: Cause,
    /// The transaction is active there; a suspended one restarts when it is resumed.
    pub active: bool,
    /// The begin of the attempt.
    pub attempt_cycle: u64,
}

impl Live {
    fn clear(&mut self) {
        self.sections.clear();
        self.spins.clear();
        self.abandoned.clear();
        self.depth = 0;
        self.wait_cycles = 0;
    }

    pub fn restart_clocks(&mut self, cycle: u64) {
        self.owed = None;
        self.abandoned.clear();
        self.sections.retain(|section| section.is_open);
        self.sections.iter_mut().for_each(|section| section.cycles = section.cycles.max(cycle));
        self.spins.iter_mut().for_each(|spin| spin.begin_at(cycle));
    }
}

impl CriticalSections {
    /// The record of a transaction that runs, or last ran, on a hart. Another hart may have resumed it since.
    #[inline]
    pub(super) fn find_live(&mut self, hart: usize, id: u64) -> Option<&mut Live> {
        let place = match self.harts[hart].transactions.iter().rposition(|live| live.id == id) {
            Some(place) => place,
            None => self.bring(hart, id)?,
        };
        Some(&mut self.harts[hart].transactions[place])
    }

    /// Takes over a transaction's record from the hart on which it was suspended.
    #[cold]
    fn bring(&mut self, hart: usize, id: u64) -> Option<usize> {
        let mut all = self.harts.iter().enumerate();
        let (from, place) =
            all.find_map(|(from, state)| Some((from, state.transactions.iter().position(|live| live.id == id)?)))?;
        let live = self.harts[from].transactions.remove(place);
        let transactions = &mut self.harts[hart].transactions;
        transactions.push(live);
        Some(transactions.len() - 1)
    }

    /// The same, for any transaction.
    #[inline]
    pub(super) fn live(&mut self, hart: usize, id: u64) -> &mut Live {
        if self.find_live(hart, id).is_none() {
            let mut live = self.spare.pop().unwrap_or_default();
            live.clear();
            live = Live { id, sections: live.sections, ..Live::default() };
            self.harts[hart].transactions.push(live);
        }
        self.find_live(hart, id).expect("it is there")
    }

    /// Whether a hart has a record of any transaction.
    #[inline]
    fn has_live(&self) -> bool {
        self.harts.iter().any(|state| !state.transactions.is_empty())
    }

    /// The call site of a transaction's outermost section; `None` if it has had no section yet.
    pub fn call_site(&self, id: u64) -> Option<u64> {
        let mut all = self.harts.iter().flat_map(|state| &state.transactions);
        let (site, _) = all.find(|live| live.id == id)?.outermost?;
        // The sites for everything beyond the limit have no address.
        Some(self.sites[site as usize].address).filter(|address| *address != 0)
    }

    /// A section begins in a transaction.
    pub(super) fn begin_inside(&mut self, hart: usize, id: u64, section: Section) {
        let (site, lock, is_transactional) = (section.site, section.lock, section.is_transactional);
        let live = self.live(hart, id);
        let is_outermost = live.sections.is_empty();
        if live.sections.len() < TRANSACTION_SECTIONS_MAX {
            live.sections.push(section);
            live.depth += 1;
            self.open_by_hash[hash(lock)] += 1;
        }
        if !is_outermost {
            return;
        }
        let live = self.live(hart, id);
        live.outermost = Some((site, lock));
        if let Some(owed) = live.owed.take() {
            self.pay(&owed, site, lock);
        }
        if is_transactional {
            let restarts = &mut self.harts[hart].restarts;
            restarts.retain(|restart| restart.site.is_some_and(|of| of != site));
        }
    }

    /// Assigns the restarts without a known call site to this one.
    fn pay(&mut self, owed: &Restarts, site: u32, lock: u64) {
        self.sites[site as usize].totals.restarts.add(owed);
        self.locks.of(lock).restart_cycles += owed.cycles_total();
    }

    /// A section begins outside transactions: the hart's last restart of the same call site did not lead to another try.
    pub(super) fn follow_restart(&mut self, hart: usize, site: u32, lock: u64) {
        let state = &mut self.harts[hart];
        if state.restarts.is_empty() && state.owed.is_none() {
            return;
        }
        if let Some(owed) = state.owed.take() {
            self.pay(&owed, site, lock);
        }
        let restarts = &mut self.harts[hart].restarts;
        let of_site = |restart: &Followed| restart.site.is_none_or(|of| of == site);
        if let Some(place) = restarts.iter().rposition(of_site) {
            let cause = restarts.remove(place).cause;
            restarts.retain(|restart| restart.site != Some(site));
            self.sites[site as usize].totals.exclusive_after[usize::from(cause)] += 1;
        }
    }

    /// A transaction committed, and with it everything that happened in it.
    #[inline]
    pub fn committed(&mut self, hart: usize, id: u64, now: u64) {
        if self.has_live() && self.find_live(hart, id).is_some() {
            self.count_commit(hart, id, now);
        }
    }

    fn count_commit(&mut self, hart: usize, id: u64, now: u64) {
        let Some(mut live) = self.take_live(hart, id) else { return };
        for mut section in live.sections.drain(..) {
            if section.is_open {
                section.cycles = now.saturating_sub(section.cycles);
                self.open_by_hash[hash(section.lock)] -= 1;
            }
            let state = &mut self.harts[hart];
            state.booked_cycles += section.spin.map_or(0, |cost| cost.cycles);
            while let Some(place) = state.abandoned.iter().position(|(lock, _)| *lock == section.lock) {
                section.spin.get_or_insert_default().add(&state.abandoned.remove(place).1);
            }
            self.count_begin(hart, &section);
            self.count_end(&section);
        }
        for (lock, cost) in live.abandoned.drain(..) {
            self.harts[hart].booked_cycles += cost.cycles;
            self.leave_spin(hart, lock, cost);
        }
        if let Some((site, _)) = live.outermost {
            self.sites[site as usize].totals.wait_cycles += live.wait_cycles;
            self.harts[hart].booked_cycles += live.wait_cycles;
        }
        if let Some(owed) = live.owed.take() {
            self.harts[hart].owed.get_or_insert_default().add(&owed);
        }
        self.spare.push(live);
    }

    fn take_live(&mut self, hart: usize, id: u64) -> Option<Live> {
        self.find_live(hart, id)?;
        let transactions = &mut self.harts[hart].transactions;
        let place = transactions.iter().rposition(|live| live.id == id)?;
        Some(transactions.remove(place))
    }

    /// The counters for the restarts of a transaction: those of its outermost section's call site, or its own without
    /// one.
    fn restarts_of(&mut self, hart: usize, id: u64) -> &mut Restarts {
        match self.live(hart, id).outermost {
            Some((site, _)) => &mut self.sites[site as usize].totals.restarts,
            None => self.live(hart, id).owed.get_or_insert_default(),
        }
    }

    /// A transaction is about to roll back, because code at `place` asks for exclusivity.
    pub fn needs_exclusive(&mut self, hart: usize, id: u64, place: u64, origin: Origin) {
        let depth = self.live(hart, id).depth;
        self.restarts_of(hart, id).count_exclusive(depth, place, origin);
    }

    /// A transaction rolled back: its sections are dropped. The cost is known when the transaction is back at its
    /// begin, or at once for a suspended one.
    pub fn rolled_back(&mut self, rollback: &Rollback) {
        let Rollback { hart, id, cause, .. } = *rollback;
        if cause == Cause::None {
            // The kernel dropped the transaction.
            if self.has_live() && self.find_live(hart, id).is_some() {
                self.forget_sections(hart, id);
                self.take_live(hart, id);
            }
            return;
        }
        self.forget_sections(hart, id);
        self.restarts_of(hart, id).count(cause);
        if rollback.active {
            return;
        }
        let live = self.live(hart, id);
        let until = live.suspended_since.unwrap_or(rollback.attempt_cycle);
        let cycles = until.saturating_sub(rollback.attempt_cycle).saturating_sub(live.suspended_cycles);
        live.suspended_cycles = 0;
        self.book_restart(hart, id, cause, cycles);
    }

    fn forget_sections(&mut self, hart: usize, id: u64) {
        let Some(place) = self.harts[hart].transactions.iter().rposition(|live| live.id == id) else { return };
        let live = &mut self.harts[hart].transactions[place];
        for section in live.sections.iter().filter(|section| section.is_open) {
            self.open_by_hash[hash(section.lock)] -= 1;
        }
        live.clear();
    }

    fn book_restart(&mut self, hart: usize, id: u64, cause: Cause, cycles: u64) {
        self.restarts_of(hart, id).add_cycles(cause, cycles);
        if let Some((_, lock)) = self.live(hart, id).outermost {
            self.locks.of(lock).restart_cycles += cycles;
        }
        self.harts[hart].booked_cycles += cycles;
    }

    /// A transaction that rolled back is at its begin again, `lost_cycles` after the begin of the lost attempt, and
    /// backs off.
    pub fn restarted(&mut self, hart: usize, id: u64, cause: Cause, lost_cycles: u64, backoff_cycles: u64) {
        let live = self.live(hart, id);
        let lost_cycles = lost_cycles.saturating_sub(live.suspended_cycles);
        live.suspended_since = None;
        live.suspended_cycles = 0;
        live.waits = false;
        live.backs_off_for = cause as u8;
        let site = live.outermost.map(|(site, _)| site);
        self.harts[hart].attempts.forget();
        self.book_restart(hart, id, cause, lost_cycles + backoff_cycles);
        let restarts = &mut self.harts[hart].restarts;
        restarts.retain(|restart| restart.site != site);
        restarts.push(Followed { site, cause: cause as u8 });
        if restarts.len() > WAITING_MAX {
            restarts.remove(0);
        }
    }

    /// An active transaction is suspended.
    pub fn suspended(&mut self, hart: usize, id: u64, now: u64) {
        if id != 0 {
            self.live(hart, id).suspended_since = Some(now);
        }
    }

    /// A suspended transaction continues.
    pub fn resumed(&mut self, hart: usize, id: u64, now: u64) {
        if let Some(live) = self.find_live(hart, id)
            && let Some(since) = live.suspended_since.take()
        {
            live.suspended_cycles += now.saturating_sub(since);
        }
    }

    /// An active transaction waits for another one.
    pub fn waits(&mut self, hart: usize, id: u64, cycles: u64) {
        let live = self.live(hart, id);
        live.waits = true;
        live.wait_cycles += cycles;
    }

    /// An interrupt ended a transaction's back-off or wait, with `unspent_cycles` left.
    pub fn stall_was_cut(&mut self, hart: usize, id: u64, unspent_cycles: u64) {
        let Some(live) = self.find_live(hart, id) else { return };
        if live.waits {
            live.wait_cycles = live.wait_cycles.saturating_sub(unspent_cycles);
            return;
        }
        let (cause, outermost) = (live.backs_off_for, live.outermost);
        self.restarts_of(hart, id).take_cycles(cause, unspent_cycles);
        if let Some((_, lock)) = outermost {
            let totals = self.locks.of(lock);
            totals.restart_cycles = totals.restart_cycles.saturating_sub(unspent_cycles);
        }
        let booked_cycles = &mut self.harts[hart].booked_cycles;
        *booked_cycles = booked_cycles.saturating_sub(unspent_cycles);
    }
}

impl HartSections {
    /// Whether everything that the transactions of this hart refer to exists, and their counts are possible. For a
    /// state that was read from a file.
    pub(super) fn transactions_are_possible(&self, fits: &impl Fn(&Section) -> bool, sites: usize) -> bool {
        let site_exists = |site: u32| (site as usize) < sites;
        self.restarts.iter().all(|restart| restart.site.is_none_or(site_exists) && restart.cause < 8)
            && self.transactions.iter().all(|live| {
                live.outermost.is_none_or(|(site, _)| site_exists(site))
                    && live.sections.iter().all(fits)
                    && live.depth as usize == live.sections.iter().filter(|section| section.is_open).count()
                    && live.backs_off_for < 8
                    && live.owed.as_ref().is_none_or(|owed| owed.is_possible())
                    && [live.suspended_cycles, live.wait_cycles].iter().all(|count| *count < super::saved::COUNT_MAX)
            })
    }
}

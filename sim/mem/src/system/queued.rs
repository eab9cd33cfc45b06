//! Accesses and the queues of their lines (`contention.rs`): who must wait, and what waiting changes for the others.

use super::{MemorySystem, Moment};
use crate::cache::{Line, State, line_of};
use crate::contention::{Need, QueueCounters, Request};
use crate::fault::{Access, Fault};

/// Whether an access takes its turn in the queue of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Queues,
    /// It pays what is left of the queue and goes on: its instruction has queued already.
    Exempt,
}

/// The reason why an access does not happen now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Fault(Fault),
    /// The access waits for its line. Its instruction has not executed, and executes at the core's next turn.
    Queued,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

impl MemorySystem {
    /// Admits an access to RAM, or puts it into the queue of its line. To be called before the access has any effect.
    ///
    /// # Errors
    /// [`Refusal::Queued`], until [`MemorySystem::turn`].
    #[inline]
    pub fn admit(&mut self, core: usize, physical: u64, access: Access, ahead_cycles: u64) -> Result<(), Refusal> {
        if !self.timed || !self.queues.is_modelled() {
            return Ok(());
        }
        let now = self.now(core, ahead_cycles);
        let line = line_of(physical);
        if self.queues.is_clear(line, now) {
            return Ok(());
        }
        self.admit_slowly(core, line, access == Access::Store, now)
    }

    #[cold]
    #[inline(never)]
    fn admit_slowly(&mut self, core: usize, line: Line, store: bool, now: u64) -> Result<(), Refusal> {
        match self.queues.resume(core, line, now) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Refusal::Queued),
            None if self.queues.has_moved() => self.hurry(),
            None => {}
        }
        let state = self.cores[core].second.state(line);
        let suffices = match state {
            Some(State::Modified | State::Exclusive) => true,
            Some(State::Shared) => !store,
            None => false,
        };
        let is_late = self.queues.is_late(line, store, now);
        if suffices && !is_late {
            return Ok(());
        }
        let model = &self.model;
        let shared_latency_cycles = match state {
            Some(_) => model.upgrade_latency_cycles,
            None => model.second_latency_cycles + model.memory_latency_cycles,
        };
        let owned_latency_cycles = model.second_latency_cycles + model.transfer_latency_cycles;
        let need = Need { store, owned_latency_cycles, shared_latency_cycles };
        if !self.queues.enter(core, line, need, now, is_late) {
            return Ok(());
        }
        self.withhold(line);
        Err(Refusal::Queued)
    }

    /// Gives a core that loads with a reservation, or compares and swaps, its line as a store would, so that the store that
    /// follows finds the line its own for the length of a window at least. To be called before the load, which then hits.
    /// Cores that take their reservation on a line that they share lose it to each other while their stores queue, and hardly
    /// one of many stores succeeds; RISC-V cores such as Rocket acquire the line in their LR (the unprivileged specification,
    /// section "Eventual Success of Store-Conditional Instructions").
    ///
    /// # Errors
    /// As [`MemorySystem::admit`].
    pub fn own(&mut self, core: usize, physical: u64, ahead_cycles: u64) -> Result<(), Refusal> {
        if !self.timed || !self.queues.is_modelled() {
            return Ok(());
        }
        let now = self.now(core, ahead_cycles);
        let line = line_of(physical);
        if self.queues.is_clear(line, now) {
            if self.holders.get(line) & !(1 << core) == 0 {
                return Ok(());
            }
        } else {
            self.admit_slowly(core, line, true, now)?;
        }
        let paid_cycles = self.queues.serve(core, line);
        self.touch_data(core, line, true, Moment { ahead_cycles, paid_cycles });
        Ok(())
    }

    /// Keeps every line table from answering for a line, so that its owners meet the queue.
    fn withhold(&mut self, line: Line) {
        let mut holders = self.holders.get(line);
        while holders != 0 {
            let core = holders.trailing_zeros() as usize;
            holders &= holders - 1;
            self.cores[core].data.withhold(line, &mut self.hot[core].lines);
        }
    }

    /// The cycles that a request costs, of whose latency a part may have passed in a queue. `is_exclusive` is false for a
    /// load that needs no owner's copy.
    pub(super) fn request_cycles(
        &mut self,
        core: usize,
        line: Line,
        store: bool,
        latency_cycles: u64,
        is_exclusive: bool,
        moment: Moment,
    ) -> u64 {
        if !self.queues.is_modelled() {
            return latency_cycles;
        }
        if let Some(paid_cycles) = moment.paid_cycles {
            return latency_cycles.saturating_sub(paid_cycles);
        }
        let now = self.now(core, moment.ahead_cycles);
        let hold_cycles = is_exclusive.then_some(latency_cycles);
        latency_cycles + self.queues.pass(core, line, store, hold_cycles, now)
    }

    /// A core's clock at an access.
    fn now(&self, core: usize, ahead_cycles: u64) -> u64 {
        let hot = &self.hot[core];
        hot.cycle + hot.stall_cycles + ahead_cycles
    }

    /// When the core's next turn comes if it waits for a line.
    #[inline]
    pub fn turn(&self, core: usize) -> Option<u64> {
        self.request(core).map(|request| request.start)
    }

    /// The core's request in the queue of a line.
    #[inline]
    pub fn request(&self, core: usize) -> Option<&Request> {
        self.queues.request(core)
    }

    /// The core's instruction does not make the access that it waits for, at its clock. Returns the request that left.
    #[inline]
    pub fn leave_queue(&mut self, core: usize) -> Option<Request> {
        self.queues.request(core)?;
        let left = self.queues.leave(core, self.hot[core].cycle.max(self.queues.horizon()));
        self.hurry();
        left
    }

    /// Ends turns before the first turn of a core that waits, which may have come earlier.
    fn hurry(&mut self) {
        for core in 0..self.hot.len() {
            let first = self.queues.earliest_start(core);
            let limit = &mut self.hot[core].limit;
            *limit = first.min(*limit);
        }
    }

    /// Whether a turn has come earlier since the last call.
    #[inline]
    pub fn take_moved(&mut self) -> bool {
        self.queues.take_moved()
    }

    /// The first turn of another core that waits for a line; [`u64::MAX`] if none does. No core may run beyond it.
    #[inline]
    pub fn first_turn(&self, core: usize) -> u64 {
        self.queues.earliest_start(core)
    }

    /// Every access from now on happens at this time or later.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        if self.queues.is_modelled() {
            self.queues.advance(now);
        }
    }

    /// The time up to which [`MemorySystem::advance`] has come.
    pub fn horizon(&self) -> u64 {
        self.queues.horizon()
    }

    /// What queues cost each core.
    pub fn queue_counters(&self) -> &[QueueCounters] {
        self.queues.counters()
    }

    /// The requests that wait, by core.
    pub fn requests(&self) -> impl Iterator<Item = Option<&Request>> {
        (0..self.cores.len()).map(|core| self.queues.request(core))
    }
}

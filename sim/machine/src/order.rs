//! The order in which harts and devices get their turns.
//!
//! The hart whose clock is furthest behind takes the next turn. It runs until it is a quantum ahead of the next one, or until the
//! next device event, so that no two running harts are ever further apart than a quantum and one stall.

use crate::accounting::statistics::SAMPLE_CYCLES;
use crate::hart::{Activity, Hart, INTERRUPT_TIMER};
use crate::machine::Machine;

/// The longest turn in cycles. It bounds how late the machine notices a limit when no other hart is due, and it is not
/// longer than the sampling interval, so that successive samples come from different turns.
const TURN_CYCLES_MAX: u64 = SAMPLE_CYCLES;

/// The times at which the harts take their next turns.
pub(crate) struct Order {
    /// For each hart, the clock value of its next turn; [`u64::MAX`] if none is foreseeable.
    pub next_turns: Vec<u64>,
    /// The harts whose external interrupt line is up, as the interrupt controller last reported.
    pub external_interrupts: u64,
    /// Cycles of a hart's clock in a tick of the guest's time.
    pub cycles_per_tick: u64,
}

impl Order {
    pub fn new(harts: usize, cycles_per_tick: u64) -> Order {
        Order { next_turns: vec![u64::MAX; harts], external_interrupts: 0, cycles_per_tick }
    }

    /// The hart whose turn is next, the time of that turn, and the time of the following hart's turn.
    fn next(&self) -> (usize, u64, u64) {
        let (mut hart, mut first, mut second) = (0, u64::MAX, u64::MAX);
        // Selections instead of branches: the host cannot guess which hart is next.
        for (index, turn) in self.next_turns.iter().copied().enumerate() {
            hart = if turn < first { index } else { hart };
            second = second.min(turn.max(first));
            first = first.min(turn);
        }
        (hart, first, second)
    }
}

impl Machine {
    /// The machine's clock: that of the next hart or event.
    pub fn clock(&self) -> u64 {
        let turn = self.order.next_turns.iter().copied().min().unwrap_or(u64::MAX);
        match turn.min(self.bus.next_event_cycle()) {
            u64::MAX => self.memory.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0),
            clock => clock,
        }
    }

    /// The cycles until the next turn or event if every hart sleeps; 0 while one runs.
    pub(crate) fn idle_gap_cycles(&self) -> u64 {
        if self.harts.iter().any(Hart::is_busy) {
            return 0;
        }
        let latest = self.memory.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0);
        match self.order.next().1.min(self.bus.next_event_cycle()) {
            u64::MAX => u64::MAX,
            next => next.saturating_sub(latest),
        }
    }

    fn quantum_cycles(&self) -> u64 {
        let order = &self.configuration.board.order;
        if self.memory.is_timed() { order.quantum_cycles } else { order.functional_quantum_cycles }
    }

    /// Runs the next turn or device event. Returns false if there is none: every hart sleeps and no event will wake
    /// one. No hart retires more than about `instructions_max` instructions in it.
    pub fn step(&mut self, instructions_max: u64) -> bool {
        if let Some(broken) = self.debug.take_broken_turn() {
            self.memory.hot[broken.hart].limit = broken.limit;
            self.turn(broken.hart, Some(broken.inside_run));
            return true;
        }
        let (hart, first, second) = self.order.next();
        let event = self.bus.next_event_cycle();
        if event <= first {
            if event == u64::MAX {
                return false;
            }
            self.with_committed_memory(|machine| {
                machine.bus.advance(event, machine.memory.ram.memory());
                machine.after_devices(event);
            });
            self.note_moved_turns();
            return true;
        }
        self.memory.prefetch(hart);
        self.begin_turn(hart, first, second, event, instructions_max);
        self.turn(hart, None);
        true
    }

    /// Runs a turn, or the rest of one that the debugger interrupted (inside a run of ops or not).
    fn turn(&mut self, hart: usize, broken_off: Option<bool>) {
        let before = self.memory.hot[hart].instructions;
        // An instruction that waits for its line is under way, and is not interrupted.
        if broken_off.is_none() && self.memory.turn(hart).is_none() {
            self.take_interrupt(hart);
        }
        match (self.memory.is_timed(), broken_off.is_some() || self.debug.is_active()) {
            (true, false) => self.run_turn::<true>(hart),
            (false, false) => self.run_turn::<false>(hart),
            (true, true) => self.run_turn_debugged::<true>(hart, broken_off),
            (false, true) => self.run_turn_debugged::<false>(hart, broken_off),
        }
        self.accounting.instructions += self.memory.hot[hart].instructions - before;
        if self.debug.has_broken_turn() {
            return;
        }
        if self.memory.turn(hart).is_some_and(|turn| turn <= self.memory.hot[hart].cycle) {
            // A store-conditional that lost its reservation makes no access.
            self.memory.leave_queue(hart);
        }
        self.note_moved_turns();
        if self.watch.is_on {
            self.note_evictions();
        }
        if !self.memory.is_timed() {
            // No other hart has run since the reservation was made, and none may run while it holds (see `sim/mem`).
            self.memory.core(hart).reservation = None;
        }
        self.accounting.statistics.sample(hart, self.harts[hart].privilege, &self.memory.hot[hart]);
        self.update_next_turn(hart, self.memory.hot[hart].cycle);
    }

    fn begin_turn(&mut self, hart: usize, now: u64, other: u64, event: u64, instructions_max: u64) {
        let quantum = self.quantum_cycles();
        let cycles_per_tick = self.order.cycles_per_tick;
        let hot = &mut self.memory.hot[hart];
        let slept = now.saturating_sub(hot.cycle);
        hot.cycle += slept;
        self.memory.advance(now);
        let is_queued = self.memory.turn(hart).is_some();
        if is_queued {
            // The wait belongs to the instruction that waits.
            self.accounting.statistics.sample(hart, self.harts[hart].privilege, &self.memory.hot[hart]);
        }
        if !self.harts[hart].is_busy() {
            self.accounting.statistics.slept(hart, slept);
            self.account(hart);
        }
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        match state.activity {
            Activity::Running => {}
            Activity::Waiting => state.activity = Activity::Running,
            Activity::BackingOff { until } => {
                state.activity = Activity::Running;
                let unspent_cycles = until.saturating_sub(hot.cycle);
                if unspent_cycles > 0 {
                    self.transactions.cut_stall(hart, unspent_cycles);
                    let id = self.transactions.active_id(hart);
                    self.accounting.critical_sections.stall_was_cut(hart, id, unspent_cycles);
                }
            }
            Activity::Suspended { address, argument } => {
                let sie = state.sie;
                state.start(hot, hart, address, argument);
                state.sie = sie;
                self.update_context(hart);
            }
            Activity::Stopped => unreachable!("a stopped hart has no turn"),
        }
        let first_turn = self.memory.first_turn(hart);
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        let mut limit = other.saturating_add(quantum).min(event).min(hot.cycle + TURN_CYCLES_MAX.min(instructions_max));
        // Nobody runs past the turn of a hart that waits for its line.
        limit = limit.min(first_turn);
        if is_queued && state.pending_interrupts(hot, cycles_per_tick) & state.sie != 0 {
            limit = hot.cycle;
        }
        let timer = state.timer_cycle(cycles_per_tick);
        if state.sie & INTERRUPT_TIMER != 0 && timer > hot.cycle {
            limit = limit.min(timer);
        }
        hot.limit = limit.max(hot.cycle + 1);
    }

    /// Computes the time of a hart's next turn, after an event at `now` that may affect the hart.
    pub(crate) fn update_next_turn(&mut self, hart: usize, now: u64) {
        let (state, hot) = (&self.harts[hart], &self.memory.hot[hart]);
        self.order.next_turns[hart] = match state.activity {
            Activity::Running => self.memory.turn(hart).unwrap_or(0).max(hot.cycle),
            Activity::Stopped => u64::MAX,
            Activity::Waiting | Activity::Suspended { .. } | Activity::BackingOff { .. } => {
                state.wake_cycle(hot, now, self.order.cycles_per_tick)
            }
        };
    }

    /// An interrupt line of a hart went up at `now`.
    pub(crate) fn wake(&mut self, hart: usize, now: u64) {
        if self.harts[hart].activity != Activity::Running {
            self.update_next_turn(hart, now);
        }
    }

    /// The turns of harts that wait for lines may have come earlier.
    #[inline]
    fn note_moved_turns(&mut self) {
        if self.memory.take_moved() {
            for hart in 0..self.harts.len() {
                if self.memory.turn(hart).is_some() {
                    self.update_next_turn(hart, self.memory.hot[hart].cycle);
                }
            }
        }
    }

    /// The instruction that a hart waits with is not executed after all, because its transaction lost.
    pub(crate) fn leave_queue_early(&mut self, hart: usize) {
        if let Some(request) = self.memory.leave_queue(hart) {
            let now = self.memory.horizon().min(request.start);
            let hot = &mut self.memory.hot[hart];
            hot.cycle = hot.cycle.max(now);
        }
    }

    /// The hart did something to which other harts may react, so it must not run far ahead of them.
    pub(crate) fn yield_soon(&mut self, hart: usize) {
        let quantum = self.quantum_cycles();
        let hot = &mut self.memory.hot[hart];
        hot.limit = hot.limit.min(hot.cycle + quantum);
    }
}

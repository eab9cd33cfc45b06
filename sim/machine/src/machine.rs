//! The machine: harts, memory and devices, and the order in which they step.
//!
//! The hart whose clock is furthest behind takes the next turn. It runs until it is a quantum ahead of the next one, or until
//! the next device event, so that no two running harts are ever further apart than a quantum and one stall. Everything
//! happens on one host thread; nothing depends on the host.

use crate::accounting::critical_sections::{CriticalSections, LockHint};
use crate::accounting::statistics::{SAMPLE_CYCLES, Statistics};
use crate::accounting::trace::{Doing, Trace};
use crate::configuration::{Configuration, Gear};
use crate::console::Console;
use crate::debug::Debug;
use crate::device_tree::{self, EXTENSIONS, VIRTIO_SLOTS_MAX};
use crate::error::MachineError;
use crate::execute::code::CodeCache;
use crate::execute::position::Position;
use crate::hart::{Activity, Hart, INTERRUPT_TIMER};
use crate::loader;
use crate::planted::PlantedFault;
use crate::saving::changes::Changed;
use crate::symbols::SymbolTable;
use crate::transaction::Transactions;
use concord_abi::exit::Exit;
use concord_abi::hint::Hint;
use concord_abi::htm;
use concord_dev::{Bus, Finish};
use concord_htm::check::Checker;
use concord_htm::policy::Mode;
use concord_mem::hot::HotState;
use concord_mem::ram::{PAGE_BYTES, Ram};
use concord_mem::system::MemorySystem;

/// A hart that nobody waits for still comes back after this many cycles, so that limits are looked at and every sample is of
/// another place.
const TURN_CYCLES_MAX: u64 = SAMPLE_CYCLES;

/// Decoded code may take this share of the guest memory that is touched, and this much in any case.
const CODE_SHARE: u64 = 12;
const CODE_BYTES_MIN: u64 = 4 << 20;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub exit: Exit,
    /// What the guest reported with it; 0 unless it failed.
    pub code: u64,
    /// Who ended it, where a hart did.
    pub hart: Option<usize>,
}

/// Something that happened in a turn and that somebody outside may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Marker(u64),
    RegionBegin,
    RegionEnd,
    Gear(Gear),
}

/// A whole machine.
pub struct Machine {
    pub(crate) configuration: Configuration,
    /// What resuming has changed of the configuration, the first change first.
    pub(crate) changed: Vec<Changed>,
    pub(crate) harts: Vec<Hart>,
    pub(crate) memory: MemorySystem,
    pub(crate) bus: Bus,
    pub(crate) code: CodeCache,
    pub(crate) statistics: Statistics,
    pub(crate) critical_sections: CriticalSections,
    pub(crate) console: Console,
    pub(crate) symbols: Option<SymbolTable>,
    pub(crate) cycles_per_tick: u64,
    /// For each hart, the clock value of its next turn; [`u64::MAX`] when it has none in sight.
    pub(crate) next_turns: Vec<u64>,
    /// The harts whose external interrupt line is up, as the interrupt controller last said.
    pub(crate) external_interrupts: u64,
    /// Instructions retired by all harts.
    pub(crate) instructions: u64,
    pub(crate) events: Vec<(usize, Event)>,
    pub(crate) end: Option<End>,
    pub(crate) trace: Trace,
    pub(crate) transactions: Transactions,
    /// A transaction lives, or the isolation checker watches: accesses and walks that the line table does not answer are looked
    /// at more closely.
    pub(crate) watched: bool,
    pub(crate) checker: Option<Checker>,
    /// What the checker found.
    pub(crate) violation: Option<String>,
    pub(crate) debug: Debug,
    /// See [`crate::planted`].
    pub(crate) planted: Option<PlantedFault>,
}

impl Machine {
    /// Builds the machine and loads the kernel: the state before the first instruction.
    pub fn new(configuration: Configuration) -> Result<Machine, MachineError> {
        let mut machine = Machine::bare(configuration)?;
        let configuration = &machine.configuration;
        let ram = &machine.memory.ram;
        let loaded = loader::load(ram.memory(), &configuration.kernel, configuration.initrd.as_deref())?;
        let has_transactions = configuration.board.transactions.mode != Mode::None;
        let extensions: Vec<&str> =
            EXTENSIONS.iter().copied().filter(|name| has_transactions || *name != htm::EXTENSION).collect();
        let tree = device_tree::build(
            &configuration.board,
            &configuration.append,
            loaded.initrd.clone(),
            configuration.seed,
            // Used or not, as on QEMU's board: behind the slots that disks may take are those of net and entropy.
            VIRTIO_SLOTS_MAX,
            &extensions,
        )?;
        loader::write_device_tree(ram.memory(), &loaded, &tree)?;
        for range in [Some(loaded.kernel.clone()), loaded.initrd.clone()].into_iter().flatten() {
            machine.memory.note_loaded(range.start, range.end - range.start);
        }
        machine.memory.note_loaded(loaded.device_tree_address, tree.len() as u64);
        machine.symbols = loaded.symbols;
        machine.start_hart(0, loaded.entry, loaded.device_tree_address, 0);
        if machine.configuration.check_isolation {
            machine.watch_isolation();
        }
        Ok(machine)
    }

    /// The machine with empty memory and no hart started.
    pub(crate) fn bare(configuration: Configuration) -> Result<Machine, MachineError> {
        let board = &configuration.board;
        board.validate()?;
        let ram = Ram::new(board.memory.size_bytes)?;
        let harts = board.harts.count;
        let code = CodeCache::new(ram.pages());
        let mut memory = MemorySystem::new(ram, harts, configuration.model(), configuration.seed);
        memory.set_timed(configuration.gear == Gear::Timed);
        Ok(Machine {
            bus: Bus::new(configuration.bus())?,
            harts: vec![Hart::default(); harts],
            memory,
            code,
            statistics: Statistics::new(harts),
            critical_sections: CriticalSections::new(harts),
            console: Console::default(),
            symbols: None,
            cycles_per_tick: board.clock.frequency_hertz / board.clock.timebase_hertz,
            next_turns: vec![u64::MAX; harts],
            external_interrupts: 0,
            instructions: 0,
            events: Vec::new(),
            end: None,
            trace: Trace::default(),
            transactions: Transactions::new(harts, configuration.policy(), configuration.seed),
            watched: false,
            checker: None,
            violation: None,
            debug: Debug::default(),
            planted: None,
            changed: Vec::new(),
            configuration,
        })
    }

    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub fn harts(&self) -> &[Hart] {
        &self.harts
    }

    /// Each hart's registers, clock and instruction count.
    pub fn hot_states(&self) -> &[HotState] {
        &self.memory.hot
    }

    /// Instructions retired by all harts.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How the run ended, once it has.
    pub fn ended(&self) -> Option<End> {
        self.end
    }

    /// The machine's clock: that of the hart or event that is next.
    pub fn clock(&self) -> u64 {
        let turn = self.next_turns.iter().copied().min().unwrap_or(u64::MAX);
        match turn.min(self.bus.next_event_cycle()) {
            u64::MAX => self.memory.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0),
            clock => clock,
        }
    }

    /// The cycles until the next turn or event when every hart sleeps; 0 while one runs.
    pub(crate) fn idle_gap_cycles(&self) -> u64 {
        if self.harts.iter().any(Hart::is_busy) {
            return 0;
        }
        let latest = self.memory.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0);
        match self.next_hart().1.min(self.bus.next_event_cycle()) {
            u64::MAX => u64::MAX,
            next => next.saturating_sub(latest),
        }
    }

    /// The kernel's symbols, from a file instead of from the kernel.
    pub fn set_symbols(&mut self, symbols: SymbolTable) {
        self.symbols = Some(symbols);
    }

    pub fn gear(&self) -> Gear {
        if self.memory.is_timed() { Gear::Timed } else { Gear::Functional }
    }

    fn quantum_cycles(&self) -> u64 {
        let order = &self.configuration.board.order;
        if self.memory.is_timed() { order.quantum_cycles } else { order.functional_quantum_cycles }
    }

    /// Runs the next turn or device event. False when there is none: every hart sleeps and nothing will wake one.
    /// No hart retires more than about `instructions_max` instructions in it.
    pub fn step(&mut self, instructions_max: u64) -> bool {
        if let Some(broken) = self.debug.take_broken_turn() {
            self.memory.hot[broken.hart].limit = broken.limit;
            self.turn(broken.hart, Some(broken.inside_run));
            return true;
        }
        let (hart, first, second) = self.next_hart();
        let event = self.bus.next_event_cycle();
        if event <= first {
            if event == u64::MAX {
                return false;
            }
            self.with_committed_memory(|machine| {
                machine.bus.advance(event, machine.memory.ram.memory());
                machine.after_devices(event);
            });
            return true;
        }
        self.begin_turn(hart, first, second, event, instructions_max);
        self.turn(hart, None);
        true
    }

    /// Runs a turn, or what is left of one that the debugger broke off (inside a run of ops or not).
    fn turn(&mut self, hart: usize, broken_off: Option<bool>) {
        let before = self.memory.hot[hart].instructions;
        if broken_off.is_none() {
            self.take_interrupt(hart);
        }
        match (self.memory.is_timed(), broken_off.is_some() || self.debug.is_active()) {
            (true, false) => self.run_turn::<true>(hart),
            (false, false) => self.run_turn::<false>(hart),
            (true, true) => self.run_turn_debugged::<true>(hart, broken_off),
            (false, true) => self.run_turn_debugged::<false>(hart, broken_off),
        }
        self.instructions += self.memory.hot[hart].instructions - before;
        if self.debug.has_broken_turn() {
            return;
        }
        if self.watched {
            self.note_evictions();
        }
        if !self.memory.is_timed() {
            // Nobody else ran since the reservation was made, and nobody may while it holds (see `sim/mem`).
            self.memory.core(hart).reservation = None;
        }
        self.statistics.sample(hart, self.harts[hart].privilege, &self.memory.hot[hart]);
        self.update_next_turn(hart, self.memory.hot[hart].cycle);
    }

    /// The hart whose turn is next, when that is, and when the turn of the one after it is.
    fn next_hart(&self) -> (usize, u64, u64) {
        let (mut hart, mut first, mut second) = (0, u64::MAX, u64::MAX);
        for (index, turn) in self.next_turns.iter().copied().enumerate() {
            if turn < first {
                (hart, second, first) = (index, first, turn);
            } else if turn < second {
                second = turn;
            }
        }
        (hart, first, second)
    }

    fn begin_turn(&mut self, hart: usize, now: u64, other: u64, event: u64, instructions_max: u64) {
        let quantum = self.quantum_cycles();
        let cycles_per_tick = self.cycles_per_tick;
        let hot = &mut self.memory.hot[hart];
        let slept = now.saturating_sub(hot.cycle);
        hot.cycle += slept;
        if !self.harts[hart].is_busy() {
            self.statistics.slept(hart, slept);
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
                    self.critical_sections.stall_was_cut(hart, id, unspent_cycles);
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
        let (state, hot) = (&mut self.harts[hart], &mut self.memory.hot[hart]);
        let mut limit = other.saturating_add(quantum).min(event).min(hot.cycle + TURN_CYCLES_MAX.min(instructions_max));
        let timer = state.timer_cycle(cycles_per_tick);
        if state.sie & INTERRUPT_TIMER != 0 && timer > hot.cycle {
            limit = limit.min(timer);
        }
        hot.limit = limit.max(hot.cycle + 1);
    }

    /// Books a hart's cycles since it last did on what it was doing.
    pub(crate) fn account(&mut self, hart: usize) {
        let now = self.memory.hot[hart].cycle;
        self.trace.account(hart, &self.harts[hart], now);
        let disk_use_cycles = self.bus.disk_use_cycles(now);
        self.harts[hart].account(now, disk_use_cycles);
    }

    /// Works out when a hart's next turn is, given that something may have happened to it at `now`.
    pub(crate) fn update_next_turn(&mut self, hart: usize, now: u64) {
        let (state, hot) = (&self.harts[hart], &self.memory.hot[hart]);
        self.next_turns[hart] = match state.activity {
            Activity::Running => hot.cycle,
            Activity::Stopped => u64::MAX,
            Activity::Waiting | Activity::Suspended { .. } | Activity::BackingOff { .. } => {
                state.wake_cycle(hot, now, self.cycles_per_tick)
            }
        };
    }

    /// Forgets all decoded code when it takes more than its share of the host's memory. Between turns; the guest cannot tell.
    pub(crate) fn trim_code(&mut self) {
        let touched_bytes = self.memory.touched_pages().count() as u64 * PAGE_BYTES;
        let size_bytes = self.code.size_bytes() as u64;
        if size_bytes > CODE_BYTES_MIN.max(touched_bytes / CODE_SHARE) {
            self.code.clear();
            for hart in 0..self.harts.len() {
                self.memory.core(hart).fetch_translations.forget_code();
            }
        }
    }

    /// An interrupt line of a hart went up at `now`.
    pub(crate) fn wake(&mut self, hart: usize, now: u64) {
        if self.harts[hart].activity != Activity::Running {
            self.update_next_turn(hart, now);
        }
    }

    /// The hart did something that others may react to, so it must not run far ahead of them.
    pub(crate) fn yield_soon(&mut self, hart: usize) {
        let quantum = self.quantum_cycles();
        let hot = &mut self.memory.hot[hart];
        hot.limit = hot.limit.min(hot.cycle + quantum);
    }

    /// Decoded code of pages that were written to is forgotten.
    #[inline]
    pub(crate) fn drop_stale_code(&mut self) {
        let stale = self.memory.stale_code();
        if !stale.is_empty() {
            self.code.invalidate(stale);
        }
    }

    /// A hart accessed a device register.
    pub(crate) fn after_device_access(&mut self, hart: usize) {
        let now = self.memory.hot[hart].cycle;
        self.after_devices(now);
        let event = self.bus.next_event_cycle();
        let pending = self.harts[hart].external_interrupt;
        let hot = &mut self.memory.hot[hart];
        hot.limit = hot.limit.min(event.max(hot.cycle + 1));
        if pending {
            hot.limit = hot.limit.min(hot.cycle + 1);
        }
    }

    /// Devices did something at `now`: interrupt lines, memory and the end of the run may have changed.
    fn after_devices(&mut self, now: u64) {
        let written: Vec<(u64, u64)> = self.bus.dma_writes().collect();
        for (address, length) in written {
            self.resolve_device_write(address, length, now);
            self.memory.note_device_write(address, length);
        }
        self.drop_stale_code();
        let lines = self.bus.external_interrupt_harts();
        let mut changed = lines ^ self.external_interrupts;
        self.external_interrupts = lines;
        while changed != 0 {
            let hart = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.harts[hart].external_interrupt = lines >> hart & 1 == 1;
            self.wake(hart, now);
        }
        match self.bus.take_finish() {
            None => {}
            Some(Finish::Pass) => self.end(End { exit: Exit::PoweredOff, code: 0, hart: None }),
            Some(Finish::Fail(code)) => self.end(End { exit: Exit::Failed, code: u64::from(code), hart: None }),
            Some(Finish::Reset) => self.end(End { exit: Exit::Reset, code: 0, hart: None }),
        }
    }

    /// Ends the run. The first end counts.
    pub(crate) fn end(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
        }
        for hot in &mut self.memory.hot {
            hot.limit = 0;
        }
    }

    /// A hint instruction.
    pub(crate) fn hint(&mut self, hart: usize, code: u16, argument: u64) {
        let Some(hint) = Hint::from_code(code) else { return };
        let event = match hint {
            Hint::GearFunctional => Event::Gear(Gear::Functional),
            Hint::GearTimed => Event::Gear(Gear::Timed),
            Hint::Marker => Event::Marker(argument),
            Hint::RegionBegin => Event::RegionBegin,
            Hint::RegionEnd => Event::RegionEnd,
            Hint::Fail => {
                return self.end(End { exit: Exit::Failed, code: argument, hart: Some(hart) });
            }
            // These are not carried out between runs.
            _ => return,
        };
        // Whoever waits for the event sees the machine right after it; a gear is changed between turns.
        self.events.push((hart, event));
        self.memory.hot[hart].limit = 0;
    }

    /// A hint that speaks of a lock, in the middle of a run. It only counts.
    #[inline(never)]
    pub(crate) fn note_lock_hint(&mut self, at: Position, code: u16, lock: u64, call_site: u64) {
        let now = self.now(at);
        let transaction = self.transactions.active_id(at.hart);
        if let Some(spun) =
            self.critical_sections.hint(&LockHint { hart: at.hart, code, lock, call_site, now, transaction })
        {
            self.trace.push(at.hart, Doing::Spinning { lock: spun.lock }, spun.since, now);
        }
        if let Some(hint @ (Hint::LockSpinBegin | Hint::LockAcquired | Hint::LockReleased)) = Hint::from_code(code) {
            let site = self.pc_in_run(at);
            self.statistics.lock(at.hart, hint, (lock, site), now, &mut self.trace);
        }
    }

    /// What happened since the last call, with the hart it happened on. Applies what the machine itself must do about it.
    pub(crate) fn take_events(&mut self) -> Vec<(usize, Event)> {
        let events = std::mem::take(&mut self.events);
        for (_, event) in &events {
            match event {
                Event::Gear(gear) => {
                    self.memory.set_timed(*gear == Gear::Timed);
                    for hart in 0..self.harts.len() {
                        self.update_context(hart);
                    }
                }
                Event::RegionBegin => self.begin_region(),
                Event::RegionEnd => self.end_region(),
                Event::Marker(_) => {}
            }
        }
        events
    }

    /// Types at the console.
    pub fn type_at_console(&mut self, bytes: &[u8]) {
        self.bus.console_input(bytes);
        let now = self.clock();
        self.after_devices(now);
    }
}

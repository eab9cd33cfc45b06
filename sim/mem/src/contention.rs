//! Queues of contended lines: a request for a line that is busy with another core's request waits for its turn.
//!
//! The model keeps of a directory's or a bus's blocking controller only the queue, as Sniper (Carlson, Heirman and
//! Eeckhout, SC 2011) and zsim (Sanchez and Kozyrakis, ISCA 2013) do for shared resources. gem5's Ruby (Binkert et al.,
//! "The gem5 simulator", 2011) has transient states, stalled messages and unblock messages instead. Departures from such
//! a controller:
//!
//! - A request that is queued has its turn fixed when it arrives: the end of the request before it, and the window of the
//!   owner if it takes the line from one. It comes earlier only where a request before it leaves the queue before its own
//!   turn, and never later, so that a wait is bounded by a service for each other core.
//! - The order of arrival is that of the simulation, which is exact to a quantum.
//! - Page walks, instruction fetches, deferred additions at a commit, and the second part of an access that crosses a line
//!   do not queue. They pay what is left of the line's queue, and take the line at once. Devices neither wait nor make others wait.
//!
//! While a core waits, its instruction has not executed. It executes at [`Request::start`], as any access does then.

use crate::cache::Line;
use serde::{Deserialize, Serialize};

/// The costs of contended lines, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentionModel {
    /// How long an owner may use its line before the request that comes next takes it away: the part of a transfer's
    /// latency that passes before the owner answers. Each one is drawn from the seed between a half and three halves of
    /// this, because loops fall into step with a constant.
    pub window_cycles: u64,
    /// How long a load that needs no owner's copy keeps its line busy.
    pub shared_busy_cycles: u64,
    /// How long each request keeps the bus busy for all others; 0 for a bus without a limit.
    pub bus_busy_cycles: u64,
}

/// What queues cost a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounters {
    /// Requests that found their line or the bus busy.
    #[serde(default)]
    pub queued_requests: u64,
    /// Cycles from these requests to their turns. `stall_cycles` does not contain them, except those of walks, fetches
    /// and second parts.
    #[serde(default)]
    pub queued_cycles: u64,
}

/// A core's request in the queue of a line. A core has one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub line: Line,
    pub store: bool,
    /// When the request came.
    pub since: u64,
    /// When its turn comes.
    pub start: u64,
    /// The part of its latency that passes before its turn.
    pub paid_cycles: u64,
    /// What it adds to the queue, its window included.
    pub slot_cycles: u64,
    /// Its turn has come and its instruction is executing.
    pub is_served: bool,
}

/// How long a line is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Busy {
    pub line: Line,
    /// When the last request so far is complete.
    pub until: u64,
    /// The last request leaves the line without an owner.
    pub shared: bool,
}

/// What a new request would do if its line were idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub store: bool,
    /// The request's whole latency if it takes the line from an owner, and if it does not.
    pub owned_latency_cycles: u64,
    pub shared_latency_cycles: u64,
}

/// The queues of all lines.
pub(crate) struct Queues {
    model: Option<ContentionModel>,
    requests: Vec<Option<Request>>,
    /// The number of requests in queues.
    waiting: usize,
    /// The first turn of them all; [`u64::MAX`] if nobody waits.
    earliest_start: u64,
    /// Turns have come earlier since the owner of the queues last asked.
    moved: bool,
    busy: BusyLines,
    /// No line is busy until then or before: every core's clock has passed it, or will before its next access.
    horizon: u64,
    bus_until: u64,
    random: u64,
    counters: Vec<QueueCounters>,
}

/// The queues as a snapshot has them.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SavedQueues {
    pub requests: Vec<Option<Request>>,
    /// In the order of lines.
    busy: Vec<Busy>,
    horizon: u64,
    bus_until: u64,
    random: u64,
    counters: Vec<QueueCounters>,
}

/// No clock of a machine comes here.
const TIME_CYCLES_MAX: u64 = 1 << 62;

/// The generator's initial state: another sequence than that of the misses' perturbation, and never zero.
fn random_of(seed: u64) -> u64 {
    (seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x3c6e_f372_fe94_f82b).max(1)
}

impl Queues {
    pub fn new(model: Option<ContentionModel>, cores: usize, seed: u64) -> Queues {
        Queues {
            model,
            requests: vec![None; cores],
            waiting: 0,
            earliest_start: u64::MAX,
            moved: false,
            busy: BusyLines::default(),
            horizon: 0,
            bus_until: 0,
            random: random_of(seed),
            counters: vec![QueueCounters::default(); cores],
        }
    }

    pub fn reseed(&mut self, seed: u64) {
        self.random = random_of(seed);
    }

    #[inline]
    pub fn is_modelled(&self) -> bool {
        self.model.is_some()
    }

    /// Forgets every queue: the gear without caches has none.
    pub fn clear(&mut self) {
        self.requests.fill(None);
        self.waiting = 0;
        self.earliest_start = u64::MAX;
        self.busy = BusyLines::default();
        self.bus_until = 0;
    }

    pub fn counters(&self) -> &[QueueCounters] {
        &self.counters
    }

    pub fn reset_counters(&mut self) {
        self.counters.fill(QueueCounters::default());
    }

    pub fn request(&self, core: usize) -> Option<&Request> {
        self.requests[core].as_ref()
    }

    /// The requests in queues.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().flatten()
    }

    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Every access from now on happens at this time or later.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        self.horizon = self.horizon.max(now);
    }

    /// The first turn of the others' requests.
    #[inline]
    pub fn earliest_start(&self, core: usize) -> u64 {
        if self.waiting > 0 && self.requests[core].is_some() {
            let others = self.requests.iter().enumerate().filter(|(other, _)| *other != core);
            return others.filter_map(|(_, request)| Some(request.as_ref()?.start)).min().unwrap_or(u64::MAX);
        }
        self.earliest_start
    }

    /// Whether somebody waits for a line, so that every access to it must be looked at.
    #[inline]
    pub fn is_waited_for(&self, line: Line) -> bool {
        self.waiting > 0 && self.requests().any(|request| request.line == line)
    }

    /// Whether an access at `now` cannot meet a queue, whatever state its line is in.
    #[inline]
    pub fn is_clear(&self, line: Line, now: u64) -> bool {
        self.waiting == 0 && self.bus_until <= now && self.busy.find(line).is_none_or(|busy| busy.until <= now)
    }

    /// Takes up the core's request for a line whose turn has come at `now`. `None` if it has no request for this line; a
    /// request for another one, which its instruction no longer makes, leaves its queue. False if its turn is yet to
    /// come.
    pub fn resume(&mut self, core: usize, line: Line, now: u64) -> Option<bool> {
        let request = self.requests[core].as_mut()?;
        if request.line == line {
            request.is_served = now >= request.start;
            return Some(request.is_served);
        }
        self.leave(core, now);
        None
    }

    /// Whether an access at `now` that needs no request comes too late: the turn of a request that it conflicts with has
    /// come before.
    pub fn is_late(&self, line: Line, store: bool, now: u64) -> bool {
        self.requests().any(|first| first.line == line && first.start <= now && (first.store || store))
    }

    /// Puts a request at `now` into the queue of its line if it must wait. `is_late` says that it must anyway, behind the
    /// requests that wait already.
    pub fn enter(&mut self, core: usize, line: Line, need: Need, now: u64, is_late: bool) -> bool {
        let Some(model) = self.model else { return false };
        let on_bus = now.max(self.bus_until);
        let before = self.busy.find(line).filter(|busy| busy.until > self.horizon).copied();
        let before = before.filter(|busy| is_late || busy.until > on_bus);
        if before.is_none() && on_bus == now {
            return false;
        }
        self.bus_until = if model.bus_busy_cycles == 0 { 0 } else { on_bus + model.bus_busy_cycles };
        let takes_from_owner = before.is_some_and(|before| !before.shared);
        let joins_readers = !takes_from_owner && !need.store;
        let window_cycles = if takes_from_owner { self.draw_window(model.window_cycles) } else { 0 };
        let latency = if takes_from_owner { need.owned_latency_cycles } else { need.shared_latency_cycles };
        let hold_cycles =
            if joins_readers { model.shared_busy_cycles } else { latency.saturating_sub(window_cycles) }.max(1);
        // A turn comes after the request, so that a request whose turn is over can be told from a new one.
        let end = before.map_or(0, |before| before.until).max(on_bus);
        let start = (end + window_cycles).max(now + 1);
        let until = start + hold_cycles;
        self.busy.set(Busy { line, until, shared: !need.store }, self.horizon);
        self.requests[core] = Some(Request {
            line,
            store: need.store,
            since: now,
            start,
            paid_cycles: window_cycles,
            slot_cycles: until - end,
            is_served: false,
        });
        self.waiting += 1;
        self.earliest_start = self.earliest_start.min(start);
        self.counters[core].queued_requests += 1;
        true
    }

    /// Takes the core's request, which its instruction does not make after all, out of its queue at `now`. If its turn has
    /// not come, those behind it move up; else it has been served to no use.
    pub fn leave(&mut self, core: usize, now: u64) -> Option<Request> {
        let request = self.take(core, now)?;
        if now < request.start
            && let Some(busy) = self.busy.find(request.line).copied()
        {
            let behind = self.requests().filter(|other| other.line == request.line && other.start > request.start);
            // All move by the same, so that they keep their order and their distances, and none to before it came.
            let rooms_cycles = behind.map(|other| other.start.saturating_sub(now.max(other.since) + 1));
            let room_cycles = rooms_cycles.min().unwrap_or(busy.until.saturating_sub(now + 1));
            let cycles = request.slot_cycles.min(room_cycles);
            self.busy.set(Busy { until: busy.until - cycles, ..busy }, self.horizon);
            for other in self.requests.iter_mut().flatten() {
                if other.line == request.line && other.start > request.start {
                    other.start -= cycles;
                    self.moved = true;
                }
            }
            self.find_earliest_start();
        }
        Some(request)
    }

    fn take(&mut self, core: usize, now: u64) -> Option<Request> {
        let request = self.requests[core].take()?;
        self.waiting -= 1;
        self.counters[core].queued_cycles += request.start.min(now).saturating_sub(request.since);
        self.find_earliest_start();
        Some(request)
    }

    fn find_earliest_start(&mut self) {
        self.earliest_start = self.requests().map(|request| request.start).min().unwrap_or(u64::MAX);
    }

    /// Whether a turn has come earlier since [`Queues::take_moved`].
    pub fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether a turn has come earlier since the last call.
    #[inline]
    pub fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Takes the core's request for a line out of its queue if its turn has come. Returns what it has paid of its latency.
    #[inline]
    pub fn serve(&mut self, core: usize, line: Line) -> Option<u64> {
        if self.waiting == 0 || !self.requests[core].is_some_and(|request| request.is_served && request.line == line) {
            return None;
        }
        self.take(core, u64::MAX).map(|request| request.paid_cycles)
    }

    /// The cycles that a request at `now` which does not queue has to wait for its line and the bus. If it need not wait,
    /// it keeps its line busy for `hold_cycles`, or as a load that needs no owner's copy.
    pub fn pass(&mut self, core: usize, line: Line, store: bool, hold_cycles: Option<u64>, now: u64) -> u64 {
        let Some(model) = self.model else { return 0 };
        let on_bus = now.max(self.bus_until);
        self.bus_until = if model.bus_busy_cycles == 0 { 0 } else { on_bus + model.bus_busy_cycles };
        let free =
            self.busy.find(line).filter(|busy| busy.until > self.horizon).map_or(0, |busy| busy.until).max(on_bus);
        if free > now {
            self.counters[core].queued_requests += 1;
            self.counters[core].queued_cycles += free - now;
            return free - now;
        }
        let until = now + hold_cycles.unwrap_or(model.shared_busy_cycles);
        self.busy.set(Busy { line, until, shared: !store }, self.horizon);
        0
    }

    fn draw_window(&mut self, window_cycles: u64) -> u64 {
        // xorshift64 (Marsaglia 2003), as for the perturbation of misses.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        window_cycles / 2 + (self.random >> 33) % (window_cycles + 1)
    }

    pub fn save(&self) -> SavedQueues {
        SavedQueues {
            requests: self.requests.clone(),
            busy: self.busy.alive(self.horizon),
            horizon: self.horizon,
            bus_until: self.bus_until,
            random: self.random,
            counters: self.counters.clone(),
        }
    }

    /// Takes over a saved state of a machine with `lines` lines of RAM.
    ///
    /// # Errors
    /// What this memory system cannot have reached.
    pub fn restore(&mut self, saved: SavedQueues, lines: usize, timed: bool) -> Result<(), &'static str> {
        let ensure = crate::system::ensure;
        let cores = self.requests.len();
        ensure(saved.requests.len() == cores && saved.counters.len() == cores, "the queues of other cores")?;
        let is_empty = saved.busy.is_empty() && saved.requests.iter().all(Option::is_none);
        ensure(is_empty || timed && self.model.is_some(), "queues where the board has none")?;
        ensure(saved.random != 0, "the windows' generator stands still")?;
        ensure(saved.horizon.max(saved.bus_until) < TIME_CYCLES_MAX, "the queues are beyond all time")?;
        for pair in saved.busy.windows(2) {
            ensure(pair[0].line < pair[1].line, "a line is busy twice")?;
        }
        for busy in &saved.busy {
            ensure((busy.line as usize) < lines, "a busy line is outside RAM")?;
            ensure(saved.horizon < busy.until && busy.until < TIME_CYCLES_MAX, "a line is busy at an impossible time")?;
        }
        for request in saved.requests.iter().flatten() {
            let busy = saved.busy.binary_search_by_key(&request.line, |busy| busy.line);
            ensure(busy.is_ok_and(|place| saved.busy[place].until > request.start), "a line is waited for and idle")?;
            ensure(request.since < request.start && !request.is_served, "a request waits for an impossible turn")?;
        }
        self.waiting = saved.requests.iter().flatten().count();
        self.requests = saved.requests;
        self.find_earliest_start();
        self.busy = BusyLines::default();
        for busy in saved.busy {
            self.busy.set(busy, saved.horizon);
        }
        (self.horizon, self.bus_until) = (saved.horizon, saved.bus_until);
        (self.random, self.counters) = (saved.random, saved.counters);
        Ok(())
    }
}

/// Busy lines by number: a hash table with linear probing. An entry that is no longer busy stays until the table fills.
#[derive(Default)]
struct BusyLines {
    /// A power of two of slots, or none.
    slots: Vec<Busy>,
    /// The line of each slot once more: most searches end at a free slot, and need no more of the host's memory.
    lines: Vec<Line>,
    used: usize,
}

const NO_LINE: Line = Line::MAX;
const NOT_BUSY: Busy = Busy { line: NO_LINE, until: 0, shared: false };
/// The fewest slots of a table. A choice: enough for a line a hart and more.
const SLOTS_MIN: usize = 256;

impl BusyLines {
    /// The slot that holds a line, or the free slot in which it belongs.
    #[inline]
    fn slot(&self, line: Line) -> usize {
        let mask = self.lines.len() - 1;
        // Fibonacci hashing (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
        let mut slot = (line.wrapping_mul(0x9e37_79b9) >> 16) as usize & mask;
        while self.lines[slot] != line && self.lines[slot] != NO_LINE {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    fn find(&self, line: Line) -> Option<&Busy> {
        if self.used == 0 {
            return None;
        }
        let slot = self.slot(line);
        (self.lines[slot] == line).then(|| &self.slots[slot])
    }

    /// Enters a line, and drops lines that are not busy after `horizon` if it needs their room.
    fn set(&mut self, busy: Busy, horizon: u64) {
        if self.used * 2 >= self.slots.len() {
            self.rebuild(horizon);
        }
        let slot = self.slot(busy.line);
        self.used += usize::from(self.lines[slot] == NO_LINE);
        (self.lines[slot], self.slots[slot]) = (busy.line, busy);
    }

    #[cold]
    fn rebuild(&mut self, horizon: u64) {
        let alive = self.alive(horizon);
        let size = (alive.len() * 4 + 1).next_power_of_two().max(SLOTS_MIN);
        self.slots = vec![NOT_BUSY; size];
        self.lines = vec![NO_LINE; size];
        self.used = alive.len();
        for busy in alive {
            let slot = self.slot(busy.line);
            (self.lines[slot], self.slots[slot]) = (busy.line, busy);
        }
    }

    /// The lines that are busy after `horizon`, in order.
    fn alive(&self, horizon: u64) -> Vec<Busy> {
        let mut alive: Vec<Busy> =
            self.slots.iter().filter(|busy| busy.line != NO_LINE && busy.until > horizon).copied().collect();
        alive.sort_unstable_by_key(|busy| busy.line);
        alive
    }
}

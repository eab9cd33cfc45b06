//! Random accesses of several cores, in an order of turns as the machine has it: a core whose instruction waits for its line
//! goes on at its turn, and nobody is further behind the others than [`LAG_CYCLES`].

use super::reference::{Fate, Mesi, Reference};
use crate::cache::{Geometry, State, line_of, physical_line};
use crate::contention::ContentionModel;
use crate::fault::Access;
use crate::line_table::{self, LineTable, NO_LINE, access_tag};
use crate::ram::{RAM_BASE, Ram};
use crate::system::{Admission, MemorySystem, Model, Place, Refusal};
use crate::translation::Context;
use proptest::collection::vec;
use proptest::prelude::*;

const RAM_BYTES: u64 = 4 << 20;
/// Page tables: the root of Sv39, two tables below it, and the root of Sv48 above it.
const ROOT: u64 = RAM_BASE + 0x10_0000;
const ROOT_SV48: u64 = ROOT + 0x3000;
/// Virtual pages that the leaves of the last level map, two of them eight pages apart in the line table.
const PAGES: u64 = 20;
const WINDOW: u64 = 0x4000_0000;
const HIGH: u64 = 0xffff_ffc0_0000_0000;
/// How far a core may be behind the clock of the one that is furthest ahead.
const LAG_CYCLES: u64 = 300;

/// One step of a core, or an event around it.
#[derive(Clone, Debug)]
pub enum Step {
    Access {
        core: usize,
        page: u64,
        line: u64,
        store: bool,
    },
    Reserved {
        core: usize,
        page: u64,
        line: u64,
        store: bool,
    },
    Fetch {
        core: usize,
        page: u64,
        line: u64,
    },
    Context {
        core: usize,
        space: u64,
        user: bool,
        sum: bool,
        mxr: bool,
    },
    Fence {
        core: usize,
        page: Option<u64>,
    },
    FenceFetch {
        core: usize,
    },
    Device {
        line: u64,
        lines: u64,
    },
    Map {
        page: u64,
        physical: u64,
        flags: u64,
    },
    Code {
        page: u64,
    },
    Gear {
        timed: bool,
    },
    /// The core has something else to do for a while.
    Work {
        core: usize,
        cycles: u64,
    },
    /// The core's transaction loses: what it waits for is not done.
    Leave {
        core: usize,
    },
    Resume,
}

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Plain {
        address: u64,
        store: bool,
    },
    /// Load-reserved and store-conditional.
    Reserved {
        address: u64,
        store: bool,
    },
}

/// A whole test case.
#[derive(Clone, Debug)]
pub struct Case {
    pub cores: usize,
    pub model: Model,
    pub seed: u64,
    /// For each step, how far its core is behind.
    pub lags: Vec<u64>,
    pub steps: Vec<Step>,
}

fn geometry(sets: u32, ways: usize) -> Geometry {
    Geometry { sets: 1 << sets, ways }
}

prop_compose! {
    fn model()(data in (0_u32..4, 1_usize..4), instruction in (0_u32..3, 1_usize..3), more in 0_u32..2, more_ways in 0_usize..3,
        translations in 1_u32..6, perturbation in 0_u64..5) -> Model {
        Model {
            data: geometry(data.0, data.1),
            instruction: geometry(instruction.0, instruction.1),
            second: geometry(data.0 + more, data.1 + more_ways),
            second_latency_cycles: 7,
            memory_latency_cycles: 1_000,
            transfer_latency_cycles: 100_000,
            upgrade_latency_cycles: 10_000_000,
            perturbation_cycles_max: perturbation,
            contention: None,
            translation_entries: 1 << translations,
        }
    }
}

fn step(cores: usize) -> impl Strategy<Value = Step> {
    let core = 0..cores;
    // Mostly a few lines of a few pages, so that cores conflict.
    let page = || prop_oneof![4 => 0..4_u64, 3 => 0..PAGES + 8];
    let line = || prop_oneof![4 => 0..4_u64, 1 => 0..64_u64];
    prop_oneof![
        30 => (core.clone(), page(), line(), any::<bool>())
            .prop_map(|(core, page, line, store)| Step::Access { core, page, line, store }),
        6 => (core.clone(), page(), line(), any::<bool>())
            .prop_map(|(core, page, line, store)| Step::Reserved { core, page, line, store }),
        8 => (core.clone(), page(), line()).prop_map(|(core, page, line)| Step::Fetch { core, page, line }),
        4 => (core.clone(), 0..3_u64, any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(core, space, user, sum, mxr)| Step::Context { core, space, user, sum, mxr }),
        2 => (core.clone(), proptest::option::of(page())).prop_map(|(core, page)| Step::Fence { core, page }),
        1 => core.clone().prop_map(|core| Step::FenceFetch { core }),
        1 => (0..8_u64 * 64, 1..5_u64).prop_map(|(line, lines)| Step::Device { line, lines }),
        2 => (0..PAGES, 0..8_u64, 0..=0xff_u64).prop_map(|(page, physical, flags)| Step::Map { page, physical, flags }),
        1 => (0..8_u64).prop_map(|page| Step::Code { page }),
        1 => proptest::bool::weighted(0.8).prop_map(|timed| Step::Gear { timed }),
        2 => (core.clone(), 0..400_u64).prop_map(|(core, cycles)| Step::Work { core, cycles }),
        1 => core.clone().prop_map(|core| Step::Leave { core }),
        2 => Just(Step::Resume),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    (2_usize..=8, model(), any::<u64>()).prop_flat_map(|(cores, model, seed)| {
        vec((step(cores), 0..=LAG_CYCLES), 1..400).prop_map(move |steps| {
            let (steps, lags) = steps.into_iter().unzip();
            Case { cores, model, seed, lags, steps }
        })
    })
}

prop_compose! {
    /// Costs at which requests meet.
    fn contended()(model in model(), window in 0_u64..=160, shared in 0_u64..=100, bus in prop_oneof![Just(0_u64), 1..30_u64])
        -> Model {
        Model {
            memory_latency_cycles: 100,
            transfer_latency_cycles: 160,
            upgrade_latency_cycles: 70,
            contention: Some(ContentionModel {
                window_cycles: window,
                shared_busy_cycles: shared,
                bus_busy_cycles: bus,
            }),
            ..model
        }
    }
}

fn contended_case() -> impl Strategy<Value = Case> {
    (case(), contended()).prop_map(|(case, model)| Case { model, ..case })
}

/// Both memory systems, which execute the same steps.
pub struct Pair {
    pub system: MemorySystem,
    pub reference: Reference,
    model: Model,
    seed: u64,
    /// What each core waits with.
    waiting: Vec<Option<Instruction>>,
}

impl Pair {
    pub fn new(case: &Case) -> Pair {
        let ram = Ram::new(RAM_BYTES).expect("4 MiB");
        let mut pair = Pair {
            system: MemorySystem::new(ram, case.cores, case.model, case.seed),
            reference: Reference::new(case.model, case.cores, RAM_BYTES, case.seed),
            model: case.model,
            seed: case.seed,
            waiting: vec![None; case.cores],
        };
        let pointer = |table: u64| table >> 12 << 10 | 1;
        for index in [WINDOW >> 30 & 511, HIGH >> 30 & 511] {
            pair.set_entry(ROOT + 8 * index, pointer(ROOT + 0x1000));
        }
        pair.set_entry(ROOT + 0x1000, pointer(ROOT + 0x2000));
        // A megapage for S-mode, a misaligned one, a table outside RAM, a pointer with bits that only leaves may have.
        pair.set_entry(ROOT + 0x1008, RAM_BASE >> 12 << 10 | 0x0f);
        pair.set_entry(ROOT + 0x1010, (RAM_BASE + 0x1000) >> 12 << 10 | 0xcf);
        pair.set_entry(ROOT + 0x1018, pointer(0x1000));
        pair.set_entry(ROOT + 0x1020, pointer(ROOT + 0x2000) | 0x40);
        for index in [0, 511] {
            pair.set_entry(ROOT_SV48 + 8 * index, pointer(ROOT));
        }
        for page in 0..PAGES {
            // Two virtual pages map to each physical one, and the last one maps to a device.
            let flags = [0xcf, 0xdf, 0x0f, 0x1f, 0xc3, 0xd3, 0x07, 0xd9][page as usize % 8];
            let physical = if page == PAGES - 1 { 0x1000_0000 } else { RAM_BASE + page / 2 * 0x1000 };
            pair.set_entry(ROOT + 0x2000 + 8 * page, physical >> 12 << 10 | flags);
        }
        pair.apply(&Step::Gear { timed: true }, 0);
        pair
    }

    fn set_entry(&mut self, address: u64, entry: u64) {
        self.system.ram.write(address, 8, entry);
        self.reference.memory.insert(address, entry);
    }

    /// A virtual address for a page number and a line: mapped pages first, then their surroundings.
    fn address(&self, core: usize, page: u64, line: u64) -> u64 {
        let offset = line * 64 + 8 * (line % 8);
        if self.reference.cores[core].context.satp == 0 {
            return match page {
                0..8 => RAM_BASE + page * 0x1000 + offset,
                8 => 0x1000_0000 + offset,
                _ => RAM_BASE + 0x3f_8000 + (page & 7) * 0x1000 + offset,
            };
        }
        match page - page.min(PAGES - 1) {
            0 if page % 3 == 1 => HIGH + page * 0x1000 + offset,
            0 => WINDOW + page * 0x1000 + offset,
            index @ 1..=5 => WINDOW + (index << 21) + 0x3000 + offset,
            6 => 0x80_0000_0000 + offset,
            7 => 0x8000_0000_0000 + offset,
            _ => WINDOW + (1 << 21) + 0x4000 + offset,
        }
    }

    /// An access as an interpreter makes it: the line table's one comparison, and the memory system if that fails.
    fn access_system(&mut self, core: usize, address: u64, access: Access, admission: Admission) -> Fate {
        let timed = self.system.timed;
        let context = self.system.cores[core].context;
        let user = if context.user { line_table::USER } else { 0 };
        let entry = *self.system.hot[core].lines.entry(LineTable::slot(timed, address));
        let found = if access == Access::Store { entry.write_tag } else { entry.read_tag };
        if found == access_tag(timed, address, 8, user) {
            let shift = line_table::shift(timed);
            let physical = u64::from(entry.line) << shift | address & ((1 << shift) - 1);
            assert_eq!(address.wrapping_add(entry.addend), self.system.ram.host_address(physical) as u64);
            return Fate::Done(physical);
        }
        match self.system.access(core, address, access, 0, admission) {
            Ok(Place::Ram(physical) | Place::Device(physical)) => Fate::Done(physical),
            Err(Refusal::Fault(fault)) => Fate::Fault(fault.kind),
            Err(Refusal::Queued) => Fate::Queued,
        }
    }

    fn access(&mut self, core: usize, address: u64, store: bool, admission: Admission) -> Fate {
        let access = if store { Access::Store } else { Access::Load };
        let found = self.access_system(core, address, access, admission);
        let expected = self.reference.access(core, address, access, admission);
        assert_eq!(found, expected, "{access:?} of {address:#x}");
        found
    }

    /// A load whose line comes as for a store.
    fn own(&mut self, core: usize, address: u64) -> Fate {
        let found = self.system.translate(core, address, Access::Load, 0);
        let expected = self.reference.translate(core, address, Access::Load);
        assert_eq!(found.map(|(physical, _)| physical).map_err(|fault| fault.kind), expected, "{address:#x}");
        if let Ok(physical) = expected
            && self.system.ram.contains(physical, 8)
        {
            let found = self.system.own(core, physical, 0);
            assert_eq!(found.is_ok(), self.reference.own(core, physical >> 6), "{address:#x} is owned");
            if found.is_err() {
                return Fate::Queued;
            }
        }
        self.access(core, address, false, Admission::Exempt)
    }

    fn reserved(&mut self, core: usize, address: u64, store: bool) -> Option<Fate> {
        if !self.reference.timed {
            // In the functional gear a reservation ends with the turn, which the machine implements.
            return None;
        }
        if !store {
            let fate = self.own(core, address);
            let physical = match fate {
                Fate::Done(physical) if self.system.ram.contains(physical, 8) => Some(physical),
                Fate::Queued => return Some(fate),
                _ => None,
            };
            self.system.core(core).reservation = physical.map(line_of);
            self.reference.cores[core].reservation = physical.map(|physical| physical >> 6);
            return Some(fate);
        }
        let found = self.system.core(core).reservation.take();
        let expected = self.reference.cores[core].reservation.take();
        assert_eq!(found.map(|line| u64::from(physical_line(line))), expected, "the reservation of core {core}");
        found?;
        let fate = self.access(core, address, true, Admission::Queues);
        if fate == Fate::Queued {
            // The same instruction executes again.
            self.system.core(core).reservation = found;
            self.reference.cores[core].reservation = expected;
        }
        Some(fate)
    }

    /// Executes an instruction, or lets its core wait with it.
    fn execute(&mut self, core: usize, instruction: Instruction) {
        let fate = match instruction {
            Instruction::Plain { address, store } => Some(self.access(core, address, store, Admission::Queues)),
            Instruction::Reserved { address, store } => self.reserved(core, address, store),
        };
        self.charge(core);
        if fate == Some(Fate::Queued) {
            self.waiting[core] = Some(instruction);
            self.check_wait(core);
        } else {
            // A fault, or a store-conditional without a reservation.
            self.leave(core);
        }
    }

    /// Nobody waits longer than it takes to serve every other core once, with its window, and the bus as often.
    fn check_wait(&self, core: usize) {
        let Some(model) = self.model.contention else { panic!("nobody queues on this board") };
        let request = self.system.request(core).expect("the core waits");
        let others = self.system.cores.len() as u64;
        let service = self.model.second_latency_cycles + self.model.transfer_latency_cycles + 2 * model.window_cycles;
        let bound = others * (service + model.bus_busy_cycles) + LAG_CYCLES + self.model.memory_latency_cycles;
        assert!(request.start - request.since <= bound, "{request:?} waits for longer than {bound}");
    }

    /// Moves what an instruction cost into its core's clock.
    fn charge(&mut self, core: usize) {
        self.system.hot[core].charge_stalls();
        assert_eq!(self.system.hot[core].cycle, self.reference.cores[core].clock, "the clock of core {core}");
    }

    fn leave(&mut self, core: usize) {
        self.waiting[core] = None;
        let now = self.reference.cores[core].clock.max(self.system.horizon());
        let left = self.system.leave_queue(core);
        self.reference.leave(core, now);
        if let Some(left) = left {
            self.set_clock(core, now.min(left.start));
        }
        self.system.take_moved();
    }

    fn set_clock(&mut self, core: usize, cycle: u64) {
        let clock = &mut self.system.hot[core].cycle;
        *clock = cycle.max(*clock);
        self.reference.cores[core].clock = *clock;
    }

    /// Gives turns to cores that wait, first come, first served, as long as `goes_on` says so of the next turn.
    fn serve(&mut self, goes_on: impl Fn(usize, u64) -> bool) {
        loop {
            let turns = (0..self.waiting.len()).filter_map(|core| Some((self.system.turn(core)?, core)));
            let Some((turn, core)) = turns.min().filter(|(turn, core)| goes_on(*core, *turn)) else { return };
            self.set_clock(core, turn);
            let instruction = self.waiting[core].take().expect("it waits with an instruction");
            self.execute(core, instruction);
        }
    }

    /// Lets a core catch up with the others as far as it must, after those whose turn has come before.
    fn begin(&mut self, core: usize, lag: u64) {
        let ahead = self.system.hot.iter().map(|hot| hot.cycle).max().unwrap_or(0);
        let horizon = ahead.saturating_sub(LAG_CYCLES);
        self.serve(|_, turn| turn <= horizon);
        while self.waiting[core].is_some() {
            let turn = self.system.turn(core).expect("it waits");
            self.serve(|_, first| first <= turn);
        }
        self.system.advance(horizon);
        self.set_clock(core, ahead.saturating_sub(lag));
    }

    fn fetch(&mut self, core: usize, address: u64) {
        let context = self.system.cores[core].context;
        let tag = address >> 12 << 1 | u64::from(context.user);
        let slot = self.system.cores[core].fetch_translations.slot(address);
        let known = self.system.core(core).fetch_translations.entry(slot).tag == tag;
        let slot = if known { Ok(slot) } else { self.system.translate_fetch(core, address) };
        let found = slot.map(|slot| self.system.core(core).fetch_translations.entry(slot).page() | address & 0xfff);
        if let Ok(physical) = found
            && self.system.timed
        {
            self.system.touch_fetch(core, line_of(physical));
        }
        let expected = self.reference.fetch(core, address);
        assert_eq!(found.map_err(|fault| fault.kind), expected, "fetch from {address:#x}");
        self.charge(core);
    }

    pub fn apply(&mut self, step: &Step, lag: u64) {
        match *step {
            Step::Access { core, page, line, store } => {
                self.begin(core, lag);
                self.execute(core, Instruction::Plain { address: self.address(core, page, line), store });
            }
            Step::Reserved { core, page, line, store } => {
                self.begin(core, lag);
                self.execute(core, Instruction::Reserved { address: self.address(core, page, line), store });
            }
            Step::Fetch { core, page, line } => {
                self.begin(core, lag);
                self.fetch(core, self.address(core, page, line));
            }
            Step::Work { core, cycles } => {
                self.begin(core, lag);
                self.set_clock(core, self.reference.cores[core].clock + cycles);
            }
            Step::Leave { core } => self.leave(core),
            Step::Context { core, space, user, sum, mxr } => {
                self.begin(core, lag);
                let satp = [0, 8 << 60 | ROOT >> 12, 9 << 60 | ROOT_SV48 >> 12][space as usize];
                let context = Context { satp, user, supervisor_user_memory: sum, make_executable_readable: mxr };
                self.system.set_context(core, context);
                self.reference.set_context(core, context);
            }
            Step::Fence { core, page } => {
                let address = page.map(|page| self.address(core, page, 0));
                self.system.flush_translations(core, address);
                match address {
                    Some(address) => self.reference.fence(core, address),
                    None => self.reference.cores[core].flush(),
                }
            }
            Step::FenceFetch { core } => {
                self.system.flush_fetch(core);
                self.reference.flush_fetch(core);
            }
            Step::Device { line, lines } => {
                self.system.note_device_write(RAM_BASE + line * 64, lines * 64);
                self.reference.device_write(RAM_BASE + line * 64, lines * 64);
            }
            Step::Map { page, physical, flags } => {
                // As a kernel does: no core keeps the old translation.
                let place = ROOT + 0x2000 + 8 * page;
                self.set_entry(place, (RAM_BASE + physical * 0x1000) >> 12 << 10 | flags);
                for core in 0..self.system.cores.len() {
                    self.system.flush_translations(core, None);
                    self.reference.cores[core].flush();
                }
            }
            Step::Code { page } => self.system.note_code(page as usize),
            Step::Gear { timed } => {
                if timed != self.reference.timed {
                    self.waiting.fill(None);
                }
                self.system.set_timed(timed);
                self.reference.set_timed(timed);
            }
            Step::Resume => self.resume(),
        }
        self.system.stale_code().clear();
    }

    /// Continues with a memory system that was saved, written, read, and restored.
    fn resume(&mut self) {
        let bytes = postcard::to_stdvec(&self.system.save()).expect("a state can be written");
        let mut ram = Ram::new(RAM_BYTES).expect("4 MiB");
        for page in 0..ram.pages() {
            let bytes: [u8; 4096] = self.system.ram.page(page).try_into().expect("a page");
            ram.set_page(page, &bytes);
        }
        let cores = self.system.cores.len();
        let mut system = MemorySystem::new(ram, cores, self.model, self.seed.wrapping_add(1));
        let saved = postcard::from_bytes(&bytes).expect("a state can be read");
        system.restore(saved).expect("a state that was saved can be restored");
        self.system = system;
    }

    /// Compares the whole state of both systems.
    pub fn compare(&self) {
        self.system.check().expect("the invariants hold");
        self.check_holders();
        for (number, (core, expected)) in self.system.cores.iter().zip(&self.reference.cores).enumerate() {
            assert_eq!(core.counters, expected.counters, "counters of core {number}");
            assert_eq!(self.system.queue_counters()[number], expected.queues, "queue counters of core {number}");
            let request = self.system.request(number);
            let found = request.map(|request| (u64::from(physical_line(request.line)), request.since, request.start));
            let service = self.reference.services.iter().find(|service| service.core == number && service.waits);
            assert_eq!(found, service.map(|service| (service.line, service.since, service.start)), "core {number}");
            assert_eq!(
                core.reservation.map(|line| u64::from(physical_line(line))),
                expected.reservation,
                "reservation of core {number}"
            );
            let mut second: Vec<(u64, Mesi)> = expected.second.iter().flatten().copied().collect();
            second.sort_unstable_by_key(|entry| entry.0);
            let state = |line| match core.second.state(line).expect("a cached line has a state") {
                State::Modified => Mesi::Modified,
                State::Exclusive => Mesi::Exclusive,
                State::Shared => Mesi::Shared,
            };
            let mut found: Vec<(u64, Mesi)> =
                core.second.lines().map(|line| (u64::from(physical_line(line)), state(line))).collect();
            found.sort_unstable_by_key(|entry| entry.0);
            assert_eq!(found, second, "second-level cache of core {number}");
            let mut first: Vec<u64> = expected.first.iter().flatten().flatten().copied().collect();
            first.sort_unstable();
            let mut found: Vec<u64> = core.data.lines().map(|(line, _)| u64::from(physical_line(line))).collect();
            found.sort_unstable();
            assert_eq!(found, first, "first-level cache of core {number}");
            if self.system.timed {
                let live = self.system.hot[number]
                    .lines
                    .entries()
                    .iter()
                    .enumerate()
                    .filter(|(_, entry)| entry.line != NO_LINE);
                let found: Vec<(u64, u64)> = live.map(|(slot, entry)| (slot as u64, u64::from(entry.line))).collect();
                let table: Vec<(u64, u64)> = expected.table.iter().map(|(slot, entry)| (*slot, entry.1)).collect();
                assert_eq!(found, table, "line table of core {number}");
            }
        }
        for (address, entry) in &self.reference.memory {
            assert_eq!(self.system.ram.read(*address, 8), *entry, "page-table entry at {address:#x}");
        }
    }

    /// The holders' words name exactly the cores that hold each line.
    fn check_holders(&self) {
        let mut holders = vec![0_u64; self.system.holders.len()];
        for (number, core) in self.system.cores.iter().enumerate() {
            for line in core.second.lines() {
                holders[line as usize] |= 1 << number;
            }
        }
        let named = (0..holders.len()).map(|line| self.system.holders.get(line as u32));
        assert!(named.eq(holders.iter().copied()), "the holders differ from the cores that hold the lines");
    }
}

fn run(case: &Case) {
    let mut pair = Pair::new(case);
    for (step, lag) in case.steps.iter().zip(&case.lags) {
        pair.apply(step, *lag);
        pair.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_caches_do_what_the_slow_model_does(case in case()) {
        run(&case);
    }

    #[test]
    fn the_queues_do_what_the_slow_model_does(case in contended_case()) {
        run(&case);
    }
}

//! Translating hot runs, and running what was translated (`concord_translate`).
//!
//! The interpreter counts how often it executes each run. A run that has become hot asks for a region: host code for it
//! and for all other warm runs of its page. Counts are the guest's, so cold code never costs a translation, and when one
//! comes changes no result: a region has the interpreter's results.

use crate::execute::code::{CodePage, FIRST, Place};
use crate::execute::door::{Door, Stop};
use crate::execute::position::Position;
use crate::machine::Machine;
use crate::planted::PlantedFault;
use concord_isa::op::Op;
use concord_mem::cache::{Line, line_of};
use concord_mem::line_table::NOTHING;
use concord_mem::ram::{PAGE_BYTES, PAGE_SHIFT};
use concord_translate::{At, Entry, Key, Left, Loaded, Surroundings, Translator, TranslatorError, Variant};

/// The heat at which a page's runs ask for the first region. A choice, by measurement: a translation costs the host as
/// much as some thousand executions of the run by the interpreter save.
const HEAT: u32 = 2048;
/// Runs with this share of the heat come along.
const WARM_SHARE: u32 = 4;
/// At this share of the heat a page takes the regions that the process has for its contents.
const KNOWN_SHARE: u32 = 32;
/// No run asks for its translation where this heat is wanted.
pub(crate) const NEVER: u32 = u32::MAX;

/// What executes the ops of harts. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Decodes each instruction once, and interprets the decoded form.
    Interpreter,
    /// Translates hot code to code of the host, and interprets the rest.
    Translator,
}

impl Executor {
    pub const ALL: [Executor; 2] = [Executor::Interpreter, Executor::Translator];

    pub fn name(self) -> &'static str {
        match self {
            Executor::Interpreter => "interpreter",
            Executor::Translator => "translator",
        }
    }

    /// # Errors
    /// If this host cannot execute translated code, and this is the translator.
    pub fn check_host(self) -> Result<(), TranslatorError> {
        match self {
            Executor::Interpreter => Ok(()),
            Executor::Translator => Translator::of_process().map(|_| ()),
        }
    }
}

/// A machine's share of the process's translator.
pub(crate) struct Translation {
    executor: Executor,
    /// The heat at which runs are translated.
    heat: u32,
    /// The generation of the regions that the machine's pages have.
    generation: u64,
    /// The run waits for each translation.
    waits: bool,
    /// Entries into regions, by [`Jump::slot`].
    jumps: Box<[Jump; JUMPS]>,
}

/// The number of jumps that are known: a power of two. A choice, by measurement.
const JUMPS: usize = 8192;

/// An entry into translated code. Finding the next one is most of what entering translated code costs, and most of that is
/// waiting for the host's memory: so a jump takes a quarter of a line of the host's cache.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Jump {
    key: u64,
    entry: Entry,
}

const NO_JUMP: Jump = Jump { key: u64::MAX, entry: Entry::NOWHERE };

impl Jump {
    /// The key of a jump to a physical address in a variant. No instruction's address is odd, so the lowest bit of an
    /// address has room for the highest of a variant.
    #[inline(always)]
    fn key(address: u64, variant: usize) -> u64 {
        const { assert!(Variant::COUNT <= 8) };
        address << 2 | variant as u64
    }

    /// The slot that a key's jump has. Functions begin at multiples of large numbers, so pages begin in different slots.
    #[inline(always)]
    fn slot(key: u64) -> usize {
        (key >> 3 ^ key >> 12) as usize & (JUMPS - 1)
    }

    fn page(self) -> u64 {
        self.key >> (PAGE_SHIFT + 2)
    }
}

impl Translation {
    pub fn new() -> Translation {
        let (executor, heat, waits) = default_executor();
        Translation { executor, heat, generation: 0, waits, jumps: Box::new([NO_JUMP; JUMPS]) }
    }

    /// The heat at which runs of a new page ask for a region that there is already.
    pub fn heat_wanted(&self) -> u32 {
        match self.executor {
            Executor::Interpreter => NEVER,
            Executor::Translator => (self.heat / KNOWN_SHARE).max(1),
        }
    }

    /// The machine has dropped its regions.
    pub fn begin_generation(&mut self) {
        self.jumps.fill(NO_JUMP);
        // A machine that interprets starts no translator.
        if self.executor == Executor::Interpreter {
            return;
        }
        if let Ok(translator) = Translator::of_process() {
            self.generation = translator.generation();
        }
    }

    /// Forgets the jumps to a physical page, given by its number.
    pub fn forget_page(&mut self, page: u64) {
        for jump in self.jumps.iter_mut().filter(|jump| jump.page() == page) {
            *jump = NO_JUMP;
        }
    }

    /// True if the machine has code of an earlier generation.
    pub fn is_over(&self) -> bool {
        self.executor == Executor::Translator
            && Translator::of_process().is_ok_and(|translator| translator.generation() != self.generation)
    }
}

/// The executor of a machine that nobody chose one for, its heat, and whether runs wait for translations.
///
/// In this crate's tests `CONCORD_TEST_HEAT` is the heat at which runs are translated, or 0 for the interpreter: their
/// guests are too short for a translator that works beside them.
fn default_executor() -> (Executor, u32, bool) {
    let heat = cfg!(feature = "planted-faults").then(|| std::env::var("CONCORD_TEST_HEAT").ok()).flatten();
    match heat.and_then(|heat| heat.parse().ok()) {
        None => (Executor::Translator, HEAT, false),
        Some(0) => (Executor::Interpreter, HEAT, false),
        Some(heat) => (Executor::Translator, heat, true),
    }
}

/// A call of translated code: what its functions need. The code knows the first field alone.
#[repr(C)]
struct Call {
    surroundings: Surroundings,
    machine: *mut Machine,
    hart: usize,
    /// The epoch in which the code was entered.
    epoch: u64,
    /// Why the code was left, if one of the functions stopped an op.
    stop: Option<Stop>,
}

impl Call {
    /// Passes one access through the door, and returns what a region wants to know: the result, and whether the op stops.
    ///
    /// # Safety
    /// `surroundings` are those of a call that is under way, and nothing else refers to its machine.
    #[inline(always)]
    unsafe fn access<T: Default>(
        surroundings: *mut Surroundings,
        at: At,
        access: impl FnOnce(&mut Machine, Position) -> Result<T, Stop>,
    ) -> (T, u64) {
        // SAFETY: the surroundings are the first field of a call; the caller promises the rest.
        let (call, machine) = unsafe {
            let call = &mut *surroundings.cast::<Call>();
            let machine = call.machine;
            (call, &mut *machine)
        };
        // In the middle of a run the program counter is that of its beginning.
        machine.memory.hot[call.hart].pc = call.surroundings.page_address + u64::from(at.run());
        let position = position(call.hart, at);
        let result = access(machine, position);
        // A page that has changed is left at the end of the run, and so is one whose turn ends earlier now.
        let is_same = machine.code.epoch() == call.epoch;
        call.surroundings.limit = if is_same { machine.limit_of_region(call.hart) } else { 0 };
        match result {
            Ok(value) => (value, 0),
            Err(stop) => {
                call.stop = Some(stop);
                (T::default(), 1)
            }
        }
    }
}

fn position(hart: usize, at: At) -> Position {
    Position { hart, completed: at.completed(), free: at.free() }
}

unsafe extern "C" fn load(surroundings: *mut Surroundings, at: At, address: u64) -> Loaded {
    let size_bytes = at.size_bytes();
    // SAFETY: translated code passes the surroundings that it got.
    let (value, stops) =
        unsafe { Call::access(surroundings, at, |machine, position| machine.load(position, address, size_bytes)) };
    Loaded { value, stops }
}

unsafe extern "C" fn store(surroundings: *mut Surroundings, at: At, address: u64, value: u64) -> u64 {
    let size_bytes = at.size_bytes();
    // SAFETY: as for loads.
    unsafe { Call::access(surroundings, at, |machine, position| machine.store(position, address, size_bytes, value)) }.1
}

unsafe extern "C" fn execute<const TIMED: bool, const ANSWERS: u8>(
    surroundings: *mut Surroundings,
    at: At,
    op: Op,
) -> u64 {
    // SAFETY: as for loads.
    unsafe { Call::access(surroundings, at, |machine, position| machine.run_op::<TIMED, ANSWERS>(position, op)) }.1
}

unsafe extern "C" fn fetch(surroundings: *mut Surroundings, line: u64) {
    // SAFETY: as for loads.
    unsafe {
        let call = surroundings.cast::<Call>();
        let (machine, hart) = ((*call).machine, (*call).hart);
        if !(*machine).has_fault(PlantedFault::UnchargedFetch) {
            (*machine).memory.touch_fetch(hart, line as Line);
        }
    }
}

impl Machine {
    /// Chooses the executor, and the heat at which runs are translated. Runs wait for their translations.
    #[cfg(feature = "planted-faults")]
    pub fn set_executor_of_test(&mut self, executor: Executor, heat: u32) -> Result<(), TranslatorError> {
        self.translation = Translation { heat, waits: true, ..Translation::new() };
        self.set_executor(executor)
    }

    /// Chooses the executor; without this call it is the translator, where the host can execute translated code. The guest
    /// cannot notice.
    ///
    /// # Errors
    /// If this host cannot execute translated code. The machine interprets then.
    pub fn set_executor(&mut self, executor: Executor) -> Result<(), TranslatorError> {
        let made = executor.check_host();
        let executor = if made.is_ok() { executor } else { Executor::Interpreter };
        self.translation.executor = executor;
        self.drop_code();
        made
    }

    #[inline(always)]
    fn variant<const TIMED: bool, const ANSWERS: u8>(&self, hart: usize) -> Variant {
        Variant { timed: TIMED, answers: ANSWERS, user: self.memory.hot[hart].user != 0 }
    }

    /// The entry into translated code at a hart's program counter, which is this physical address, if it was noted lately.
    #[inline(always)]
    pub(super) fn jump<const TIMED: bool, const ANSWERS: u8>(&self, hart: usize, address: u64) -> Option<Entry> {
        if ANSWERS == NOTHING {
            return None;
        }
        let key = Jump::key(address, self.variant::<TIMED, ANSWERS>(hart).index());
        let jump = self.translation.jumps[Jump::slot(key)];
        (jump.key == key).then_some(jump.entry)
    }

    /// Notes the entry into translated code at a hart's program counter, which is this physical address. False if there is
    /// none.
    #[inline(always)]
    pub(super) fn note_jump<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        page: *const CodePage,
        place: Place,
        address: u64,
    ) -> bool {
        if ANSWERS == NOTHING {
            return false;
        }
        let variant = self.variant::<TIMED, ANSWERS>(hart).index();
        // SAFETY: pages are boxed and never freed. The reference ends with this function.
        let page = unsafe { &*page };
        if !page.has_entry(variant, place) {
            return false;
        }
        let entry = page.entry(variant, address as u32).expect("the run's head says so");
        let key = Jump::key(address, variant);
        self.translation.jumps[Jump::slot(key)] = Jump { key, entry };
        true
    }

    /// Executes translated runs from the hart's program counter on, which is this physical address. Returns the page offset
    /// at which the hart continues, if that is in the same page and the turn is not over.
    #[inline(always)]
    pub(super) fn run_translated<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        code: u32,
        address: u64,
        entry: Entry,
    ) -> Option<u32> {
        let first_line = line_of(address & u64::MAX << PAGE_SHIFT);
        if TIMED && !self.has_fault(PlantedFault::UnchargedFetch) {
            self.memory.touch_fetch(hart, line_of(address));
        }
        let epoch = self.code.epoch();
        let recent_lines = self.memory.core(hart).recent_fetch_lines(first_line);
        let machine: *mut Machine = self;
        // SAFETY: `machine` is this machine. The entry is the page's, whose code is not stale between two runs; a region of
        // a page that changes meanwhile is retired, and freed between turns. The hot state is this hart's and is never
        // moved. The functions get the machine through the surroundings, while nothing else here refers to it.
        let (left, page_address, stop) = unsafe {
            let hot = &raw mut (&mut (*machine).memory.hot)[hart];
            let page_address = (*hot).pc & u64::MAX << PAGE_SHIFT;
            let limit = (*machine).limit_of_region(hart);
            let execute = execute::<TIMED, ANSWERS>;
            let surroundings =
                Surroundings { page_address, limit, recent_lines, load, store, execute, fetch, first_line };
            let mut call = Call { surroundings, machine, hart, epoch, stop: None };
            let left = entry.run(hot, (&raw mut call).cast());
            (left, page_address, call.stop)
        };
        let hot = &mut self.memory.hot[hart];
        match left {
            Left::BetweenRuns => {
                let target = hot.pc.wrapping_sub(page_address);
                (target < PAGE_BYTES && hot.cycle < hot.limit).then_some(target as u32)
            }
            // The interpreter finds out why the op is not one of a run after all.
            Left::Stopped(at) if !matches!(stop, Some(Stop::System)) => {
                hot.leave_run(TIMED, at.completed().into(), at.free().into());
                hot.pc = page_address + u64::from(at.page_offset());
                self.stopped(hart, stop.expect("the function that stopped the op said why"));
                None
            }
            Left::Inside(at) | Left::Stopped(at) => {
                hot.pc = page_address + u64::from(at.run());
                let start = position(hart, at);
                if epoch != self.code.epoch()
                    && let Some(mut page) = self.copy_of_changed(entry, at)
                {
                    let first = page.first(FIRST).wrapping_add(at.completed() as usize);
                    return self.run::<TIMED, ANSWERS>(&raw mut page, first, start);
                }
                let page = self.code.page(code);
                let place = self.decoded(page, at.run());
                // SAFETY: pages are boxed and never freed. The reference ends with this line.
                let first = unsafe { (*page).first(place) }.wrapping_add(at.completed() as usize);
                self.run::<TIMED, ANSWERS>(page, first, start)
            }
        }
    }

    /// The clock value at which a region is left.
    #[inline(always)]
    fn limit_of_region(&self, hart: usize) -> u64 {
        self.memory.hot[hart].limit + u64::from(self.has_fault(PlantedFault::MissedLimit))
    }

    /// The run that a region has begun, if it has changed its own page since: it goes on as it was.
    #[cold]
    fn copy_of_changed(&self, entry: Entry, at: At) -> Option<CodePage> {
        let region = self.code.retired(entry)?;
        let run = region.runs().iter().find(|run| u32::from(run.page_offset) == at.run())?;
        Some(CodePage::of_copy(0, run))
    }

    /// Finds or makes regions for the hot runs of a page, for the state that the hart is in.
    #[cold]
    #[inline(never)]
    pub(super) fn translate_page<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        page: *mut CodePage,
        place: Place,
    ) {
        // SAFETY: pages are boxed and never freed, and no other reference to this one is alive here.
        let page = unsafe { &mut *page };
        let Ok(translator) = Translator::of_process() else { return };
        if self.translation.is_over() {
            return;
        }
        let variant = self.variant::<TIMED, ANSWERS>(hart);
        let key = Key { variant, contents: page.contents(&self.memory.ram) };
        let index = variant.index();
        let known = page.regions_count(index);
        for region in translator.regions(&key, known) {
            page.add_region(index, region);
            page.awaits_region = false;
        }
        let (heat, heat_known) = (self.translation.heat, self.translation.heat_wanted());
        if page.has_entry(index, place) {
            return;
        }
        if page.awaits_region {
            page.cool(place);
            return;
        }
        if page.heat_wanted() < heat {
            // Only known regions were wanted.
            page.set_heat_wanted(heat);
            return;
        }
        let runs = page.hot_runs(index, (heat / WARM_SHARE).max(1));
        if runs.is_empty() {
            return;
        }
        page.awaits_region = true;
        page.set_heat_wanted(heat_known);
        translator.request(key, runs, self.translation.waits);
        if self.translation.waits {
            self.translate_page::<TIMED, ANSWERS>(hart, page, place);
        }
    }
}

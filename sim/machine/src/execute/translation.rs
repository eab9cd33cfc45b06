//! Translating hot runs, and running what was translated (`concord_translate`).
//!
//! The interpreter counts how often it executes each run. A run that has become hot asks for a region: host code for it
//! and for all other warm runs of its page. Counts are the guest's, so cold code never costs a translation, and when one
//! comes changes no result: a region has the interpreter's results.

use crate::execute::code::CodePage;
use crate::machine::Machine;
use crate::planted::PlantedFault;
use concord_mem::cache::{Line, line_of};
use concord_mem::line_table::NOTHING;
use concord_mem::ram::{LINE_SHIFT, PAGE_BYTES, PAGE_SHIFT};
use concord_translate::{Entry, Key, Left, Surroundings, Translator, TranslatorError, Variant};

/// The heat at which a page's runs ask for the first region. A choice, by measurement: a translation costs the host as
/// much as some thousand executions of the run by the interpreter save.
const HEAT: u16 = 2048;
/// Runs with this share of the heat come along.
const WARM_SHARE: u16 = 4;
/// At this share of the heat a page takes the regions that the process has for its contents.
const KNOWN_SHARE: u16 = 32;
/// No run asks for its translation where this heat is wanted.
pub(crate) const NEVER: u16 = u16::MAX;
/// Entries are forgotten before the numbers of epochs come around.
const EPOCHS_MAX: u32 = u32::MAX / 2;

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
}

/// A machine's share of the process's translator.
pub(crate) struct Translation {
    executor: Executor,
    /// The heat at which runs are translated.
    heat: u16,
    /// The generation of the regions that the machine's pages have.
    generation: u64,
    /// The run waits for each translation.
    waits: bool,
    /// Entries into regions, by program counter.
    jumps: Box<[Jump; JUMPS]>,
}

/// The number of program counters whose entries are known: a power of two. A choice, by measurement.
const JUMPS: usize = 4096;

/// An entry into translated code. It is as long as half a line of the host's cache: finding the next one is most of what
/// entering translated code costs.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Jump {
    pc: u64,
    entry: Entry,
    variant: u16,
    /// The handle of the page.
    code: u32,
    first_line: Line,
    /// See [`crate::execute::code::CodeCache::epoch`].
    epoch: u32,
}

/// No program counter is odd.
const NO_JUMP: Jump = Jump { pc: 1, entry: Entry::NOWHERE, variant: 0, code: 0, first_line: 0, epoch: 0 };

impl Translation {
    pub fn new() -> Translation {
        let (executor, heat, waits) = default_executor();
        Translation { executor, heat, generation: 0, waits, jumps: Box::new([NO_JUMP; JUMPS]) }
    }

    /// The heat at which runs of a new page ask for a region that there is already.
    pub fn heat_wanted(&self) -> u16 {
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

    /// True if the machine has to drop its regions.
    pub fn must_drop(&self, epoch: u32) -> bool {
        epoch > EPOCHS_MAX || self.is_over()
    }

    /// True if the machine has code of an earlier generation.
    fn is_over(&self) -> bool {
        self.executor == Executor::Translator
            && Translator::of_process().is_ok_and(|translator| translator.generation() != self.generation)
    }
}

/// The executor of a machine that nobody chose one for, its heat, and whether runs wait for translations.
///
/// In this crate's tests `CONCORD_TEST_HEAT` is the heat at which runs are translated, or 0 for the interpreter: their
/// guests are too short for a translator that works beside them.
fn default_executor() -> (Executor, u16, bool) {
    let heat = cfg!(feature = "planted-faults").then(|| std::env::var("CONCORD_TEST_HEAT").ok()).flatten();
    match heat.and_then(|heat| heat.parse().ok()) {
        None => (Executor::Translator, HEAT, false),
        Some(0) => (Executor::Interpreter, HEAT, false),
        Some(heat) => (Executor::Translator, heat, true),
    }
}

impl Machine {
    /// Chooses the executor, and the heat at which runs are translated. Runs wait for their translations.
    #[cfg(feature = "planted-faults")]
    pub fn set_executor_of_test(&mut self, executor: Executor, heat: u16) -> Result<(), TranslatorError> {
        self.translation = Translation { heat, waits: true, ..Translation::new() };
        self.set_executor(executor)
    }

    /// Chooses the executor; without this call it is the translator, where the host can execute translated code. The guest
    /// cannot notice.
    ///
    /// # Errors
    /// If this host cannot execute translated code. The machine interprets then.
    pub fn set_executor(&mut self, executor: Executor) -> Result<(), TranslatorError> {
        let made = match executor {
            Executor::Interpreter => Ok(()),
            Executor::Translator => Translator::of_process().map(|_| ()),
        };
        let executor = if made.is_ok() { executor } else { Executor::Interpreter };
        self.translation.executor = executor;
        self.drop_code();
        made
    }

    #[inline(always)]
    fn variant<const TIMED: bool, const ANSWERS: u8>(&self, hart: usize) -> Variant {
        Variant { timed: TIMED, answers: ANSWERS, user: self.memory.hot[hart].user != 0 }
    }

    /// The entry into translated code at a hart's program counter, which lies in the page of this handle.
    #[inline(always)]
    pub(super) fn jump<const TIMED: bool, const ANSWERS: u8>(&mut self, hart: usize, code: u32) -> Option<Jump> {
        if ANSWERS == NOTHING {
            return None;
        }
        let pc = self.memory.hot[hart].pc;
        let variant = self.variant::<TIMED, ANSWERS>(hart).index();
        let epoch = self.code.epoch();
        let jump = &mut self.translation.jumps[(pc as usize / 2) & (JUMPS - 1)];
        if jump.pc == pc && jump.code == code && jump.epoch == epoch && usize::from(jump.variant) == variant {
            return Some(*jump);
        }
        // SAFETY: pages are boxed and never freed. The reference ends with this block.
        let (entry, address) = unsafe {
            let page = &*self.code.page(code);
            (page.entry(variant, pc as u32), page.address)
        };
        *jump = Jump { pc, entry: entry?, variant: variant as u16, code, first_line: line_of(address), epoch };
        Some(*jump)
    }

    /// Executes translated runs from the hart's program counter on, which is at a page offset. Returns the page offset at
    /// which the hart continues, if that is in the same page and the turn is not over.
    #[inline(always)]
    pub(super) fn run_translated<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        code: u32,
        offset: u32,
        jump: Jump,
    ) -> Option<u32> {
        let first_line = jump.first_line;
        if TIMED && !self.has_fault(PlantedFault::UnchargedFetch) {
            self.memory.touch_fetch(hart, first_line + (offset >> LINE_SHIFT));
        }
        let excess_cycles = u64::from(self.has_fault(PlantedFault::MissedLimit));
        let recent_lines = self.memory.core(hart).recent_fetch_lines(first_line);
        let hot = &mut self.memory.hot[hart];
        let page_address = hot.pc & u64::MAX << PAGE_SHIFT;
        // The stall of the entry's fetch is due at the end of the first run, and nothing in a region looks at the clock
        // before.
        let (instructions, stall_cycles) = (hot.instructions, hot.stall_cycles);
        if TIMED {
            hot.charge_stalls();
        }
        hot.limit += excess_cycles;
        // SAFETY: the entry is the page's, whose code is not stale between two runs, and nothing drops it while its code
        // runs, because that code calls nothing. The hot state is this hart's.
        let left = unsafe { jump.entry.run(hot, &Surroundings { page_address, recent_lines, first_line }) };
        hot.limit -= excess_cycles;
        match left {
            Left::BetweenRuns => {
                let target = hot.pc.wrapping_sub(page_address);
                (target < PAGE_BYTES && hot.cycle < hot.limit).then_some(target as u32)
            }
            Left::Inside { run, completed } => {
                hot.pc = page_address + u64::from(run);
                if TIMED && hot.instructions == instructions {
                    hot.cycle -= stall_cycles;
                    hot.stall_cycles = stall_cycles;
                }
                let page = self.code.page(code);
                // SAFETY: pages are boxed and never freed. The reference ends with this line.
                let first = match unsafe { (*page).find(run) } {
                    Some(first) => first,
                    None => self.decode_run(page, run),
                };
                self.run::<TIMED, ANSWERS>(hart, page, first, completed)
            }
        }
    }

    /// Finds or makes regions for the hot runs of a page, for the state that the hart is in.
    #[cold]
    #[inline(never)]
    pub(super) fn translate_page<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        page: *mut CodePage,
        offset: u32,
    ) {
        let Ok(translator) = Translator::of_process() else { return };
        if self.translation.is_over() {
            return;
        }
        let variant = self.variant::<TIMED, ANSWERS>(hart);
        // SAFETY: pages are boxed and never freed, and no other reference to this one is alive here.
        let page = unsafe { &mut *page };
        let key = Key { variant, contents: page.contents(&self.memory.ram) };
        let index = variant.index();
        let known = page.regions_count(index);
        for region in translator.regions(&key, known) {
            page.add_region(index, region);
            page.awaits_region = false;
        }
        let (heat, heat_known) = (self.translation.heat, self.translation.heat_wanted());
        if page.entry(index, offset).is_some() {
            return;
        }
        if page.awaits_region {
            page.cool(offset);
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
            self.translate_page::<TIMED, ANSWERS>(hart, page, offset);
        }
    }
}

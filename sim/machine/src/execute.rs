//! Executing: gives a hart its turn, finds its decoded code, and lets an executor run it.
//!
//! `interpreter.rs` is the executor. It has the hart's hot state and decoded ops, and a door (`door.rs`) to the
//! machine. The other files handle rarer events (misses, devices, traps, CSRs, SBI calls). The clock and the
//! instruction count are updated when execution leaves a run, so in between they lag by at most the length of a run, 32
//! ops.

mod access;
pub(crate) mod code;
pub(crate) mod csr;
pub(crate) mod door;
pub(crate) mod interpreter;
pub(crate) mod position;
mod sbi;
mod system;
pub(crate) mod translation;
mod trap;

use crate::events::End;
use crate::execute::code::{CodePage, FIRST, Place};
use crate::execute::door::{Left, Stop};
use crate::execute::interpreter::run_ops;
use crate::execute::position::Position;
use crate::hart::Privilege;
use crate::machine::Machine;
use crate::planted::PlantedFault;
use concord_abi::exit::Exit;
use concord_isa::op::{Kind, Op};
use concord_mem::cache::line_of;
use concord_mem::fault::Access;
use concord_mem::line_table::{BY_LINE, BY_WORD, NOTHING};
use concord_mem::ram::{PAGE_BYTES, PAGE_SHIFT};

/// Decoded code may take one part in this many of the touched guest memory, and at least CODE_BYTES_MIN bytes.
const CODE_SHARE: u64 = 12;
const CODE_BYTES_MIN: u64 = 64 << 20;

/// Where the code of a page is.
#[derive(Clone, Copy)]
struct Code {
    /// See [`crate::execute::code::CodeCache::handle`].
    handle: u32,
    /// The page's physical address.
    page_address: u64,
}

impl Machine {
    /// Runs a hart until its clock reaches its limit, or until an event removes the limit.
    pub(crate) fn run_turn<const TIMED: bool>(&mut self, hart: usize) {
        while self.memory.hot[hart].cycle < self.memory.hot[hart].limit {
            if let Some(code) = self.code(hart) {
                if self.watch.is_on {
                    self.run_page_watched::<TIMED>(hart, code);
                } else {
                    self.run_page::<TIMED, BY_LINE>(hart, code);
                }
            }
        }
    }

    /// [`Machine::run_page`] while a transaction is live or the isolation checker is on. It is a function of its own,
    /// so that each of the two has all of the host's registers.
    #[inline(never)]
    fn run_page_watched<const TIMED: bool>(&mut self, hart: usize, code: Code) {
        match self.answers::<TIMED>(hart) {
            BY_LINE => self.run_page::<TIMED, BY_LINE>(hart, code),
            BY_WORD => self.run_page::<TIMED, BY_WORD>(hart, code),
            _ => self.run_page::<TIMED, NOTHING>(hart, code),
        }
    }

    /// The accesses of a hart that the line table may answer now. If it answers for lines, it also knows the words of
    /// the transaction's sets. The functional gear's table answers for whole pages, which is too much while a
    /// transaction is live.
    pub(crate) fn answers<const TIMED: bool>(&self, hart: usize) -> u8 {
        if !self.watch.is_on {
            BY_LINE
        } else if !TIMED || self.watch.checker.is_some() {
            NOTHING
        } else if self.transactions.is_active(hart) {
            BY_WORD
        } else {
            BY_LINE
        }
    }

    /// The decoded page that contains the program counter, or `None` after a trap was raised.
    pub(crate) fn code_page(&mut self, hart: usize) -> Option<*mut CodePage> {
        let code = self.code(hart)?;
        Some(self.code.page(code.handle))
    }

    /// Where the decoded page is that contains the program counter, or `None` after a trap was raised.
    #[inline]
    fn code(&mut self, hart: usize) -> Option<Code> {
        let pc = self.memory.hot[hart].pc;
        let core = self.memory.core(hart);
        let tag = pc >> PAGE_SHIFT << 1 | u64::from(core.context.user);
        let slot = core.fetch_translations.slot(pc);
        let entry = core.fetch_translations.entry(slot);
        if entry.tag == tag && entry.code != 0 {
            return Some(Code { handle: entry.code, page_address: entry.page() });
        }
        self.find_code(hart, pc, tag)
    }

    #[cold]
    fn find_code(&mut self, hart: usize, pc: u64, tag: u64) -> Option<Code> {
        let mut slot = self.memory.core(hart).fetch_translations.slot(pc);
        if self.memory.core(hart).fetch_translations.entry(slot).tag != tag {
            if self.watch.is_on {
                self.resolve_walk(Position::between_runs(hart), pc, Access::Fetch);
            }
            let translated = self.memory.translate_fetch(hart, pc);
            self.drop_stale_code();
            self.memory.hot[hart].charge_stalls();
            slot = match translated {
                Ok(slot) => slot,
                Err(fault) => {
                    self.end_if_lost(hart, pc);
                    self.trap(hart, fault.cause(), fault.address);
                    // A hart that traps without retiring anything still uses up its turn.
                    self.memory.hot[hart].cycle += 1;
                    return None;
                }
            };
        }
        let entry = self.memory.core(hart).fetch_translations.entry(slot);
        let code = self.code.handle(entry.page());
        entry.code = code;
        Some(Code { handle: code, page_address: entry.page() })
    }

    /// A hart that cannot fetch its own trap handler traps there for ever, without retiring an instruction.
    fn end_if_lost(&mut self, hart: usize, pc: u64) {
        let state = &self.harts[hart];
        if state.privilege == Privilege::Supervisor && pc == state.stvec & !3 {
            self.end(End { exit: Exit::Deadlocked, code: 0, hart: Some(hart) });
        }
    }

    /// The place of the run at a page offset, which is decoded if it was not.
    #[inline(always)]
    fn decoded(&mut self, page: *mut CodePage, page_offset: u32) -> Place {
        // SAFETY: pages are boxed and never freed. The reference ends with this line.
        let found = unsafe { (*page).find(page_offset) };
        found.unwrap_or_else(|| self.decode_run(page, page_offset))
    }

    #[cold]
    #[inline(never)]
    fn decode_run(&mut self, page: *mut CodePage, page_offset: u32) -> Place {
        // SAFETY: pages are boxed and never freed, and no other reference to this one is alive here.
        let page = unsafe { &mut *page };
        self.memory.note_code(((page.address - concord_mem::ram::RAM_BASE) >> PAGE_SHIFT) as usize);
        page.decode_run(&self.memory.ram, page_offset)
    }

    /// Charges the fetch of the line of a physical address.
    #[inline]
    pub(crate) fn fetch_line<const TIMED: bool>(&mut self, hart: usize, address: u64) {
        if TIMED {
            self.memory.touch_fetch(hart, line_of(address));
        }
    }

    /// Runs from `hart.pc`, which lies in the page of this handle, until the hart leaves the page or the turn ends.
    #[inline]
    fn run_page<const TIMED: bool, const ANSWERS: u8>(&mut self, hart: usize, code: Code) {
        let mut offset = self.memory.hot[hart].pc as u32 & (PAGE_BYTES as u32 - 1);
        loop {
            let address = code.page_address | u64::from(offset);
            let next = match self.jump::<TIMED, ANSWERS>(hart, address) {
                Some(entry) => self.run_translated::<TIMED, ANSWERS>(hart, code.handle, address, entry),
                None => {
                    let page = self.code.page(code.handle);
                    // Decoding charges nothing, so it may come before the fetch.
                    let place = self.decoded(page, offset);
                    if self.note_jump::<TIMED, ANSWERS>(hart, page, place, address) {
                        continue;
                    }
                    self.interpret::<TIMED, ANSWERS>(hart, page, place, address)
                }
            };
            match next {
                Some(next) => offset = next,
                None => return,
            }
        }
    }

    /// Interprets the run at a physical address. Returns what [`Machine::run`] does.
    #[inline(always)]
    fn interpret<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        page: *mut CodePage,
        place: Place,
        address: u64,
    ) -> Option<u32> {
        self.fetch_line::<TIMED>(hart, address);
        // SAFETY: pages are boxed and never freed. The reference ends with this line.
        let heats = unsafe { ANSWERS != NOTHING && (*page).heats(place) };
        if heats {
            self.translate_page::<TIMED, ANSWERS>(hart, page, place);
        }
        // SAFETY: as above.
        let first = unsafe { (*page).first(place) };
        self.run::<TIMED, ANSWERS>(page, first, Position::between_runs(hart))
    }

    /// Executes one run as [`Machine::run_page`] would, for a page of one run.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_once<const TIMED: bool>(&mut self, hart: usize, page: &mut CodePage) {
        let (first, start) = (page.first(FIRST), Position::between_runs(hart));
        match self.answers::<TIMED>(hart) {
            BY_LINE => self.run::<TIMED, BY_LINE>(page, first, start),
            BY_WORD => self.run::<TIMED, BY_WORD>(page, first, start),
            _ => self.run::<TIMED, NOTHING>(page, first, start),
        };
    }

    /// Executes a run of `page` from `first` on, which is at `start` in the run, and updates the hart's clock and program
    /// counter. Returns the page offset at which the hart continues, if that is in the same page and the turn
    /// is not over.
    #[inline(always)]
    fn run<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        page: *mut CodePage,
        first: *const Op,
        start: Position,
    ) -> Option<u32> {
        let hart = start.hart;
        let hot = &raw mut self.memory.hot[hart];
        // SAFETY: `hot` points into the memory system's states, which are never moved; `first` is an op of a decoded run.
        let (left, page_address) = unsafe {
            let page_address = (*hot).pc & u64::MAX << PAGE_SHIFT;
            (run_ops::<TIMED, ANSWERS>(self, hot, first, start, page_address), page_address)
        };
        let (Left::Gone { at, .. } | Left::Stopped { at, .. }) = &left;
        let hot = &mut self.memory.hot[hart];
        hot.leave_run(TIMED, at.completed.into(), at.free.into());
        match left {
            Left::Gone { target, .. } => {
                hot.pc = page_address.wrapping_add(target);
                (target < PAGE_BYTES && hot.cycle < hot.limit).then_some(target as u32)
            }
            Left::Stopped { op, stop, .. } => {
                // SAFETY: `op` is an op of this page, whose array nothing has changed since it ran.
                let (offset, op) = unsafe { ((*page).offset_of(op), *op) };
                hot.pc = page_address + u64::from(offset);
                self.finish_op::<TIMED>(hart, op, stop);
                None
            }
        }
    }

    /// Executes one op of a run, which must be one that ends no run.
    pub(super) fn run_op<const TIMED: bool, const ANSWERS: u8>(&mut self, at: Position, op: Op) -> Result<(), Stop> {
        let ops = [op, Op::bare(Kind::Next, 0)];
        let hot = &raw mut self.memory.hot[at.hart];
        // SAFETY: `hot` points into the memory system's states, which are never moved; the second op ends the run.
        match unsafe { run_ops::<TIMED, ANSWERS>(self, hot, ops.as_ptr(), at, 0) } {
            Left::Gone { .. } => Ok(()),
            Left::Stopped { stop, .. } => Err(stop),
        }
    }

    /// Drops all decoded code when it takes more than its share of the host's memory, or when there is no memory for more
    /// translated code. Called between turns; the guest cannot notice.
    pub(crate) fn trim_code(&mut self) {
        self.code.free_retired();
        let touched_bytes = self.memory.touched_pages_count() as u64 * PAGE_BYTES;
        let size_bytes = self.code.size_bytes() as u64;
        if size_bytes > CODE_BYTES_MIN.max(touched_bytes / CODE_SHARE) || self.translation.is_over() {
            self.drop_code();
        }
    }

    /// Drops all decoded and translated code. No run may be executing.
    pub(crate) fn drop_code(&mut self) {
        self.code.clear();
        for hart in 0..self.harts.len() {
            self.memory.core(hart).fetch_translations.forget_code();
        }
        self.translation.begin_generation();
        self.code.set_heat_wanted(self.translation.heat_wanted());
    }

    /// Drops the decoded code of pages that were written to.
    #[inline]
    pub(crate) fn drop_stale_code(&mut self) {
        let is_forgotten = self.has_fault(PlantedFault::ForgottenInvalidation);
        let stale = self.memory.stale_code();
        if is_forgotten {
            stale.clear();
        }
        if !stale.is_empty() {
            self.code.invalidate(stale, |page| self.translation.forget_page(page));
        }
    }
}

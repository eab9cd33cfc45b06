//! Breaking a turn off: breakpoints, watchpoints and single steps that leave the run what it was.
//!
//! A broken turn is taken up where it was left, with the same limit, and limits are looked at only where an unbroken run of
//! ops would look at them. So a run under the debugger retires the same instructions at the same cycles as one without.

mod watch;

pub(crate) use watch::{WatchKind, Watchpoint};

use crate::execute::code::{CodePage, line_end};
use crate::machine::Machine;
use concord_mem::ram::{PAGE_BYTES, PAGE_SHIFT};
use concord_mem::translation::peek;
use std::collections::BTreeSet;

/// Why a turn was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Breakpoint {
        hart: usize,
    },
    /// The hart's last instruction accessed watched memory, from `address` on.
    Watchpoint {
        hart: usize,
        kind: WatchKind,
        address: u64,
    },
    Step,
}

/// What the debugger wants.
#[derive(Debug, Default)]
pub(crate) struct Debug {
    /// Virtual addresses.
    pub breakpoints: BTreeSet<u64>,
    pub watchpoints: Vec<Watchpoint>,
    /// Break after this hart's next instruction.
    pub step: Option<usize>,
    /// Break at breakpoints of this hart alone.
    pub only: Option<usize>,
    broken: Option<BrokenTurn>,
    reached: Option<Break>,
}

/// A turn that is not over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokenTurn {
    pub hart: usize,
    pub limit: u64,
    /// The next instruction belongs to the run of ops that was executing.
    pub inside_run: bool,
}

impl Debug {
    #[inline]
    pub fn is_active(&self) -> bool {
        self.step.is_some() || !self.breakpoints.is_empty() || !self.watchpoints.is_empty()
    }

    /// Forgets everything that the debugger asked for. A turn that it broke off is still taken up where it was left.
    pub fn clear(&mut self) {
        *self = Debug { broken: self.broken.take(), ..Debug::default() };
    }

    pub fn has_broken_turn(&self) -> bool {
        self.broken.is_some()
    }

    #[inline]
    pub fn take_broken_turn(&mut self) -> Option<BrokenTurn> {
        self.broken.take()
    }

    /// Why the last turn was broken off, if it was.
    pub fn take_break(&mut self) -> Option<Break> {
        self.reached.take()
    }
}

impl Machine {
    /// [`Machine::run_turn`] with an eye on breakpoints.
    pub(crate) fn run_turn_debugged<const TIMED: bool>(&mut self, hart: usize, broken_off: Option<bool>) {
        let mut inside_run = broken_off.unwrap_or(false);
        // A turn that was broken off at a breakpoint gets past it.
        let mut may_break = broken_off.is_none();
        loop {
            let hot = &self.memory.hot[hart];
            if !inside_run && hot.cycle >= hot.limit {
                return;
            }
            let counts = self.debug.only.is_none_or(|only| only == hart);
            if may_break && counts && self.debug.breakpoints.contains(&hot.pc) {
                return self.break_off(hart, inside_run, Break::Breakpoint { hart });
            }
            may_break = true;
            let (goes_on, watched) = self.run_debugged::<TIMED>(hart);
            inside_run = goes_on;
            if let Some(why) = watched {
                self.debug.step = self.debug.step.filter(|stepping| *stepping != hart);
                return self.break_off(hart, inside_run, why);
            }
            if self.debug.step == Some(hart) {
                self.debug.step = None;
                return self.break_off(hart, inside_run, Break::Step);
            }
        }
    }

    fn break_off(&mut self, hart: usize, inside_run: bool, why: Break) {
        self.debug.broken = Some(BrokenTurn { hart, limit: self.memory.hot[hart].limit, inside_run });
        self.debug.reached = Some(why);
    }

    /// Executes up to the next place where the debugger may want to break, and at most one run of ops. Says whether that place
    /// is inside the run, and whether the last instruction met a watchpoint.
    fn run_debugged<const TIMED: bool>(&mut self, hart: usize) -> (bool, Option<Break>) {
        let Some(page) = self.code_page(hart) else { return (false, None) };
        let pc = self.memory.hot[hart].pc;
        let offset = (pc % PAGE_BYTES) as u32;
        // SAFETY: `code_page` returned the pointer; pages are boxed and never freed. The reference ends with this line.
        let address = unsafe { (*page).address };
        self.fetch_line::<TIMED>(hart, address + u64::from(offset));
        let end = self.next_stop(hart, offset);
        let mut cut = CodePage::of_run(&self.memory.ram, address, offset, end);
        let access = if self.debug.watchpoints.is_empty() { None } else { self.cut_at_access(hart, &mut cut, offset) };
        let (count, goes_on, next) = cut.extent();
        let before = self.memory.hot[hart].instructions;
        self.run_once::<TIMED>(hart, &mut cut);
        let hot = &self.memory.hot[hart];
        let retired = hot.instructions - before;
        let fell_through = retired == count && hot.pc == pc - u64::from(offset) + u64::from(next);
        let inside_run = goes_on && fell_through && next < line_end(offset);
        let watched = access.filter(|_| retired > 0).and_then(|access| self.watchpoint_of(hart, &access));
        (inside_run, watched)
    }

    /// The page offset before which a run from `offset` is cut off for a step or a breakpoint.
    fn next_stop(&self, hart: usize, offset: u32) -> u32 {
        if self.debug.step == Some(hart) {
            return offset + 1;
        }
        let pc = self.memory.hot[hart].pc;
        let line = pc - u64::from(offset) + u64::from(line_end(offset));
        let next = self.debug.breakpoints.range(pc + 1..line).next();
        next.map_or(line_end(offset), |address| offset + (address - pc) as u32)
    }

    /// The physical address that a hart's virtual address means now, whatever its permissions. Changes nothing.
    pub(crate) fn peek_address(&self, hart: usize, address: u64) -> Option<u64> {
        let page = peek(&self.memory.ram, &self.harts[hart].context(&self.memory.hot[hart]), address)?;
        let physical = page | address & ((1 << PAGE_SHIFT) - 1);
        self.memory.ram.contains(physical, 1).then_some(physical)
    }
}

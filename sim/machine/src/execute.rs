//! The interpreter: executes decoded runs of one hart until its turn ends.
//!
//! What happens at every instruction is here; what happens sometimes (misses, devices, traps, CSRs, SBI calls) is behind calls
//! into the neighbouring files. The clock and the instruction count are brought up to date where a run is left, so between
//! two such places they lag by at most the length of a run, 32 ops.
//!
//! A translator to host code would take the place of [`Machine::run_turn`] and nothing else: `docs/` says what it needs.

mod access;
pub(crate) mod code;
pub(crate) mod csr;
pub(crate) mod position;
mod sbi;
mod system;
mod trap;

use crate::execute::code::CodePage;
use crate::execute::position::Position;
use crate::hart::{CAUSE_LOAD_MISALIGNED, CAUSE_STORE_MISALIGNED, Privilege, SSTATUS_FS};
use crate::machine::{End, Machine};
use concord_abi::exit::Exit;
use concord_htm::{Loss, WORD_SHIFT};
use concord_isa::float;
use concord_isa::integer::*;
use concord_isa::op::{Atomic, Kind, Op};
use concord_mem::cache::line_of;
use concord_mem::fault::{Access, Fault};
use concord_mem::line_table::{self, ENTRIES, access_tag};
use concord_mem::ram::{LINE_SHIFT, PAGE_BYTES, PAGE_SHIFT};

/// What the line table answers in the interpreter's one compare: accesses to lines that it holds; of these only the ones to words
/// in the sets of the hart's transaction; nothing, so that every access is seen.
const BY_LINE: u8 = 0;
const BY_WORD: u8 = 1;
const NOTHING: u8 = 2;

/// The register `ra`.
const RETURN_ADDRESS: u8 = 1;

/// How a run was left.
enum Left {
    /// Every op before `end` completed; the hart goes on at `target`, relative to the address of the run's page.
    Gone { end: *const Op, target: u64, free: u32 },
    /// Every op before `op` completed, and this one did not.
    Stopped { op: *const Op, stop: Stop, free: u32 },
}

/// Why a run was left at an op that did not complete.
pub(crate) enum Stop {
    /// The op raised an exception.
    Trap { cause: u64, value: u64 },
    /// The op is one that the machine carries out between runs.
    System,
    /// The hart's transaction lost.
    Lost(Box<Loss>),
    /// A transaction is in the way, and the op is to be tried again after so long.
    Wait { cycles: u64 },
    /// A compare-and-swap is not to be done now.
    Refused,
    /// A transaction cannot do this.
    Irrevocable,
    /// The run is over.
    Ended,
}

impl From<Fault> for Stop {
    #[cold]
    fn from(fault: Fault) -> Stop {
        Stop::Trap { cause: fault.cause(), value: fault.address }
    }
}

/// Signed, for the comparisons and shifts that need it.
#[inline(always)]
fn signed(value: u64) -> i64 {
    value as i64
}

impl Machine {
    /// Runs a hart until its clock reaches its limit, or until something takes the limit away.
    pub(crate) fn run_turn<const TIMED: bool>(&mut self, hart: usize) {
        while self.harts[hart].cycle < self.harts[hart].limit {
            if let Some(page) = self.code_page(hart) {
                if self.watched {
                    self.run_page_watched::<TIMED>(hart, page);
                } else {
                    self.run_page::<TIMED, BY_LINE>(hart, page);
                }
            }
        }
    }

    /// [`Machine::run_page`] while a transaction lives or the isolation checker watches. Apart, so that the host's registers are all
    /// the other's.
    #[inline(never)]
    fn run_page_watched<const TIMED: bool>(&mut self, hart: usize, page: *mut CodePage) {
        match self.answers::<TIMED>(hart) {
            BY_LINE => self.run_page::<TIMED, BY_LINE>(hart, page),
            BY_WORD => self.run_page::<TIMED, BY_WORD>(hart, page),
            _ => self.run_page::<TIMED, NOTHING>(hart, page),
        }
    }

    /// What the line table may answer for a hart now. Where it answers for lines, it also knows the words of the transaction's sets;
    /// the functional gear's answers for whole pages, which is too much while a transaction lives.
    pub(crate) fn answers<const TIMED: bool>(&self, hart: usize) -> u8 {
        if !self.watched {
            BY_LINE
        } else if !TIMED || self.checker.is_some() {
            NOTHING
        } else if self.transactions.is_active(hart) {
            BY_WORD
        } else {
            BY_LINE
        }
    }

    /// The decoded page that the program counter points into, or `None` after a trap was raised.
    #[inline]
    pub(crate) fn code_page(&mut self, hart: usize) -> Option<*mut CodePage> {
        let pc = self.harts[hart].pc;
        let core = self.memory.core(hart);
        let tag = pc >> PAGE_SHIFT << 1 | u64::from(core.context.user);
        let slot = core.fetch_translations.slot(pc);
        let entry = core.fetch_translations.entry(slot);
        if entry.tag == tag && entry.code != 0 {
            let code = entry.code;
            return Some(self.code.page(code));
        }
        self.find_code_page(hart, pc, tag)
    }

    #[cold]
    fn find_code_page(&mut self, hart: usize, pc: u64, tag: u64) -> Option<*mut CodePage> {
        let mut slot = self.memory.core(hart).fetch_translations.slot(pc);
        if self.memory.core(hart).fetch_translations.entry(slot).tag != tag {
            if self.watched {
                self.resolve_walk(Position::between_runs(hart), pc, Access::Fetch);
            }
            let translated = self.memory.translate_fetch(hart, pc);
            self.drop_stale_code();
            self.charge_stalls(hart);
            slot = match translated {
                Ok(slot) => slot,
                Err(fault) => {
                    self.end_if_lost(hart, pc);
                    self.trap(hart, fault.cause(), fault.address);
                    // A hart that traps without retiring anything must still use up its turn.
                    self.harts[hart].cycle += 1;
                    return None;
                }
            };
        }
        let entry = self.memory.core(hart).fetch_translations.entry(slot);
        let code = self.code.handle(entry.page());
        entry.code = code;
        Some(self.code.page(code))
    }

    /// A hart that cannot fetch its own trap handler traps there for ever, without retiring an instruction.
    fn end_if_lost(&mut self, hart: usize, pc: u64) {
        let state = &self.harts[hart];
        if state.privilege == Privilege::Supervisor && pc == state.stvec & !3 {
            self.end(End { exit: Exit::Deadlocked, code: 0, hart: Some(hart) });
        }
    }

    pub(crate) fn charge_stalls(&mut self, hart: usize) {
        let stalls = std::mem::take(&mut self.memory.core(hart).stall_cycles);
        self.harts[hart].cycle += stalls;
    }

    /// Decodes the run at a page offset.
    #[cold]
    #[inline(never)]
    fn decode_run(&mut self, page: *mut CodePage, page_offset: u32) -> *const Op {
        // SAFETY: pages are boxed and never freed, and no other reference to this one is alive here.
        let page = unsafe { &mut *page };
        self.memory.note_code(((page.address - concord_mem::ram::RAM_BASE) >> PAGE_SHIFT) as usize);
        page.decode_run(&self.memory.ram, page_offset)
    }

    /// Charges the fetch of the line at a page offset of a code page.
    #[inline]
    pub(crate) fn fetch_line<const TIMED: bool>(&mut self, hart: usize, page_address: u64, page_offset: u32) {
        if TIMED {
            self.memory.touch_fetch(hart, line_of(page_address) + (page_offset >> LINE_SHIFT));
        }
    }

    /// Runs from `hart.pc`, which lies in `page`, until the page is left or the turn ends.
    #[inline]
    fn run_page<const TIMED: bool, const ANSWERS: u8>(&mut self, hart: usize, page: *mut CodePage) {
        let mut offset = self.harts[hart].pc as u32 & (PAGE_BYTES as u32 - 1);
        loop {
            // SAFETY: `code_page` returned the pointer; pages are boxed and never freed. The reference ends with this line.
            let (found, physical) = unsafe { ((*page).find(offset), (*page).address) };
            self.fetch_line::<TIMED>(hart, physical, offset);
            let first = match found {
                Some(first) => first,
                None => self.decode_run(page, offset),
            };
            match self.run::<TIMED, ANSWERS>(hart, page, first) {
                Some(next) => offset = next,
                None => return,
            }
        }
    }

    /// Executes one run as [`Machine::run_page`] would, for a page of one run.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_once<const TIMED: bool>(&mut self, hart: usize, page: &mut CodePage) {
        let first = page.first();
        match self.answers::<TIMED>(hart) {
            BY_LINE => self.run::<TIMED, BY_LINE>(hart, page, first),
            BY_WORD => self.run::<TIMED, BY_WORD>(hart, page, first),
            _ => self.run::<TIMED, NOTHING>(hart, page, first),
        };
    }

    /// Executes the run of `page` that begins at `first` and brings the hart's clock and program counter up to date.
    /// Returns the page offset to go on at, where that is in the same page and the turn is not over.
    #[inline(always)]
    fn run<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        page: *mut CodePage,
        first: *const Op,
    ) -> Option<u32> {
        let page_address = self.harts[hart].pc & u64::MAX << PAGE_SHIFT;
        let left = self.run_ops::<TIMED, ANSWERS>(hart, first, page_address);
        let (end, free) = match &left {
            Left::Gone { end, free, .. } => (*end, *free),
            Left::Stopped { op, free, .. } => (*op, *free),
        };
        // SAFETY: `run_ops` returns a pointer into the array of ops that `first` points into.
        let completed = unsafe { end.offset_from(first) } as u64;
        let stalls = if TIMED { std::mem::take(&mut self.memory.core(hart).stall_cycles) } else { 0 };
        let state = &mut self.harts[hart];
        state.instructions += completed;
        state.cycle += completed - u64::from(free) + stalls;
        match left {
            Left::Gone { target, .. } => {
                state.pc = page_address.wrapping_add(target);
                (target < PAGE_BYTES && state.cycle < state.limit).then_some(target as u32)
            }
            Left::Stopped { op, stop, .. } => {
                // SAFETY: `op` is an op of this page, whose array nothing has changed since it ran.
                let (offset, op) = unsafe { ((*page).offset_of(op), *op) };
                state.pc = page_address + u64::from(offset);
                self.finish_op::<TIMED>(hart, op, stop);
                None
            }
        }
    }
}

impl Machine {
    /// Executes ops from `first` on until one leaves the run.
    #[inline(always)]
    fn run_ops<const TIMED: bool, const ANSWERS: u8>(
        &mut self,
        hart: usize,
        first: *const Op,
        page_address: u64,
    ) -> Left {
        let x = self.harts[hart].x.as_mut_ptr();
        let core = self.memory.core(hart);
        let user = if core.context.user { line_table::USER } else { 0 };
        let lines = if ANSWERS == NOTHING { self.memory.empty_lines().as_mut_ptr() } else { core.lines.as_mut_ptr() };
        let mut next = first;
        // Ops of this run that took no cycle.
        let mut free = 0;
        // SAFETY: for the whole loop: `next` stays inside its page's ops, because every run ends with an op that leaves it
        // (`Op::ends_run` or `Kind::Next`); register numbers are at most `op::SINK`, below the length of `x`; `lines` has
        // ENTRIES entries and an entry whose tag matches holds a host address inside RAM, aligned for the access; calls on
        // `self` change registers and entries in place and move neither.
        unsafe {
            macro_rules! x {
                ($register:expr) => {
                    *x.add($register as usize)
                };
            }
            macro_rules! stop {
                ($op:expr, $stop:expr) => {
                    return Left::Stopped { op: $op, stop: $stop, free }
                };
            }
            loop {
                let here = next;
                let op = *here;
                next = next.add(1);
                macro_rules! set {
                    ($value:expr) => {{
                        let value: u64 = $value;
                        x!(op.rd) = value;
                    }};
                }
                macro_rules! at {
                    () => {
                        Position { hart, completed: here.offset_from(first) as u32, free }
                    };
                }
                macro_rules! branch {
                    ($condition:expr) => {
                        if $condition {
                            return Left::Gone { end: next, target: op.imm as i64 as u64, free };
                        }
                    };
                }
                // A transaction's access goes ahead where the word is in its sets already.
                macro_rules! is_member {
                    ($words:expr, $address:expr) => {
                        ANSWERS != BY_WORD || $words >> ($address >> WORD_SHIFT & 7) & 1 == 1
                    };
                }
                macro_rules! load {
                    ($type:ty) => {{
                        const SIZE: u64 = size_of::<$type>() as u64;
                        let address = x!(op.rs1).wrapping_add(op.imm as i64 as u64);
                        let entry = &*lines.add((address >> line_table::shift(TIMED)) as usize & (ENTRIES - 1));
                        if entry.read_tag == access_tag(TIMED, address, SIZE, user)
                            && is_member!(entry.readable_words, address)
                        {
                            *(address.wrapping_add(entry.addend) as *const $type)
                        } else {
                            match self.load_slowly(at!(), address, SIZE) {
                                Ok(value) => value as $type,
                                Err(stop) => stop!(here, stop),
                            }
                        }
                    }};
                }
                macro_rules! store {
                    ($type:ty, $value:expr) => {{
                        const SIZE: u64 = size_of::<$type>() as u64;
                        let address = x!(op.rs1).wrapping_add(op.imm as i64 as u64);
                        let entry = &*lines.add((address >> line_table::shift(TIMED)) as usize & (ENTRIES - 1));
                        let value: u64 = $value;
                        if entry.write_tag == access_tag(TIMED, address, SIZE, user)
                            && is_member!(entry.writable_words, address)
                        {
                            *(address.wrapping_add(entry.addend) as *mut $type) = value as $type;
                        } else {
                            if let Err(stop) = self.store_slowly(at!(), address, SIZE, value) {
                                stop!(here, stop);
                            }
                        }
                    }};
                }
                macro_rules! atomic {
                    ($type:ty, $apply:ident) => {{
                        const SIZE: u64 = size_of::<$type>() as u64;
                        let address = x!(op.rs1);
                        let operand = x!(op.rs2);
                        let operation = Atomic::from_immediate(op.imm);
                        let entry = &*lines.add((address >> line_table::shift(TIMED)) as usize & (ENTRIES - 1));
                        if entry.write_tag == access_tag(TIMED, address, SIZE, user)
                            && is_member!(entry.writable_words, address)
                        {
                            let place = address.wrapping_add(entry.addend) as *mut $type;
                            let old = *place as u64;
                            *place = operation.$apply(old, operand) as $type;
                            old as $type
                        } else if address % SIZE != 0 {
                            stop!(here, Stop::Trap { cause: CAUSE_STORE_MISALIGNED, value: address });
                        } else {
                            match self.read_modify_write(at!(), address, SIZE, |old| operation.$apply(old, operand)) {
                                Ok(old) => old as $type,
                                Err(stop) => stop!(here, stop),
                            }
                        }
                    }};
                }
                macro_rules! load_reserved {
                    ($type:ty) => {{
                        const SIZE: u64 = size_of::<$type>() as u64;
                        let address = x!(op.rs1);
                        if address % SIZE != 0 {
                            stop!(here, Stop::Trap { cause: CAUSE_LOAD_MISALIGNED, value: address });
                        }
                        match self.load_reserved(at!(), address, SIZE) {
                            Ok(value) => value as $type,
                            Err(stop) => stop!(here, stop),
                        }
                    }};
                }
                macro_rules! store_conditional {
                    ($type:ty) => {{
                        const SIZE: u64 = size_of::<$type>() as u64;
                        let address = x!(op.rs1);
                        if address % SIZE != 0 {
                            stop!(here, Stop::Trap { cause: CAUSE_STORE_MISALIGNED, value: address });
                        }
                        match self.store_conditional(at!(), address, SIZE, x!(op.rs2)) {
                            Ok(stored) => set!(u64::from(!stored)),
                            Err(stop) => stop!(here, stop),
                        }
                    }};
                }
                macro_rules! float_is_on {
                    () => {
                        if !self.harts[hart].float_is_on() {
                            stop!(here, Stop::System);
                        }
                    };
                }
                let imm = op.imm as i64 as u64;
                match op.kind {
                    Kind::Next => return Left::Gone { end: here, target: imm, free },
                    Kind::Nop | Kind::Fence => {}
                    Kind::LoadImmediate => set!(imm),
                    Kind::AddPc => set!(page_address.wrapping_add(imm)),
                    Kind::Move => set!(x!(op.rs1)),
                    Kind::AddImmediate => set!(x!(op.rs1).wrapping_add(imm)),
                    Kind::SetLessThanImmediate => set!(u64::from(signed(x!(op.rs1)) < op.imm as i64)),
                    Kind::SetLessThanUnsignedImmediate => set!(u64::from(x!(op.rs1) < imm)),
                    Kind::XorImmediate => set!(x!(op.rs1) ^ imm),
                    Kind::OrImmediate => set!(x!(op.rs1) | imm),
                    Kind::AndImmediate => set!(x!(op.rs1) & imm),
                    Kind::ShiftLeftImmediate => set!(x!(op.rs1) << (imm & 63)),
                    Kind::ShiftRightImmediate => set!(x!(op.rs1) >> (imm & 63)),
                    Kind::ShiftRightArithmeticImmediate => set!((signed(x!(op.rs1)) >> (imm & 63)) as u64),
                    Kind::AddWordImmediate => set!(sign_extend_word(x!(op.rs1).wrapping_add(imm))),
                    Kind::ShiftLeftWordImmediate => set!(sign_extend_word(x!(op.rs1) << (imm & 31))),
                    Kind::ShiftRightWordImmediate => {
                        set!(sign_extend_word(zero_extend_word(x!(op.rs1)) >> (imm & 31)));
                    }
                    Kind::ShiftRightArithmeticWordImmediate => set!((x!(op.rs1) as i32 >> (imm & 31)) as u64),
                    Kind::Add => set!(x!(op.rs1).wrapping_add(x!(op.rs2))),
                    Kind::Subtract => set!(x!(op.rs1).wrapping_sub(x!(op.rs2))),
                    Kind::ShiftLeft => set!(x!(op.rs1) << (x!(op.rs2) & 63)),
                    Kind::SetLessThan => set!(u64::from(signed(x!(op.rs1)) < signed(x!(op.rs2)))),
                    Kind::SetLessThanUnsigned => set!(u64::from(x!(op.rs1) < x!(op.rs2))),
                    Kind::Xor => set!(x!(op.rs1) ^ x!(op.rs2)),
                    Kind::ShiftRight => set!(x!(op.rs1) >> (x!(op.rs2) & 63)),
                    Kind::ShiftRightArithmetic => set!((signed(x!(op.rs1)) >> (x!(op.rs2) & 63)) as u64),
                    Kind::Or => set!(x!(op.rs1) | x!(op.rs2)),
                    Kind::And => set!(x!(op.rs1) & x!(op.rs2)),
                    Kind::AddWord => set!(sign_extend_word(x!(op.rs1).wrapping_add(x!(op.rs2)))),
                    Kind::SubtractWord => set!(sign_extend_word(x!(op.rs1).wrapping_sub(x!(op.rs2)))),
                    Kind::ShiftLeftWord => set!(sign_extend_word(x!(op.rs1) << (x!(op.rs2) & 31))),
                    Kind::ShiftRightWord => {
                        set!(sign_extend_word(zero_extend_word(x!(op.rs1)) >> (x!(op.rs2) & 31)));
                    }
                    Kind::ShiftRightArithmeticWord => set!((x!(op.rs1) as i32 >> (x!(op.rs2) & 31)) as u64),
                    Kind::LoadByte => set!(load!(u8) as i8 as u64),
                    Kind::LoadHalf => set!(load!(u16) as i16 as u64),
                    Kind::LoadWord => set!(load!(u32) as i32 as u64),
                    Kind::LoadDouble => set!(load!(u64)),
                    Kind::LoadByteUnsigned => set!(load!(u8) as u64),
                    Kind::LoadHalfUnsigned => set!(load!(u16) as u64),
                    Kind::LoadWordUnsigned => set!(load!(u32) as u64),
                    Kind::StoreByte => store!(u8, x!(op.rs2)),
                    Kind::StoreHalf => store!(u16, x!(op.rs2)),
                    Kind::StoreWord => store!(u32, x!(op.rs2)),
                    Kind::StoreDouble => store!(u64, x!(op.rs2)),
                    Kind::BranchEqual => branch!(x!(op.rs1) == x!(op.rs2)),
                    Kind::BranchNotEqual => branch!(x!(op.rs1) != x!(op.rs2)),
                    Kind::BranchLessThan => branch!(signed(x!(op.rs1)) < signed(x!(op.rs2))),
                    Kind::BranchGreaterEqual => branch!(signed(x!(op.rs1)) >= signed(x!(op.rs2))),
                    Kind::BranchLessThanUnsigned => branch!(x!(op.rs1) < x!(op.rs2)),
                    Kind::BranchGreaterEqualUnsigned => branch!(x!(op.rs1) >= x!(op.rs2)),
                    Kind::Jump => {
                        set!(page_address.wrapping_add(u64::from(op.rs1) | u64::from(op.rs2) << 8));
                        return Left::Gone { end: next, target: imm, free };
                    }
                    Kind::JumpRegister => {
                        let target = x!(op.rs1).wrapping_add((op.imm >> 16) as u64) & !1;
                        set!(page_address.wrapping_add(imm & 0xffff));
                        return Left::Gone { end: next, target: target.wrapping_sub(page_address), free };
                    }
                    Kind::Multiply => set!(x!(op.rs1).wrapping_mul(x!(op.rs2))),
                    Kind::MultiplyHigh => set!(multiply_high(x!(op.rs1), x!(op.rs2))),
                    Kind::MultiplyHighSignedUnsigned => {
                        set!(multiply_high_signed_unsigned(x!(op.rs1), x!(op.rs2)));
                    }
                    Kind::MultiplyHighUnsigned => set!(multiply_high_unsigned(x!(op.rs1), x!(op.rs2))),
                    Kind::Divide => set!(divide(x!(op.rs1), x!(op.rs2))),
                    Kind::DivideUnsigned => set!(divide_unsigned(x!(op.rs1), x!(op.rs2))),
                    Kind::Remainder => set!(remainder(x!(op.rs1), x!(op.rs2))),
                    Kind::RemainderUnsigned => set!(remainder_unsigned(x!(op.rs1), x!(op.rs2))),
                    Kind::MultiplyWord => set!(sign_extend_word(x!(op.rs1).wrapping_mul(x!(op.rs2)))),
                    Kind::DivideWord => set!(divide_word(x!(op.rs1), x!(op.rs2))),
                    Kind::DivideWordUnsigned => set!(divide_word_unsigned(x!(op.rs1), x!(op.rs2))),
                    Kind::RemainderWord => set!(remainder_word(x!(op.rs1), x!(op.rs2))),
                    Kind::RemainderWordUnsigned => set!(remainder_word_unsigned(x!(op.rs1), x!(op.rs2))),
                    Kind::LoadReservedWord => set!(load_reserved!(u32) as i32 as u64),
                    Kind::LoadReservedDouble => set!(load_reserved!(u64)),
                    Kind::StoreConditionalWord => store_conditional!(u32),
                    Kind::StoreConditionalDouble => store_conditional!(u64),
                    Kind::AtomicWord => set!(atomic!(u32, apply_word) as i32 as u64),
                    Kind::AtomicDouble => set!(atomic!(u64, apply)),
                    Kind::LoadFloatWord => {
                        float_is_on!();
                        let value = load!(u32) as u64 | u64::from(u32::MAX) << 32;
                        self.set_float(hart, op.rd, value);
                    }
                    Kind::LoadFloatDouble => {
                        float_is_on!();
                        let value = load!(u64);
                        self.set_float(hart, op.rd, value);
                    }
                    Kind::StoreFloatWord => {
                        float_is_on!();
                        store!(u32, self.harts[hart].f[op.rs2 as usize]);
                    }
                    Kind::StoreFloatDouble => {
                        float_is_on!();
                        store!(u64, self.harts[hart].f[op.rs2 as usize]);
                    }
                    Kind::Float => {
                        if !self.execute_float(hart, op) {
                            stop!(here, Stop::System);
                        }
                    }
                    Kind::ShiftOneAdd => set!((x!(op.rs1) << 1).wrapping_add(x!(op.rs2))),
                    Kind::ShiftTwoAdd => set!((x!(op.rs1) << 2).wrapping_add(x!(op.rs2))),
                    Kind::ShiftThreeAdd => set!((x!(op.rs1) << 3).wrapping_add(x!(op.rs2))),
                    Kind::AddUnsignedWord => set!(zero_extend_word(x!(op.rs1)).wrapping_add(x!(op.rs2))),
                    Kind::ShiftOneAddUnsignedWord => {
                        set!((zero_extend_word(x!(op.rs1)) << 1).wrapping_add(x!(op.rs2)));
                    }
                    Kind::ShiftTwoAddUnsignedWord => {
                        set!((zero_extend_word(x!(op.rs1)) << 2).wrapping_add(x!(op.rs2)));
                    }
                    Kind::ShiftThreeAddUnsignedWord => {
                        set!((zero_extend_word(x!(op.rs1)) << 3).wrapping_add(x!(op.rs2)));
                    }
                    Kind::ShiftLeftUnsignedWordImmediate => set!(zero_extend_word(x!(op.rs1)) << (imm & 63)),
                    Kind::AndNot => set!(x!(op.rs1) & !x!(op.rs2)),
                    Kind::OrNot => set!(x!(op.rs1) | !x!(op.rs2)),
                    Kind::XorNot => set!(!(x!(op.rs1) ^ x!(op.rs2))),
                    Kind::CountLeadingZeros => set!(u64::from(x!(op.rs1).leading_zeros())),
                    Kind::CountTrailingZeros => set!(u64::from(x!(op.rs1).trailing_zeros())),
                    Kind::CountOnes => set!(u64::from(x!(op.rs1).count_ones())),
                    Kind::CountLeadingZerosWord => set!(u64::from((x!(op.rs1) as u32).leading_zeros())),
                    Kind::CountTrailingZerosWord => set!(u64::from((x!(op.rs1) as u32).trailing_zeros())),
                    Kind::CountOnesWord => set!(u64::from((x!(op.rs1) as u32).count_ones())),
                    Kind::Maximum => set!(signed(x!(op.rs1)).max(signed(x!(op.rs2))) as u64),
                    Kind::MaximumUnsigned => set!(x!(op.rs1).max(x!(op.rs2))),
                    Kind::Minimum => set!(signed(x!(op.rs1)).min(signed(x!(op.rs2))) as u64),
                    Kind::MinimumUnsigned => set!(x!(op.rs1).min(x!(op.rs2))),
                    Kind::SignExtendByte => set!(x!(op.rs1) as i8 as u64),
                    Kind::SignExtendHalf => set!(x!(op.rs1) as i16 as u64),
                    Kind::ZeroExtendHalf => set!(x!(op.rs1) & 0xffff),
                    Kind::RotateLeft => set!(x!(op.rs1).rotate_left(x!(op.rs2) as u32 & 63)),
                    Kind::RotateRight => set!(x!(op.rs1).rotate_right(x!(op.rs2) as u32 & 63)),
                    Kind::RotateRightImmediate => set!(x!(op.rs1).rotate_right(imm as u32 & 63)),
                    Kind::RotateLeftWord => {
                        set!((x!(op.rs1) as u32).rotate_left(x!(op.rs2) as u32 & 31) as i32 as u64);
                    }
                    Kind::RotateRightWord => {
                        set!((x!(op.rs1) as u32).rotate_right(x!(op.rs2) as u32 & 31) as i32 as u64);
                    }
                    Kind::RotateRightWordImmediate => {
                        set!((x!(op.rs1) as u32).rotate_right(imm as u32 & 31) as i32 as u64);
                    }
                    Kind::OrCombineBytes => set!(or_combine_bytes(x!(op.rs1))),
                    Kind::ReverseBytes => set!(x!(op.rs1).swap_bytes()),
                    Kind::BitClear => set!(x!(op.rs1) & !(1 << (x!(op.rs2) & 63))),
                    Kind::BitClearImmediate => set!(x!(op.rs1) & !(1 << (imm & 63))),
                    Kind::BitExtract => set!(x!(op.rs1) >> (x!(op.rs2) & 63) & 1),
                    Kind::BitExtractImmediate => set!(x!(op.rs1) >> (imm & 63) & 1),
                    Kind::BitInvert => set!(x!(op.rs1) ^ 1 << (x!(op.rs2) & 63)),
                    Kind::BitInvertImmediate => set!(x!(op.rs1) ^ 1 << (imm & 63)),
                    Kind::BitSet => set!(x!(op.rs1) | 1 << (x!(op.rs2) & 63)),
                    Kind::BitSetImmediate => set!(x!(op.rs1) | 1 << (imm & 63)),
                    Kind::LockHint => {
                        self.lock_hint(at!(), op.imm as u16, x!(op.rs1), x!(RETURN_ADDRESS));
                        free += u32::from(TIMED);
                    }
                    Kind::Straddle
                    | Kind::Illegal
                    | Kind::FenceInstruction
                    | Kind::EnvironmentCall
                    | Kind::Breakpoint
                    | Kind::SupervisorReturn
                    | Kind::WaitForInterrupt
                    | Kind::FenceAddressTranslation
                    | Kind::Csr
                    | Kind::Hint
                    | Kind::Transaction
                    | Kind::TransactionTest
                    | Kind::TransactionCompareAndSwap => stop!(here, Stop::System),
                }
            }
        }
    }

    #[inline]
    fn set_float(&mut self, hart: usize, register: u8, value: u64) {
        let state = &mut self.harts[hart];
        state.f[register as usize] = value;
        state.sstatus |= SSTATUS_FS;
    }

    /// Executes an arithmetic floating-point instruction; false when it is illegal now.
    #[inline(never)]
    fn execute_float(&mut self, hart: usize, op: Op) -> bool {
        let state = &mut self.harts[hart];
        if !state.float_is_on() {
            return false;
        }
        let word = op.imm as u32;
        let register = |shift: u32| (word >> shift & 31) as usize;
        let first = if op.rs1 == 1 { state.x[register(15)] } else { state.f[register(15)] };
        let operands = [first, state.f[register(20)], state.f[register(27)]];
        let Ok(result) = float::execute(word, operands, (state.fcsr >> 5) as u8) else {
            return false;
        };
        state.fcsr |= u64::from(result.flags);
        state.sstatus |= SSTATUS_FS;
        match (op.rs2 == 1, register(7)) {
            (true, 0) => {}
            (true, rd) => state.x[rd] = result.value,
            (false, rd) => state.f[rd] = result.value,
        }
        true
    }
}

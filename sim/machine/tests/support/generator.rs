//! Seeded programs: an initial state and a list of items, each a short sequence of instructions that ends at its own
//! last instruction. A program of fewer items of the same seed is a prefix of the longer one, which lets a difference
//! be traced to its item.
//!
//! Registers x22 to x27 are the harness's and the generator's: a temporary and the sum of results seen so far, the
//! address to go on at after a failed fetch, the harness's context, the counter of the current loop, the base of the
//! data. Everything else is the program's to destroy.
//!
//! What the specification leaves open, or where QEMU 7.2 departs from it, is not generated: SC to misaligned or other
//! addresses within a reservation, odd values of sepc, undefined causes, page tables outside memory.

mod compressed;
mod control;
mod float;
mod integer;
mod memory;
mod system;

use super::assembler::{Code, EBREAK, OP_FP, OP_IMM, add, i_type, r_type};
use super::harness::{
    CODE_SLOT, CONTEXT, CONTEXT_REGISTER, DATA_SIZE_BYTES, DATA_SLOT, PTE_ACCESSED_DIRTY, PTE_EXECUTE, PTE_READ,
    PTE_USER, PTE_VALID, PTE_WRITE, Paging, RESUME_REGISTER, WINDOW_PAGES, WINDOWS, pte,
};
use super::random::Random;

const MIX_TEMPORARY: u32 = 22;
/// Results that a later instruction overwrites would not be seen in the final state, so many are folded into this
/// register.
const MIX_REGISTER: u32 = 23;
/// The first of the registers that programs do not write.
const RESERVED_FIRST: u32 = MIX_TEMPORARY;
pub const LOOP_REGISTER: u32 = 26;
pub const DATA_REGISTER: u32 = 27;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    pub paging: Paging,
    pub is_user: bool,
}

/// One item's place in the code.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: &'static str,
    pub start: usize,
    pub end: usize,
}

/// A program and the state it starts from.
#[derive(Clone, Debug)]
pub struct Program {
    pub variant: Variant,
    pub integers: [u64; 32],
    pub floats: [u64; 32],
    pub fcsr: u64,
    pub window_entries: [u64; WINDOW_PAGES],
    pub megapage_entry: u64,
    pub data: Vec<u8>,
    pub code: Vec<u8>,
    /// The address of the breakpoint that ends the program.
    pub end_pc: u64,
    pub items: Vec<Item>,
}

/// What items are made with.
pub struct Generator {
    random: Random,
    code: Code,
    variant: Variant,
    data_base: u64,
}

type Emit = fn(&mut Generator);

/// The kinds of item and how often each is chosen. Only the first group may stand in a loop or behind a branch.
const SIMPLE: [(u64, &str, Emit); 8] = [
    (30, "integer", integer::operation),
    (6, "integer, any encoding", integer::any_encoding),
    (12, "compressed", compressed::operation),
    (22, "float", float::operation),
    (3, "float, any encoding", float::any_encoding),
    (20, "load or store", memory::access),
    (5, "compressed load or store", memory::compressed_access),
    (5, "atomic", memory::atomic),
];
const COMPOUND: [(u64, &str, Emit); 10] = [
    (3, "reservation", memory::reservation),
    (5, "floating-point status", system::float_status),
    (5, "csr", system::csr),
    (3, "fence", system::fence),
    (3, "trap", system::trap),
    (1, "self-modification", system::self_modification),
    (2, "code in the data", system::code_in_data),
    (3, "loop", control::bounded_loop),
    (8, "forward branch", control::forward_branch),
    (5, "forward jump", control::forward_jump),
];

fn choose(random: &mut Random, kinds: &[(u64, &'static str, Emit)]) -> (&'static str, Emit) {
    let mut ticket = random.below(kinds.iter().map(|(weight, _, _)| weight).sum());
    for &(weight, name, emit) in kinds {
        if ticket < weight {
            return (name, emit);
        }
        ticket -= weight;
    }
    unreachable!("the ticket is below the sum of the weights")
}

impl Generator {
    /// Any register but those that hold the program together, as a destination.
    fn destination(&mut self) -> u32 {
        loop {
            let register = self.random.below(32) as u32;
            if !(RESERVED_FIRST..=DATA_REGISTER).contains(&register) {
                return register;
            }
        }
    }

    /// A destination that keeps what is written to it, and is none of `others`.
    fn temporary(&mut self, others: &[u32]) -> u32 {
        loop {
            let register = self.destination();
            if register != 0 && !others.contains(&register) {
                return register;
            }
        }
    }

    /// Any register, to be read.
    fn source(&mut self) -> u32 {
        self.random.below(32) as u32
    }

    /// Folds an integer result into the sum, most of the time.
    fn mix(&mut self, register: u32) {
        if !self.random.one_in(4) {
            // RORI by 7, so that equal results do not cancel.
            self.code.push(i_type(OP_IMM, MIX_REGISTER, 5, MIX_REGISTER, 0x600 | 7));
            self.code.push(add(MIX_REGISTER, MIX_REGISTER, register));
        }
    }

    /// Folds a floating-point result into the sum, most of the time.
    fn mix_float(&mut self, register: u32) {
        // FMV.X.D
        self.code.push(r_type(OP_FP, MIX_TEMPORARY, 0, register, 0, 0x71));
        self.mix(MIX_TEMPORARY);
    }

    fn simple_item(&mut self) {
        let (_, emit) = choose(&mut self.random, &SIMPLE);
        emit(self);
    }

    fn item(&mut self) -> &'static str {
        let simple: u64 = SIMPLE.iter().map(|(weight, _, _)| weight).sum();
        let compound: u64 = COMPOUND.iter().map(|(weight, _, _)| weight).sum();
        let kinds: &[_] = if self.random.below(simple + compound) < simple { &SIMPLE } else { &COMPOUND };
        let (name, emit) = choose(&mut self.random, kinds);
        emit(self);
        name
    }
}

/// An entry of a window page: mostly data that the program may use, sometimes something that faults.
fn window_entry(random: &mut Random, is_user: bool) -> u64 {
    let user = if is_user { PTE_USER } else { 0 };
    let page = DATA_SLOT + 4096 * random.below(2);
    let leaf = PTE_VALID | random.pick(&[0, 1 << 6, PTE_ACCESSED_DIRTY, PTE_ACCESSED_DIRTY]);
    let flags = match random.below(14) {
        0..=3 => leaf | PTE_READ | PTE_WRITE | user,
        4..=5 => leaf | PTE_READ | PTE_WRITE | PTE_EXECUTE | user,
        6 => leaf | PTE_READ | user,
        7 => leaf | PTE_EXECUTE | user,
        // No user page is executable in supervisor programs: once a load under SUM has brought it into the TLB, QEMU
        // 7.2 also fetches from it.
        8 => leaf | PTE_READ | PTE_WRITE | if is_user { PTE_EXECUTE } else { PTE_USER },
        9 => leaf | PTE_READ | (user ^ PTE_USER),
        10 => PTE_ACCESSED_DIRTY | PTE_READ | PTE_WRITE | user,
        // Write without read is reserved, and so are the bits from 54 on without their extensions.
        11 => leaf | PTE_WRITE | user,
        12 => leaf | PTE_READ | PTE_WRITE | user | 1 << (54 + random.below(10)),
        // A pointer where only a leaf may be.
        _ => PTE_VALID,
    };
    let global_and_software = random.below(2) << 5 | random.below(4) << 8;
    pte(page, flags | global_and_software)
}

impl Program {
    /// The program of `seed` with at most `items_max` items.
    pub fn generate(seed: u64, variant: Variant, items_max: usize) -> Program {
        let mut state = Random::new(seed ^ 0x5374_6174_6500_0000);
        let data_base = match variant.paging {
            Paging::Bare => DATA_SLOT,
            Paging::Sv39 | Paging::Sv48 => state.pick(&WINDOWS),
        };
        let mut integers = [0; 32];
        integers.iter_mut().for_each(|register| *register = state.integer());
        integers[CONTEXT_REGISTER as usize] = CONTEXT;
        integers[LOOP_REGISTER as usize] = 0;
        integers[DATA_REGISTER as usize] = data_base;
        let mut floats = [0; 32];
        floats.iter_mut().for_each(|register| *register = state.float());
        let mut window_entries = [0; WINDOW_PAGES];
        window_entries.iter_mut().for_each(|entry| *entry = window_entry(&mut state, variant.is_user));
        let user = if variant.is_user { PTE_USER } else { 0 };
        let megapage_entry = pte(DATA_SLOT, PTE_VALID | PTE_READ | PTE_WRITE | PTE_ACCESSED_DIRTY | user);
        let mut data = Vec::with_capacity(DATA_SIZE_BYTES);
        while data.len() < DATA_SIZE_BYTES {
            let word = if state.one_in(2) { state.float() } else { state.integer() };
            data.extend(word.to_le_bytes());
        }
        let fcsr = state.below(5) << 5;

        let random = Random::new(seed);
        let mut generator = Generator { random, code: Code::new(CODE_SLOT), variant, data_base };
        generator.float_pool();
        let mut items = Vec::with_capacity(items_max);
        for _ in 0..items_max {
            let start = generator.code.len_bytes();
            let name = generator.item();
            items.push(Item { name, start, end: generator.code.len_bytes() });
        }
        let end_pc = generator.code.pc();
        generator.code.push(EBREAK);
        Program {
            variant,
            integers,
            floats,
            fcsr,
            window_entries,
            megapage_entry,
            data,
            code: generator.code.finish(),
            end_pc,
            items,
        }
    }
}

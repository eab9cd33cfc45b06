//! Random guests: every hart runs a few random sections many times over, with interrupts whose handlers use the same memory,
//! and the guest logs words of which it is known what they must be in the end.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use crate::support::random::Random;
use concord_abi::hint::Hint;
use concord_abi::htm::*;

/// Accounts, eight bytes each; money moves, and none is made.
const ACCOUNTS: u64 = DATA;
const ACCOUNT_COUNT: u64 = 12;
const ACCOUNT_START: u64 = 1000;
/// Counters of sixteen bytes; each lies four bytes off, in two words, some of them in two lines.
const COUNTERS: u64 = DATA + 0x100 + 4;
const COUNTER_COUNT: u64 = 12;
/// Words that only atomics change.
const ATOMICS: u64 = DATA + 0x200;
const ATOMIC_COUNT: u64 = 4;
/// A lock, and two words that are equal whenever nobody holds it.
const LOCK: u64 = DATA + 0x240;
const PAIR: u64 = DATA + 0x280;
/// What harts did outside their transactions, all together, and in handlers.
const OUTSIDE: u64 = DATA + 0x2c0;
const HANDLED: u64 = DATA + 0x2c8;
/// Not zero where somebody saw what cannot be.
const WRONG: u64 = DATA + 0x300;
const FINISHED: u64 = DATA + 0x340;
/// For each hart, on a page of its own kind: what it did outside, and in handlers.
const OWN: u64 = DATA + 0x1000;
const OWN_BYTES: u64 = 64;

/// The handler's registers; what is in them outlives nothing.
const H0: u32 = 26;
const H1: u32 = 27;
const H2: u32 = 28;

/// What a guest is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub seed: u64,
    pub harts: usize,
    /// Sections of each hart, and how often it runs them.
    pub sections: u64,
    pub rounds: u64,
}

/// What the log must say.
pub struct Expected {
    counters: Vec<u64>,
    atomics: Vec<u64>,
    pair: u64,
}

struct Generator<'a> {
    bare: &'a mut Bare,
    random: Random,
    shape: Shape,
    hart: u64,
    expected: Expected,
}

/// Builds the guest of a shape.
pub fn build(bare: &mut Bare, shape: Shape) -> Expected {
    let expected =
        Expected { counters: vec![0; COUNTER_COUNT as usize], atomics: vec![0; ATOMIC_COUNT as usize], pair: 0 };
    let mut random = Random::new(shape.seed);
    let board = &mut bare.board;
    board.order.quantum_cycles = random.pick(&[1, 20, 200]);
    // Long enough for an LR and its SC, which a turn's end parts.
    board.order.functional_quantum_cycles = random.pick(&[20, 50, 300]);
    board.cache.data.size_bytes = random.pick(&[2 << 10, 16 << 10]);
    board.cache.data.ways = 4;
    board.cache.second.size_bytes = 32 << 10;
    for account in 0..ACCOUNT_COUNT {
        bare.set_word(ACCOUNTS + 8 * account, ACCOUNT_START);
    }
    // Devices, mapped to themselves.
    bare.set_word(TABLES, entry(0, READ | WRITE));
    let mut generator = Generator { bare, random, shape, hart: 0, expected };
    generator.harts();
    generator.expected
}

/// Checks what [`build`]'s guest logged.
pub fn check(expected: &Expected, logs: &Logs, why: &str) {
    let words: [u64; 36] = logs.words(0);
    let (accounts, rest) = words.split_at(ACCOUNT_COUNT as usize);
    let (counters, rest) = rest.split_at(COUNTER_COUNT as usize);
    let (atomics, rest) = rest.split_at(ATOMIC_COUNT as usize);
    assert_eq!(accounts.iter().fold(0, |sum: u64, account| sum.wrapping_add(*account)), TOTAL, "{why}: money");
    assert_eq!(counters, expected.counters, "{why}: counters");
    assert_eq!(atomics, expected.atomics, "{why}: atomics");
    assert_eq!(rest[..3], [0, expected.pair, expected.pair], "{why}: the lock, and what it guards");
    assert_eq!(rest[3], rest[4], "{why}: what was done outside");
    assert_eq!(rest[5], rest[6], "{why}: what handlers did");
    assert_eq!(rest[7], 0, "{why}: somebody saw what cannot be");
}

const TOTAL: u64 = ACCOUNT_COUNT * ACCOUNT_START;

impl Generator<'_> {
    fn harts(&mut self) {
        let handler = self.bare.code.label();
        let over = self.bare.code.label();
        self.bare.code.jump(ZERO, over);
        // The handler stands where a vector may point.
        while !self.bare.code.pc().is_multiple_of(4) {
            self.bare.code.push_compressed(1);
        }
        self.bare.code.bind(handler);
        self.handler();
        self.bare.code.bind(over);
        let starts: Vec<Label> = (1..self.shape.harts).map(|_| self.bare.code.label()).collect();
        for (index, start) in starts.iter().enumerate() {
            self.bare.start_hart(index as u64 + 1, *start);
        }
        self.body(handler);
        self.bare.wait_for(FINISHED, self.shape.harts as u64);
        self.bare.set_csr(CSR_STVEC, VECTOR);
        self.log();
        self.bare.finish();
        for (index, start) in starts.into_iter().enumerate() {
            self.hart = index as u64 + 1;
            self.bare.code.bind(start);
            self.bare.begin_hart();
            self.body(handler);
            self.bare.rest();
        }
    }

    /// Counts, moves money, sets its timer again a number of times, and returns.
    fn handler(&mut self) {
        let (bare, random) = (&mut *self.bare, &mut self.random);
        // sscratch points to what is the hart's own.
        bare.read_csr(H0, CSR_SSCRATCH);
        bare.push(ld(H1, H0, 8));
        bare.push(addi(H1, H1, 1));
        bare.push(sd(H1, H0, 8));
        bare.load(H0, HANDLED);
        bare.load(H1, 1);
        bare.push(amo_add(ZERO, H0, H1));
        bare.push(csr(7, ZERO, CSR_SIP, 2));
        if random.one_in(2) {
            bare.load(H0, ACCOUNTS);
            let (from, to) = (random.below(ACCOUNT_COUNT) as i64, random.below(ACCOUNT_COUNT) as i64);
            // Once: it may need what a suspended transaction has whose own handler needs what this hart's has.
            let given_up = bare.code.label();
            bare.begin(H2);
            bare.code.branch(1, H2, ZERO, given_up);
            bare.push(ld(H1, H0, 8 * from));
            bare.push(addi(H1, H1, -1));
            bare.push(sd(H1, H0, 8 * from));
            bare.push(ld(H1, H0, 8 * to));
            bare.push(addi(H1, H1, 1));
            bare.push(sd(H1, H0, 8 * to));
            bare.code.bind(given_up);
            bare.end();
        }
        // The next interrupt, unless there were enough.
        let (last, done) = (bare.code.label(), bare.code.label());
        bare.read_csr(H0, CSR_SSCRATCH);
        bare.push(ld(H1, H0, 8));
        bare.load(H2, 8 + random.below(20));
        bare.code.branch(7, H1, H2, last);
        bare.read_csr(H1, CSR_TIME);
        bare.push(addi(H1, H1, 20 + random.below(100) as i64));
        bare.csrw(CSR_STIMECMP, H1);
        bare.code.jump(ZERO, done);
        bare.code.bind(last);
        bare.push(addi(H1, ZERO, -1));
        bare.csrw(CSR_STIMECMP, H1);
        bare.code.bind(done);
        bare.push(SRET);
    }

    fn body(&mut self, handler: Label) {
        let translates = self.random.one_in(2);
        self.bare.load_address(T0, handler);
        self.bare.csrw(CSR_STVEC, T0);
        self.bare.set_csr(CSR_SSCRATCH, OWN + OWN_BYTES * self.hart);
        if translates {
            self.bare.translate();
        }
        self.bare.set_csr(CSR_PRIORITY, self.random.below(4));
        self.bare.read_csr(T0, CSR_TIME);
        self.bare.push(addi(T0, T0, 5 + self.random.below(60) as i64));
        self.bare.csrw(CSR_STIMECMP, T0);
        self.bare.set_csr(CSR_SIE, TIMER | SOFTWARE);
        self.bare.set_bits(CSR_SSTATUS, SIE);
        self.bare.load(S8, self.shape.rounds);
        let (again, done) = (self.bare.code.label(), self.bare.code.label());
        self.bare.code.bind(again);
        for _ in 0..self.shape.sections {
            self.section();
        }
        self.bare.push(addi(S8, S8, -1));
        self.bare.code.branch(0, S8, ZERO, done);
        self.bare.code.jump(ZERO, again);
        self.bare.code.bind(done);
        self.bare.set_csr(CSR_SIE, 0);
        self.bare.load(T0, FINISHED);
        self.bare.load(T1, 1);
        self.bare.push(amo_add(ZERO, T0, T1));
    }

    fn section(&mut self) {
        match self.random.below(14) {
            0..=2 => self.transaction(),
            3 => self.locked(),
            4 => self.elided(),
            5 => self.audit(),
            6 => self.plain_atomic(),
            7 => self.irrevocable(),
            8 => self.suspending(),
            9 => self.plain_look(),
            10 => self.plain_swap(),
            11 => self.switching(),
            12 => self.dropping(),
            _ => self.interrupting(),
        }
    }

    /// A transaction of a few transfers, counts and atomics, nested here and there.
    fn transaction(&mut self) {
        let depth = 1 + self.random.below(3);
        self.begin();
        for level in 0..depth {
            if level > 0 {
                self.bare.begin(ZERO);
            }
            for _ in 0..1 + self.random.below(3) {
                self.act();
            }
        }
        for _ in 0..depth {
            if self.random.one_in(3) {
                self.act();
            }
            self.bare.end();
        }
    }

    /// An outermost begin. Sometimes the first execution restarts by itself.
    fn begin(&mut self) {
        self.bare.begin(S2);
        if self.random.one_in(4) {
            let restarted = self.bare.code.label();
            self.bare.code.branch(1, S2, ZERO, restarted);
            if self.random.one_in(2) {
                self.transfer();
                self.bare.begin(ZERO);
            }
            self.bare.restart(self.random.below(0x1_0000));
            self.bare.code.bind(restarted);
        }
    }

    /// Something that counts once when its transaction commits.
    fn act(&mut self) {
        match self.random.below(6) {
            0 | 1 => self.transfer(),
            2 | 3 => self.count(),
            4 => self.atomic(),
            _ => self.delay(),
        }
    }

    /// Takes a while; or changes the gear, now and then.
    fn delay(&mut self) {
        if self.random.one_in(8) {
            let gear = self.random.pick(&[Hint::GearFunctional, Hint::GearTimed]);
            self.bare.push(i_type(OP_IMM, 0, 2, ZERO, gear as i64));
        }
        let bare = &mut *self.bare;
        bare.load(S7, 1 + self.random.below(60));
        let again = bare.code.here();
        bare.push(addi(S7, S7, -1));
        bare.code.branch(1, S7, ZERO, again);
    }

    fn transfer(&mut self) {
        let mut account = || 8 * self.random.below(ACCOUNT_COUNT) as i64;
        let (from, to) = (account(), account());
        let amount = self.random.below(100) as i64;
        let bare = &mut *self.bare;
        bare.load(S0, ACCOUNTS);
        bare.push(ld(S3, S0, from));
        bare.push(addi(S3, S3, -amount));
        bare.push(sd(S3, S0, from));
        bare.push(ld(S3, S0, to));
        bare.push(addi(S3, S3, amount));
        bare.push(sd(S3, S0, to));
    }

    /// Adds 1 to a misaligned counter.
    fn count(&mut self) {
        let counter = self.random.below(COUNTER_COUNT);
        let bare = &mut *self.bare;
        bare.load(S0, COUNTERS + 16 * counter);
        bare.push(ld(S3, S0, 0));
        bare.push(addi(S3, S3, 1));
        bare.push(sd(S3, S0, 0));
        self.expected.counters[counter as usize] += self.shape.rounds;
    }

    /// Adds 1 atomically, by one of the ways there are.
    fn atomic(&mut self) {
        let counter = self.random.below(ATOMIC_COUNT);
        let bare = &mut *self.bare;
        bare.load(S0, ATOMICS + 8 * counter);
        match self.random.below(4) {
            0 => {
                bare.load(S3, 1);
                bare.push(amo_add(S4, S0, S3));
            }
            1 => {
                bare.load(S3, 1);
                bare.push(amo_add(ZERO, S0, S3));
            }
            2 => {
                let again = bare.code.here();
                bare.push(lr(S3, S0));
                bare.push(addi(S3, S3, 1));
                bare.push(sc(S4, S0, S3));
                bare.code.branch(1, S4, ZERO, again);
            }
            _ => {
                let again = bare.code.here();
                bare.push(ld(S3, S0, 0));
                bare.push(addi(S4, S3, 1));
                bare.push(Width::Double.encode_compare_and_swap(S5, S0, S3, S4));
                bare.code.branch(1, S5, ZERO, again);
            }
        }
        self.expected.atomics[counter as usize] += self.shape.rounds;
    }

    fn plain_atomic(&mut self) {
        self.atomic();
    }

    /// Takes the lock with xcas, by a plain swap where it is refused too often.
    fn locked(&mut self) {
        let bare = &mut *self.bare;
        bare.load(S0, LOCK);
        bare.load(S3, 1);
        let (again, taken) = (bare.code.label(), bare.code.label());
        bare.code.bind(again);
        bare.push(Width::Word.encode_compare_and_swap(S4, S0, ZERO, S3));
        bare.code.branch(1, S4, ZERO, again);
        bare.code.bind(taken);
        bare.load(S1, PAIR);
        for offset in [0, 8] {
            bare.push(ld(S4, S1, offset));
            bare.push(addi(S4, S4, 1));
            bare.push(sd(S4, S1, offset));
        }
        bare.push(s_type(STORE, 2, S0, ZERO, 0));
        self.expected.pair += self.shape.rounds;
    }

    /// The same section as a transaction that waits until the lock is free.
    fn elided(&mut self) {
        self.begin();
        let bare = &mut *self.bare;
        bare.load(S0, LOCK);
        let again = bare.code.here();
        bare.push(Width::Word.encode_test(S4, S0, ZERO));
        bare.code.branch(0, S4, ZERO, again);
        bare.load(S1, PAIR);
        bare.push(ld(S4, S1, 8));
        bare.push(ld(S5, S1, 0));
        bare.push(addi(S4, S4, 1));
        bare.push(sd(S4, S1, 0));
        bare.push(sd(S4, S1, 8));
        self.check_equal(S4, S5, 1);
        self.bare.end();
        self.expected.pair += self.shape.rounds;
    }

    /// Notes it where `left` is not `right` and `difference`.
    fn check_equal(&mut self, left: u32, right: u32, difference: i64) {
        let bare = &mut *self.bare;
        let fine = bare.code.label();
        bare.push(addi(S6, right, difference));
        bare.code.branch(0, left, S6, fine);
        bare.suspend();
        bare.load(T0, WRONG);
        bare.push(sd(left, T0, 0));
        bare.push(addi(T1, ZERO, 1));
        bare.push(sd(T1, T0, 8));
        bare.resume();
        bare.code.bind(fine);
    }

    /// Adds all accounts up.
    fn audit(&mut self) {
        self.begin();
        let bare = &mut *self.bare;
        bare.load(S0, ACCOUNTS);
        bare.load(S3, 0);
        for account in 0..ACCOUNT_COUNT {
            bare.push(ld(S4, S0, 8 * account as i64));
            bare.push(add(S3, S3, S4));
        }
        bare.load(S4, TOTAL);
        self.check_equal(S3, S4, 0);
        self.bare.end();
    }

    /// Reads the interrupt controller, and counts instead where that is not to be.
    fn irrevocable(&mut self) {
        self.bare.begin(S2);
        let (refused, done) = (self.bare.code.label(), self.bare.code.label());
        self.bare.push(i_type(OP_IMM, T1, 7, S2, 0xff));
        self.bare.push(addi(T1, T1, -(NEED_EXCLUSIVE as i64)));
        self.bare.code.branch(0, T1, ZERO, refused);
        self.bare.load(T0, 0x0c00_0000);
        self.bare.push(i_type(LOAD, T1, 2, T0, 4));
        // Not reached.
        self.bare.load(T0, WRONG);
        self.bare.push(addi(T1, ZERO, 2));
        self.bare.push(sd(T1, T0, 0));
        self.bare.code.jump(ZERO, done);
        self.bare.code.bind(refused);
        self.count();
        self.bare.code.bind(done);
        self.bare.end();
    }

    /// Does something outside, twice for what it is: once for all and once for the hart. With a transaction of its own, at times,
    /// which keeps away from what the suspended one has: it would win each time.
    fn suspending(&mut self) {
        self.begin();
        self.count();
        self.bare.suspend();
        self.outside();
        if self.random.one_in(2) {
            self.bare.begin(ZERO);
            self.transfer();
            if self.random.one_in(2) {
                self.bare.suspend();
                self.outside();
                self.bare.resume();
            }
            self.bare.end();
        }
        self.bare.resume();
        self.act();
        self.bare.end();
    }

    /// Runs a transaction in a context of the hart's while another one is suspended in its own.
    fn switching(&mut self) {
        self.begin();
        self.count();
        self.bare.suspend();
        self.bare.set_csr(CSR_CONTEXT, 1000 + self.hart);
        self.bare.begin(ZERO);
        self.transfer();
        self.delay();
        self.bare.end();
        self.bare.set_csr(CSR_CONTEXT, 0);
        self.bare.resume();
        self.act();
        self.bare.end();
    }

    /// Begins what comes to nothing.
    fn dropping(&mut self) {
        self.begin();
        self.transfer();
        self.delay();
        self.bare.suspend();
        self.outside();
        self.bare.push(XDROP);
    }

    fn outside(&mut self) {
        let bare = &mut *self.bare;
        bare.load(S1, 1);
        bare.load(S0, OUTSIDE);
        bare.push(amo_add(ZERO, S0, S1));
        bare.load(S0, OWN + OWN_BYTES * self.hart);
        bare.push(ld(S1, S0, 0));
        bare.push(addi(S1, S1, 1));
        bare.push(sd(S1, S0, 0));
    }

    /// Loads what others write, plainly.
    fn plain_look(&mut self) {
        let account = 8 * self.random.below(ACCOUNT_COUNT) as i64;
        let counter = 16 * self.random.below(COUNTER_COUNT);
        let bare = &mut *self.bare;
        bare.load(S0, ACCOUNTS);
        bare.push(ld(S3, S0, account));
        bare.push(i_type(LOAD, S3, 6, S0, account ^ 4));
        bare.load(S0, COUNTERS + counter);
        bare.push(ld(S3, S0, 0));
        bare.load(T1, 0);
        bare.push(Width::Word.encode_test(S3, S0, T1));
    }

    /// Adds to an atomic by an xcas that may be refused, and stores a word that nobody needs beside the accounts.
    fn plain_swap(&mut self) {
        self.atomic();
        self.bare.store(ACCOUNTS + 8 * ACCOUNT_COUNT, 1);
    }

    /// Interrupts another hart, or itself.
    fn interrupting(&mut self) {
        let target = self.random.below(self.shape.harts as u64);
        self.bare.sbi_quietly(SBI_IPI, 0, &[1, target]);
    }

    fn log(&mut self) {
        let bare = &mut *self.bare;
        for account in 0..ACCOUNT_COUNT {
            bare.log_word(ACCOUNTS + 8 * account);
        }
        for counter in 0..COUNTER_COUNT {
            bare.log_word(COUNTERS + 16 * counter);
        }
        for atomic in 0..ATOMIC_COUNT {
            bare.log_word(ATOMICS + 8 * atomic);
        }
        bare.log_word(LOCK);
        bare.log_word(PAIR);
        bare.log_word(PAIR + 8);
        for (all, offset) in [(OUTSIDE, 0), (HANDLED, 8)] {
            bare.log_word(all);
            bare.load(S0, OWN);
            bare.load(S3, 0);
            for hart in 0..self.shape.harts as i64 {
                bare.push(ld(S4, S0, OWN_BYTES as i64 * hart + offset));
                bare.push(add(S3, S3, S4));
            }
            bare.log(S3);
        }
        bare.log_word(WRONG);
    }
}

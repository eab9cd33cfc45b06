//! What the transactions' guests are made of, beyond [`Bare`].
//!
//! Registers t0 to t2 belong to the helpers, and t5 to the notes. A guest that wants something to outlive a restart notes it
//! outside its transaction.

use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::htm::{CSR_TRAP, Control, Width};
use concord_htm::manager::Manager;
use concord_machine::Gear;

/// Words on lines of their own, for transactions to meet at.
pub const A: u64 = DATA;
pub const B: u64 = DATA + 0x40;
pub const C: u64 = DATA + 0x80;
/// Words on lines of their own, for harts to wait for each other; in no transaction's sets where it matters.
pub const FLAG: u64 = DATA + 0x4000;
pub const ANSWER: u64 = DATA + 0x4040;

pub const CSR_CYCLE: u32 = 0xc00;
pub const CSR_INSTRET: u32 = 0xc02;

/// Status words of restarts.
pub const CONFLICT: u64 = 1;
pub const NONTRANSACTIONAL: u64 = 2;
pub const EXPLICIT: u64 = 3;
pub const NEED_EXCLUSIVE: u64 = 4;
pub const CAPACITY: u64 = 5;
pub const INTERRUPTED: u64 = 6;
pub const TOO_DEEP: u64 = 7;

/// What xcas answers.
pub const SWAPPED: u64 = 0;
pub const DIFFERED: u64 = 1;
pub const REFUSED: u64 = 2;

pub const XEND: u32 = 0x0000_100b;
pub const XPUSH: u32 = 0x0000_400b;
pub const XPOP: u32 = 0x0000_500b;
pub const XDROP: u32 = 0x0000_600b;

/// A part of a guest.
pub type Part<'a> = &'a dyn Fn(&mut Bare);

/// The trap of an illegal instruction, as [`Logs::traps`] has it.
pub fn illegal(instruction: u32) -> (u64, u64) {
    (2, u64::from(instruction))
}

/// xstatus without the bit that depends on what caches there are.
pub fn without_overflow(xstatus: u64) -> u64 {
    xstatus & !concord_abi::htm::XSTATUS_OVERFLOWED
}

/// Runs the guest in both gears, with and without the isolation checker.
pub fn everywhere(harts: usize, build: impl Fn(&mut Bare), check: impl Fn(Logs)) {
    for gear in [Gear::Functional, Gear::Timed] {
        for check_isolation in [false, true] {
            let mut bare = Bare::new(harts);
            bare.check_isolation = check_isolation;
            build(&mut bare);
            check(bare.run(gear));
        }
    }
}

/// [`everywhere`], under each contention manager.
pub fn under_every_manager(harts: usize, build: impl Fn(&mut Bare), check: impl Fn(Manager, Logs)) {
    for manager in Manager::ALL {
        let build = |bare: &mut Bare| {
            bare.board.transactions.manager = manager;
            build(bare);
        };
        everywhere(harts, build, |logs| check(manager, logs));
    }
}

impl Bare {
    pub fn begin(&mut self, rd: u32) {
        self.push(Control::Begin.encode(rd, 0));
    }

    pub fn end(&mut self) {
        self.push(XEND);
    }

    pub fn suspend(&mut self) {
        self.push(XPUSH);
    }

    pub fn resume(&mut self) {
        self.push(XPOP);
    }

    pub fn restart(&mut self, operand: u64) {
        self.load(T0, operand);
        self.push(Control::Restart.encode(0, T0));
    }

    pub fn transaction_id(&mut self, rd: u32) {
        self.push(Control::TransactionId.encode(rd, 0));
    }

    /// `xtest.d` of a word against a constant.
    pub fn test(&mut self, rd: u32, address: u64, value: u64) {
        self.load(T0, address);
        self.load(T1, value);
        self.push(Width::Double.encode_test(rd, T0, T1));
    }

    /// `xcas.d` of a word from one constant to another.
    pub fn swap(&mut self, rd: u32, address: u64, expected: u64, new: u64) {
        self.load(T0, address);
        self.load(T1, expected);
        self.load(T2, new);
        self.push(Width::Double.encode_compare_and_swap(rd, T0, T1, T2));
    }

    pub fn read_csr(&mut self, rd: u32, number: u32) {
        self.push(csr(CSRRS, rd, number, ZERO));
    }

    pub fn load_word(&mut self, rd: u32, address: u64) {
        self.load(T0, address);
        self.push(ld(rd, T0, 0));
    }

    pub fn log_word(&mut self, address: u64) {
        self.load_word(T0, address);
        self.log(T0);
    }

    /// Runs `body` with the active transaction suspended.
    pub fn outside(&mut self, body: impl FnOnce(&mut Bare)) {
        self.suspend();
        body(self);
        self.resume();
    }

    /// Begins a transaction: `first` is its first execution, `again` what it does behind a restart, whose status word is in
    /// `status`. Both go on behind this, in the transaction.
    pub fn attempt(&mut self, status: u32, first: impl FnOnce(&mut Bare), again: impl FnOnce(&mut Bare)) {
        let (begun, restarted, done) = (self.code.label(), self.code.label(), self.code.label());
        self.begin(status);
        self.code.branch(0, status, ZERO, begun);
        self.code.jump(ZERO, restarted);
        self.code.bind(begun);
        first(self);
        self.code.jump(ZERO, done);
        self.code.bind(restarted);
        again(self);
        self.code.bind(done);
    }

    /// Stays in the transaction until it is restarted.
    pub fn spin(&mut self) {
        let forever = self.code.here();
        self.code.jump(ZERO, forever);
    }

    /// Waits for a word, in a transaction, without having the word in its sets while it waits.
    pub fn poll(&mut self, address: u64, value: u64) {
        self.load(T0, address);
        self.load(T1, value);
        let again = self.code.here();
        self.push(Width::Double.encode_test(T2, T0, T1));
        self.code.branch(0, T2, ZERO, again);
    }

    /// Tells another hart that this one has come so far, and waits for its answer.
    pub fn meet_plainly(&mut self, number: u64) {
        self.store(FLAG, number);
        self.wait_for(ANSWER, number);
    }

    /// [`Bare::meet_plainly`], outside the active transaction.
    pub fn meet(&mut self, number: u64) {
        self.outside(|bare| bare.meet_plainly(number));
    }

    /// Tells another hart that this one has come so far, and stays in the active transaction until it is restarted.
    pub fn tell_and_spin(&mut self, number: u64) {
        self.outside(|bare| bare.store(FLAG, number));
        self.spin();
    }

    /// Goes to `body`, which comes next, in U-mode, and leaves the frames alone.
    pub fn user(&mut self, body: impl FnOnce(&mut Bare)) {
        self.set_csr(CSR_TRAP, 0);
        self.clear_bits(CSR_SSTATUS, SPP);
        self.return_here();
        body(self);
    }

    /// `sret` to what comes next.
    pub fn return_here(&mut self) {
        let here = self.code.label();
        self.load_address(T0, here);
        self.csrw(CSR_SEPC, T0);
        self.push(SRET);
        self.code.bind(here);
    }
}

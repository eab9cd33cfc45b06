//! Bare guests: a few instructions each, a trap handler that logs, and the machine that runs them in both gears.
//!
//! Every hart has a log of words, which the guest prints at its end. A trap appends a record to it: `scause`, `stval`,
//! `sepc`, `sstatus`, and the number of the vector entry that was taken.

use super::assembler::*;
use concord_abi::exit::Exit;
use concord_htm::policy::Granularity;
use concord_machine::hart::Hart;
use concord_machine::planted::PlantedFault;
use concord_machine::run::{Limits, Options, Outcome, Unattended, run};
use concord_machine::{Board, Configuration, DiskImage, Gear, Machine, Net};
use concord_mem::hot::HotState;

pub const CODE: u64 = 0x8020_0000;
pub const VECTOR: u64 = CODE + 0x100;
const LOG: u64 = 0x8021_0000;
const LOG_BYTES: u64 = 0x1000;
/// The second half of a log are words at known places.
const NOTES: u64 = LOG_BYTES / 2;
pub const TABLES: u64 = 0x8022_0000;
/// Eight pages for the tests' own use; the window maps them.
pub const DATA: u64 = 0x8023_0000;
const IMAGE_END: u64 = DATA + 8 * 0x1000;
/// No device and no memory is here.
pub const NOWHERE: u64 = 0x0800_0000;
/// Where [`Bare::map`] puts pages in the address space.
pub const WINDOW: u64 = 0x4000_0000;
pub const SATP_SV39: u64 = 8 << 60 | TABLES >> 12;

pub const READ: u64 = 2;
pub const WRITE: u64 = 4;
pub const EXECUTE: u64 = 8;
pub const USER: u64 = 16;
const ACCESSED_DIRTY: u64 = 0xc0;

pub const ZERO: u32 = 0;
pub const T0: u32 = 5;
pub const T1: u32 = 6;
pub const T2: u32 = 7;
pub const S0: u32 = 8;
pub const S1: u32 = 9;
pub const A0: u32 = 10;
pub const A1: u32 = 11;
const A6: u32 = 16;
const A7: u32 = 17;
pub const S2: u32 = 18;
pub const S3: u32 = 19;
pub const S4: u32 = 20;
pub const S5: u32 = 21;
pub const S6: u32 = 22;
pub const S7: u32 = 23;
pub const S8: u32 = 24;
pub const S9: u32 = 25;
/// Where the handler goes after a trap.
const RESUME: u32 = 28;
const ENTRY: u32 = 29;
pub const SCRATCH: u32 = 30;
pub const LOG_POINTER: u32 = 31;

pub const SIE: u64 = 1 << 1;
pub const SPIE: u64 = 1 << 5;
pub const SPP: u64 = 1 << 8;
pub const SUM: u64 = 1 << 18;
pub const MXR: u64 = 1 << 19;
pub const SOFTWARE: u64 = 1 << 1;
pub const TIMER: u64 = 1 << 5;
pub const EXTERNAL: u64 = 1 << 9;
pub const INTERRUPT: u64 = 1 << 63;
pub const CSR_STIMECMP: u32 = 0x14d;
pub const CSR_TIME: u32 = 0xc01;

pub const SBI_BASE: u64 = 0x10;
pub const SBI_TIME: u64 = 0x5449_4d45;
pub const SBI_IPI: u64 = 0x0073_5049;
pub const SBI_FENCE: u64 = 0x5246_4e43;
pub const SBI_HART: u64 = 0x0048_534d;
pub const SBI_RESET: u64 = 0x5352_5354;
pub const SBI_CONSOLE: u64 = 0x4442_434e;

/// What [`Bare::start_hart`] hands over.
pub const OPAQUE: u64 = 0x51;

/// Instructions that no directed guest needs.
const INSTRUCTIONS_MAX: u64 = 2_000_000;

/// What the log has where a trap was expected and none came.
pub const NO_TRAP: u64 = 0x7a7;

/// A guest in the making.
pub struct Bare {
    pub code: Code,
    image: Vec<u8>,
    /// The board it will run on.
    pub board: Board,
    pub disks: Vec<DiskImage>,
    pub check_isolation: bool,
    pub seed: u64,
    /// What is typed at its console.
    pub typed: Vec<u8>,
    pub planted: Option<PlantedFault>,
    /// A guest that runs longer hangs.
    pub instructions_max: u64,
}

impl Bare {
    /// A guest whose first instructions, on hart 0, come next.
    pub fn new(harts: usize) -> Bare {
        let mut code = Code::new(CODE);
        let start = code.label();
        code.jump(0, start);
        while code.pc() < VECTOR {
            code.push(addi(0, 0, 0));
        }
        let stubs: Vec<Label> = (0..10).map(|_| code.label()).collect();
        for stub in &stubs {
            code.jump(0, *stub);
        }
        let handler = code.label();
        for (number, stub) in stubs.into_iter().enumerate() {
            code.bind(stub);
            code.push(addi(ENTRY, ZERO, number as i64));
            code.jump(0, handler);
        }
        code.bind(handler);
        for (index, number) in [CSR_SCAUSE, CSR_STVAL, CSR_SEPC, CSR_SSTATUS].into_iter().enumerate() {
            code.push(csr(CSRRS, SCRATCH, number, ZERO));
            code.push(sd(SCRATCH, LOG_POINTER, 8 * index as i64));
        }
        code.push(sd(ENTRY, LOG_POINTER, 32));
        code.push(addi(LOG_POINTER, LOG_POINTER, 40));
        code.push(i_type(JALR, ZERO, 0, RESUME, 0));
        code.bind(start);
        let mut board = Board::preset("metatm-2007").expect("the preset exists");
        // What these guests load and store is mostly eight bytes long, and so one granule.
        board.transactions.granularity = Granularity::Word;
        board.harts.count = harts;
        board.memory.size_bytes = 16 << 20;
        let mut bare = Bare {
            code,
            image: vec![0; (IMAGE_END - CODE) as usize],
            board,
            disks: Vec::new(),
            check_isolation: false,
            seed: 1,
            typed: Vec::new(),
            planted: None,
            instructions_max: INSTRUCTIONS_MAX,
        };
        // RAM is mapped to itself for S-mode, and the window's table of 4 KiB pages is in place.
        bare.set_word(TABLES + 16, entry(0x8000_0000, READ | WRITE | EXECUTE));
        bare.set_word(TABLES + 8, entry(TABLES + 0x1000, 0));
        bare.set_word(TABLES + 0x1000, entry(TABLES + 0x2000, 0));
        bare.begin_hart();
        bare
    }

    /// What every hart does first, with its number in a0.
    pub fn begin_hart(&mut self) {
        self.load(T0, VECTOR);
        self.csrw(CSR_STVEC, T0);
        self.code.push(i_type(OP_IMM, T0, 1, A0, 12));
        self.load(LOG_POINTER, LOG);
        self.code.push(add(LOG_POINTER, LOG_POINTER, T0));
    }

    pub fn set_word(&mut self, address: u64, value: u64) {
        self.set_bytes(address, &value.to_le_bytes());
    }

    pub fn set_bytes(&mut self, address: u64, bytes: &[u8]) {
        let offset = (address - CODE) as usize;
        self.image[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub fn set_code(&mut self, address: u64, instructions: &[u32]) {
        let bytes: Vec<u8> = instructions.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.set_bytes(address, &bytes);
    }

    /// Maps page `index` of the window to page `index` of the data.
    pub fn map(&mut self, index: u64, permissions: u64) {
        self.set_word(entry_address(index), entry(DATA + index * 0x1000, permissions));
    }

    pub fn push(&mut self, instruction: u32) {
        self.code.push(instruction);
    }

    pub fn load(&mut self, register: u32, value: u64) {
        self.code.load_immediate(register, value);
    }

    pub fn csrw(&mut self, number: u32, register: u32) {
        self.push(csr(CSRRW, ZERO, number, register));
    }

    /// Writes a constant to a CSR.
    pub fn set_csr(&mut self, number: u32, value: u64) {
        self.load(T0, value);
        self.csrw(number, T0);
    }

    pub fn set_bits(&mut self, number: u32, bits: u64) {
        self.load(T0, bits);
        self.push(csr(CSRRS, ZERO, number, T0));
    }

    pub fn clear_bits(&mut self, number: u32, bits: u64) {
        self.load(T0, bits);
        self.push(csr(CSRRC, ZERO, number, T0));
    }

    pub fn log(&mut self, register: u32) {
        self.push(sd(register, LOG_POINTER, 0));
        self.push(addi(LOG_POINTER, LOG_POINTER, 8));
    }

    pub fn log_csr(&mut self, number: u32) {
        self.push(csr(CSRRS, T0, number, ZERO));
        self.log(T0);
    }

    /// Stores a register to word `index` of the notes in hart `hart`'s log, where [`Logs::note`] finds it.
    pub fn note(&mut self, hart: u64, index: u64, register: u32) {
        self.load(SCRATCH, LOG + hart * LOG_BYTES + NOTES + 8 * index);
        self.push(sd(register, SCRATCH, 0));
    }

    /// Notes a CSR.
    pub fn note_csr(&mut self, hart: u64, index: u64, number: u32) {
        self.push(csr(CSRRS, T0, number, ZERO));
        self.note(hart, index, T0);
    }

    /// Turns translation on.
    pub fn translate(&mut self) {
        self.set_csr(CSR_SATP, SATP_SV39);
        self.push(SFENCE_VMA_ALL);
    }

    /// Runs `body`, which should trap; goes on behind it in S-mode, with interrupts off, when it has.
    pub fn trap(&mut self, body: impl FnOnce(&mut Bare)) {
        let (begin, after) = (self.code.label(), self.code.label());
        self.code.jump(RESUME, begin);
        self.code.jump(0, after);
        self.code.bind(begin);
        body(self);
        self.load(T0, NO_TRAP);
        for _ in 0..5 {
            self.log(T0);
        }
        self.code.bind(after);
    }

    /// Enters U-mode.
    pub fn enter_user(&mut self, address: u64) {
        self.set_csr(CSR_SEPC, address);
        self.clear_bits(CSR_SSTATUS, SPP);
        self.push(SRET);
    }

    /// Calls the SBI and logs the error and the value.
    pub fn sbi(&mut self, extension: u64, function: u64, arguments: &[u64]) {
        self.sbi_quietly(extension, function, arguments);
        self.log(A0);
        self.log(A1);
    }

    pub fn sbi_quietly(&mut self, extension: u64, function: u64, arguments: &[u64]) {
        for (index, argument) in arguments.iter().enumerate() {
            self.load(A0 + index as u32, *argument);
        }
        self.load(A6, function);
        self.load(A7, extension);
        self.push(ECALL);
    }

    /// Stores a word to memory.
    pub fn store(&mut self, address: u64, value: u64) {
        self.load(T0, address);
        self.load(T1, value);
        self.push(sd(T1, T0, 0));
    }

    /// Waits until a word in memory is `value`.
    pub fn wait_for(&mut self, address: u64, value: u64) {
        self.load(T0, address);
        self.load(T1, value);
        let again = self.code.here();
        self.push(ld(T2, T0, 0));
        self.code.branch(1, T2, T1, again);
    }

    /// Loads the address of a place that leads to `label`.
    pub fn load_address(&mut self, register: u32, label: Label) {
        let over = self.code.label();
        self.code.jump(register, over);
        self.code.jump(ZERO, label);
        self.code.bind(over);
    }

    /// Starts a hart at `label`, which begins with [`Bare::begin_hart`].
    pub fn start_hart(&mut self, hart: u64, label: Label) {
        self.load_address(A1, label);
        self.load(A0, hart);
        self.load(A0 + 2, OPAQUE);
        self.load(A6, 0);
        self.load(A7, SBI_HART);
        self.push(ECALL);
    }

    /// Prints the logs and powers off: the end of hart 0.
    pub fn finish(&mut self) {
        self.set_csr(CSR_SATP, 0);
        self.sbi_quietly(SBI_CONSOLE, 0, &[LOG_BYTES * self.board.harts.count as u64, LOG, 0]);
        self.sbi_quietly(SBI_RESET, 0, &[0, 0]);
    }

    /// Waits for ever: the end of other harts.
    pub fn rest(&mut self) {
        let forever = self.code.here();
        self.code.jump(0, forever);
    }

    fn elf(mut self) -> Vec<u8> {
        let code = self.code.finish();
        assert!(code.len() < 0x1_0000);
        self.image[..code.len()].copy_from_slice(&code);
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // Executable, EM_RISCV, version 1; one program header of 56 bytes behind the header of 64.
        file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
        for word in [CODE, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
        let size = self.image.len() as u64;
        for word in [0x1000, CODE, CODE, size, size, 0x1000] {
            file.extend(u64::to_le_bytes(word));
        }
        file.resize(0x1000, 0);
        file.extend(&self.image);
        file
    }

    /// The machine with the guest in it.
    pub fn machine(self, gear: Gear) -> Machine {
        let configuration = Configuration {
            board: self.board.clone(),
            seed: self.seed,
            gear,
            kernel: Default::default(),
            initrd: None,
            append: String::new(),
            disks: self.disks.clone(),
            net: Net::None,
            check_isolation: self.check_isolation,
        };
        let typed = self.typed.clone();
        let planted = self.planted;
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), self.elf()).expect("the guest is written");
        let mut machine = Machine::new(Configuration { kernel: file.path().to_owned(), ..configuration })
            .expect("the machine starts");
        machine.type_at_console(&typed);
        if let Some(fault) = planted {
            machine.plant(fault);
        }
        machine
    }

    /// Runs the guest in a gear; it may end as it likes.
    pub fn run_to_any_end(self, gear: Gear) -> End {
        let limits = Limits { instructions: Some(self.instructions_max), cycles: None };
        let mut machine = self.machine(gear);
        let (outcome, printed) = run_machine(&mut machine, &Options { limits, ..Options::default() });
        End { outcome, printed, machine }
    }

    /// Runs the guest in one gear to its [`Bare::finish`] and returns the logs.
    pub fn run(self, gear: Gear) -> Logs {
        self.run_whole(gear).0
    }

    /// [`Bare::run`], with the machine as it ended.
    pub fn run_whole(self, gear: Gear) -> (Logs, Machine) {
        let (harts, checked) = (self.board.harts.count, self.check_isolation);
        let end = self.run_to_any_end(gear);
        let place =
            |(hart, hot): (&Hart, &HotState)| format!("{:#x} (trap {:#x} at {:#x})", hot.pc, hart.scause, hart.sepc);
        let pcs: Vec<String> = end.machine.harts().iter().zip(end.machine.hot_states()).map(place).collect();
        let how = if checked { ", isolation checked" } else { "" };
        assert_eq!(end.outcome.end.exit, Exit::PoweredOff, "{gear:?}{how}: {:?}, harts at {pcs:?}", end.outcome);
        (Logs::new(gear, &end.printed, harts), end.machine)
    }
}

/// Runs a machine to its end, and returns what it printed with it.
pub fn run_machine(machine: &mut Machine, options: &Options) -> (Outcome, Vec<u8>) {
    let mut console = Unattended::default();
    let outcome = run(machine, options, &mut console).expect("nothing on the host stops the run");
    (outcome, console.printed)
}

/// Builds the guest twice and runs it in both gears; `check` looks at the logs of each.
pub fn in_both_gears(harts: usize, build: impl Fn(&mut Bare), check: impl Fn(Logs)) {
    for gear in [Gear::Functional, Gear::Timed] {
        let mut bare = Bare::new(harts);
        build(&mut bare);
        check(bare.run(gear));
    }
}

/// A guest of several harts: hart 0 starts the others, runs the first body and finishes; each other hart runs its body and
/// rests.
pub fn on_harts(bodies: &[&dyn Fn(&mut Bare)]) -> impl Fn(&mut Bare) {
    move |bare| {
        let starts: Vec<Label> = bodies[1..].iter().map(|_| bare.code.label()).collect();
        for (index, start) in starts.iter().enumerate() {
            bare.start_hart(index as u64 + 1, *start);
        }
        bodies[0](bare);
        bare.finish();
        for (start, body) in starts.into_iter().zip(&bodies[1..]) {
            bare.code.bind(start);
            bare.begin_hart();
            body(bare);
            bare.rest();
        }
    }
}

/// How a run ended.
pub struct End {
    pub outcome: Outcome,
    pub printed: Vec<u8>,
    pub machine: Machine,
}

/// What the harts logged.
pub struct Logs {
    pub gear: Gear,
    words: Vec<Vec<u64>>,
}

impl Logs {
    /// The logs of what a guest printed last.
    pub fn new(gear: Gear, printed: &[u8], harts: usize) -> Logs {
        let log = &printed[printed.len() - harts * LOG_BYTES as usize..];
        let words = |bytes: &[u8]| bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        Logs { gear, words: log.chunks(LOG_BYTES as usize).map(words).collect() }
    }

    /// A word of a hart's notes.
    pub fn note(&self, hart: usize, index: usize) -> u64 {
        self.words[hart][NOTES as usize / 8 + index]
    }

    /// The first words of a hart's notes.
    pub fn notes<const N: usize>(&self, hart: usize) -> [u64; N] {
        std::array::from_fn(|index| self.note(hart, index))
    }

    /// The first words of a hart's log.
    pub fn words<const N: usize>(&self, hart: usize) -> [u64; N] {
        self.words[hart][..N].try_into().expect("the log is longer")
    }

    /// `scause` and `stval` of the first traps that hart 0 logged.
    pub fn traps(&self, count: usize) -> Vec<(u64, u64)> {
        self.words[0].chunks(5).take(count).map(|record| (record[0], record[1])).collect()
    }

    /// The first traps that hart 0 logged, whole: `scause`, `stval`, `sepc`, `sstatus`, vector entry.
    pub fn records(&self, count: usize) -> Vec<[u64; 5]> {
        self.words[0].chunks(5).take(count).map(|record| record.try_into().expect("five words")).collect()
    }
}

/// LR.D
pub fn lr(rd: u32, address: u32) -> u32 {
    r_type(AMO, rd, 3, address, 0, 0x02 << 2)
}

/// SC.D
pub fn sc(rd: u32, address: u32, value: u32) -> u32 {
    r_type(AMO, rd, 3, address, value, 0x03 << 2)
}

/// AMOADD.D
pub fn amo_add(rd: u32, address: u32, value: u32) -> u32 {
    r_type(AMO, rd, 3, address, value, 0)
}

/// The page-table entry of page `index` of the window.
pub fn entry_address(index: u64) -> u64 {
    TABLES + 0x2000 + 8 * index
}

/// A valid page-table entry; a pointer to a table where there are no permissions.
pub fn entry(physical: u64, permissions: u64) -> u64 {
    let leaf = if permissions == 0 { 0 } else { ACCESSED_DIRTY };
    physical >> 12 << 10 | permissions | leaf | 1
}

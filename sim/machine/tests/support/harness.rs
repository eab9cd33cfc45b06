//! The guest side: an ELF image with a harness in S-mode and many programs. For each program the harness copies code,
//! data and page-table entries to fixed slots, loads every register, enters the program in S- or U-mode, logs and skips
//! its traps, and prints the final state as lines of sixteen hexadecimal digits.

use super::assembler::{
    CSR_FCSR, CSR_SATP, CSR_SCAUSE, CSR_SEPC, CSR_SIE, CSR_SIP, CSR_SSCRATCH, CSR_SSTATUS, CSR_STVAL, CSR_STVEC, CSRRC,
    CSRRS, CSRRW, Code, FENCE_I, JALR, LOAD, LOAD_FP, Label, OP, OP_IMM, SFENCE_VMA_ALL, SRET, STORE, STORE_FP, add,
    addi, csr, i_type, ld, r_type, s_type, sd,
};
use super::generator::Program;

pub const IMAGE_BASE: u64 = 0x8020_0000;
/// What the trap handler and the dump use; register x25 holds its address while a program runs.
pub const CONTEXT: u64 = 0x8021_0000;
const TABLES: u64 = 0x8022_0000;
pub const CODE_SLOT: u64 = 0x8040_0000;
pub const DATA_SLOT: u64 = 0x8060_0000;
pub const DATA_SIZE_BYTES: usize = 8192;
const PROGRAMS: u64 = 0x8080_0000;
const MEGAPAGE: u64 = 1 << 21;
pub const RAM_END: u64 = 0x8800_0000;

/// Physical address space that no device and no memory of QEMU's virt board answers.
pub const NOWHERE: u64 = 0x0800_0000;
/// The trap vector, aligned for vectored mode.
pub const VECTOR: u64 = IMAGE_BASE + 0x100;

/// Register x24 holds where to go on after an instruction fetch has failed.
pub const RESUME_REGISTER: u32 = 24;
pub const CONTEXT_REGISTER: u32 = 25;

/// The virtual pages that paged programs use as data: eight of 4 KB with entries of the program's choice, and at the
/// next 2 MB a megapage over the data slot.
pub const WINDOW_PAGES: usize = 8;
/// Offsets from the window of megapages that fault whatever the access, because of their entries.
pub const BAD_MEGAPAGES: [u64; 8] = [2 << 21, 3 << 21, 4 << 21, 5 << 21, 6 << 21, 7 << 21, 8 << 21, 12 << 21];
/// The window appears in both halves of the address space.
pub const WINDOWS: [u64; 2] = [0x20_0000_0000, 0xffff_ffc0_0000_0000];

pub const PTE_VALID: u64 = 1;
pub const PTE_READ: u64 = 2;
pub const PTE_WRITE: u64 = 4;
pub const PTE_EXECUTE: u64 = 8;
pub const PTE_USER: u64 = 16;
pub const PTE_ACCESSED_DIRTY: u64 = 0xc0;

// Layout of a program's blob, in bytes.
const BLOB_SIZE: i64 = 0;
const BLOB_SATP: i64 = 8;
const BLOB_PRIVILEGE: i64 = 16;
const BLOB_END_PC: i64 = 24;
const BLOB_CODE_SIZE: i64 = 32;
const BLOB_FCSR: i64 = 40;
const BLOB_INTEGERS: i64 = 48;
const BLOB_FLOATS: i64 = BLOB_INTEGERS + 31 * 8;
const BLOB_ENTRIES: i64 = BLOB_FLOATS + 32 * 8;
const BLOB_DATA: i64 = BLOB_ENTRIES + 8 * (WINDOW_PAGES as i64 + 1);

// Layout of the context, in bytes.
const CURRENT: i64 = 0;
const SAVED: i64 = 8;
const END_PC: i64 = 48;
const DUMP: i64 = 64;

/// Traps that are listed one by one, the last ones, each at its number modulo this; all are counted and hashed.
pub const TRAPS_LISTED: usize = 24;
const BLOCK_SIZE_BYTES: usize = 512;
const BLOCKS: usize = DATA_SIZE_BYTES / BLOCK_SIZE_BYTES;

const DUMP_FLOATS: i64 = DUMP + 31 * 8;
const DUMP_FCSR: i64 = DUMP_FLOATS + 32 * 8;
const DUMP_SSTATUS: i64 = DUMP_FCSR + 8;
const DUMP_SSCRATCH: i64 = DUMP_SSTATUS + 8;
const DUMP_BLOCKS: i64 = DUMP_SSCRATCH + 8;
const DUMP_ENTRIES: i64 = DUMP_BLOCKS + 8 * BLOCKS as i64;
const DUMP_VECTORED: i64 = DUMP_ENTRIES + 8 * WINDOW_PAGES as i64;
const DUMP_TRAP_COUNT: i64 = DUMP_VECTORED + 8;
const DUMP_TRAP_HASH: i64 = DUMP_TRAP_COUNT + 8;
const DUMP_TRAPS: i64 = DUMP_TRAP_HASH + 8;
const DUMP_END: i64 = DUMP_TRAPS + 24 * TRAPS_LISTED as i64;
/// Lines of one program's dump after its header line.
pub const DUMP_LINES: usize = ((DUMP_END - DUMP) / 8) as usize;

const SSTATUS_SPP: u64 = 1 << 8;
const SSTATUS_FS: u64 = 3 << 13;
const SSTATUS_SUM_MXR: u64 = 3 << 18;

/// Multiplier of the hash of memory and traps.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The lines that tell a program's state; traps follow.
pub const STATE_LINES: usize = ((DUMP_VECTORED - DUMP) / 8) as usize;

/// The causes among the listed traps of one program's dump.
pub fn trap_causes(dump: &[String]) -> impl Iterator<Item = u64> {
    let count = u64::from_str_radix(&dump[((DUMP_TRAP_COUNT - DUMP) / 8) as usize], 16).expect("a number");
    let listed = (count as usize).min(TRAPS_LISTED);
    let first = ((DUMP_TRAPS - DUMP) / 8) as usize;
    (0..listed).map(move |slot| u64::from_str_radix(&dump[first + 3 * slot], 16).expect("a number"))
}

/// The meaning of line `index` of a dump.
pub fn line_name(index: usize) -> String {
    let offset = DUMP + 8 * index as i64;
    let position = |start: i64| (offset - start) / 8;
    if offset < DUMP_FLOATS {
        format!("x{}", index + 1)
    } else if offset < DUMP_FCSR {
        format!("f{}", position(DUMP_FLOATS))
    } else if offset < DUMP_BLOCKS {
        ["fcsr", "sstatus", "sscratch"][position(DUMP_FCSR) as usize].to_string()
    } else if offset < DUMP_ENTRIES {
        let start = position(DUMP_BLOCKS) as usize * BLOCK_SIZE_BYTES;
        format!("hash of data bytes {start}..{}", start + BLOCK_SIZE_BYTES)
    } else if offset < DUMP_VECTORED {
        format!("page-table entry of window page {}", position(DUMP_ENTRIES))
    } else if offset < DUMP_TRAPS {
        ["number of vectored interrupts", "number of traps", "hash of traps"][position(DUMP_VECTORED) as usize]
            .to_string()
    } else {
        let entry = position(DUMP_TRAPS);
        format!("trap in slot {}: {}", entry / 3, ["scause", "sepc", "stval"][(entry % 3) as usize])
    }
}

/// The translation a program runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    Bare,
    Sv39,
    Sv48,
}

// Tables: roots by privilege, the identity map of RAM by privilege, the windows' two levels, then the Sv48 roots.
const fn table(index: u64) -> u64 {
    TABLES + index * 4096
}
const ROOT: [u64; 2] = [table(0), table(1)];
const IDENTITY: [u64; 2] = [table(2), table(3)];
const WINDOW_MEGAPAGES: u64 = table(4);
const WINDOW_ENTRIES: u64 = table(5);
const ROOT_SV48: [u64; 2] = [table(6), table(7)];
const TABLES_SIZE_BYTES: usize = 8 * 4096;

/// The physical address of the entry of a window page.
pub const fn window_entry_address(index: u64) -> u64 {
    WINDOW_ENTRIES + index * 8
}

pub const fn pte(physical: u64, flags: u64) -> u64 {
    (physical >> 12) << 10 | flags
}

fn satp(paging: Paging, is_user: bool) -> u64 {
    let user = usize::from(is_user);
    match paging {
        Paging::Bare => 0,
        Paging::Sv39 => 8 << 60 | ROOT[user] >> 12,
        Paging::Sv48 => 9 << 60 | ROOT_SV48[user] >> 12,
    }
}

/// The page tables: RAM mapped to itself for S-mode, the code slot's megapage for U-mode where the program runs there.
fn page_tables() -> Vec<u8> {
    let mut bytes = vec![0; TABLES_SIZE_BYTES];
    let mut set = |address: u64, index: u64, value: u64| {
        let offset = (address - TABLES + index * 8) as usize;
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    };
    let all = PTE_VALID | PTE_READ | PTE_WRITE | PTE_EXECUTE | PTE_ACCESSED_DIRTY;
    for user in 0..2 {
        for index in 0..(RAM_END - 0x8000_0000) / MEGAPAGE {
            let address = 0x8000_0000 + index * MEGAPAGE;
            let flags = if address == CODE_SLOT && user == 1 { all | PTE_USER } else { all };
            set(IDENTITY[user], index, pte(address, flags));
        }
        set(ROOT[user], 2, pte(IDENTITY[user], PTE_VALID));
        for window in WINDOWS {
            set(ROOT[user], window >> 30 & 511, pte(WINDOW_MEGAPAGES, PTE_VALID));
        }
        for half in [0, 511] {
            set(ROOT_SV48[user], half, pte(ROOT[user], PTE_VALID));
        }
    }
    set(WINDOW_MEGAPAGES, 0, pte(WINDOW_ENTRIES, PTE_VALID));
    // Entry 1 is the program's megapage; the others fault: misaligned, reserved bits, nothing there, a pointer with a
    // leaf's bits.
    for user in [0, PTE_USER] {
        set(WINDOW_MEGAPAGES, 2 + user / 4, pte(DATA_SLOT + 4096, all | user));
        set(WINDOW_MEGAPAGES, 3 + user / 4, pte(DATA_SLOT, all | user | 1 << 62));
        set(WINDOW_MEGAPAGES, 8 + user / 4, pte(NOWHERE, all | user));
    }
    set(WINDOW_MEGAPAGES, 4, pte(WINDOW_ENTRIES, PTE_VALID | PTE_USER));
    set(WINDOW_MEGAPAGES, 5, pte(WINDOW_ENTRIES, PTE_VALID | PTE_ACCESSED_DIRTY));
    bytes
}

/// An ELF file that runs `programs` one after the other and then reports success to the finisher.
pub fn image(programs: &[Program]) -> Vec<u8> {
    let harness = harness_code();
    assert!(IMAGE_BASE + harness.len() as u64 <= CONTEXT, "the harness fits below its context");
    let mut image = harness;
    image.resize((TABLES - IMAGE_BASE) as usize, 0);
    image.extend(page_tables());
    image.resize((PROGRAMS - IMAGE_BASE) as usize, 0);
    for program in programs {
        image.extend(blob(program));
    }
    image.extend(0_u64.to_le_bytes());
    assert!(IMAGE_BASE + (image.len() as u64) < RAM_END - 0x100_0000, "the programs leave room for the device tree");
    elf(&image)
}

fn blob(program: &Program) -> Vec<u8> {
    let mut code = program.code.clone();
    code.resize(code.len().next_multiple_of(8), 0);
    let size = BLOB_DATA as usize + DATA_SIZE_BYTES + code.len();
    let privilege = if program.variant.is_user { 0 } else { SSTATUS_SPP };
    let header = [
        size as u64,
        satp(program.variant.paging, program.variant.is_user),
        privilege,
        program.end_pc,
        code.len() as u64,
        program.fcsr,
    ];
    assert_eq!(program.data.len(), DATA_SIZE_BYTES);
    let words = header
        .iter()
        .chain(&program.integers[1..])
        .chain(&program.floats)
        .chain(&program.window_entries)
        .chain([&program.megapage_entry]);
    let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(bytes.len(), BLOB_DATA as usize);
    bytes.extend(&program.data);
    bytes.extend(code);
    bytes
}

/// One loadable segment of RISC-V machine code (Tool Interface Standard ELF, version 1.2, and its 64-bit form).
fn elf(image: &[u8]) -> Vec<u8> {
    const HEADERS_SIZE_BYTES: u64 = 4096;
    let mut file = Vec::with_capacity(image.len() + HEADERS_SIZE_BYTES as usize);
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Executable, EM_RISCV, version 1.
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    file.extend(IMAGE_BASE.to_le_bytes());
    file.extend(64_u64.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    // Flags: compressed code, double-float ABI. Header sizes and counts follow.
    file.extend(5_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // PT_LOAD, readable, writable and executable.
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    let size = image.len() as u64;
    for word in [HEADERS_SIZE_BYTES, IMAGE_BASE, IMAGE_BASE, size, size, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.resize(HEADERS_SIZE_BYTES as usize, 0);
    file.extend(image);
    file
}

fn csrw(number: u32, rs1: u32) -> u32 {
    csr(CSRRW, 0, number, rs1)
}

fn csrr(rd: u32, number: u32) -> u32 {
    csr(CSRRS, rd, number, 0)
}

/// Words from the address in x5 to the address in x6, x7 bytes.
fn emit_copy(code: &mut Code) {
    let done = code.label();
    let again = code.here();
    code.branch(0, 7, 0, done);
    code.push(ld(8, 5, 0));
    code.push(sd(8, 6, 0));
    code.push(addi(5, 5, 8));
    code.push(addi(6, 6, 8));
    code.push(addi(7, 7, -8));
    code.jump(0, again);
    code.bind(done);
}

/// x8 = hash of x8 and x9; x5 is the multiplier.
fn emit_hash(code: &mut Code) {
    code.push(r_type(OP, 8, 4, 8, 9, 0));
    code.push(r_type(OP, 8, 0, 8, 5, 1));
    code.push(i_type(OP_IMM, 9, 5, 8, 32));
    code.push(r_type(OP, 8, 4, 8, 9, 0));
}

fn harness_code() -> Vec<u8> {
    let mut code = Code::new(IMAGE_BASE);
    let handler = code.label();
    let next = code.label();
    let print_word = code.label();
    let print_character = code.label();

    // The vector stands at a known address, before what its setting needs. In vectored mode a software interrupt enters
    // by the second word.
    let setup = code.label();
    code.jump(0, setup);
    while code.pc() < VECTOR {
        code.push(addi(0, 0, 0));
    }
    let vectored = code.label();
    code.jump(0, handler);
    code.jump(0, vectored);
    code.bind(vectored);
    code.push(sd(5, CONTEXT_REGISTER, SAVED));
    code.push(ld(5, CONTEXT_REGISTER, DUMP_VECTORED));
    code.push(addi(5, 5, 1));
    code.push(sd(5, CONTEXT_REGISTER, DUMP_VECTORED));
    code.push(ld(5, CONTEXT_REGISTER, SAVED));
    code.jump(0, handler);

    code.bind(setup);
    code.load_immediate(5, VECTOR);
    code.push(csrw(CSR_STVEC, 5));
    code.push(csrw(CSR_SATP, 0));
    code.push(csrw(CSR_SIE, 0));
    code.load_immediate(CONTEXT_REGISTER, CONTEXT);
    code.load_immediate(5, PROGRAMS);
    code.push(sd(5, CONTEXT_REGISTER, CURRENT));
    code.load_immediate(10, u64::from(b'S'));
    code.jump(1, print_character);
    code.load_immediate(10, u64::from(b'\n'));
    code.jump(1, print_character);

    code.bind(next);
    emit_enter(&mut code, print_character);
    emit_handler(&mut code, handler, next, print_word);
    emit_print(&mut code, print_word, print_character);
    code.finish()
}

/// Copies the current program to its slots and enters it; ends the run after the last.
fn emit_enter(code: &mut Code, print_character: Label) {
    let some = code.label();
    code.push(ld(31, CONTEXT_REGISTER, CURRENT));
    code.push(ld(5, 31, BLOB_SIZE));
    code.branch(1, 5, 0, some);
    for character in [b'E', b'\n'] {
        code.load_immediate(10, u64::from(character));
        code.jump(1, print_character);
    }
    code.load_immediate(5, 0x10_0000);
    code.load_immediate(6, 0x5555);
    code.push(s_type(STORE, 2, 5, 6, 0));
    let forever = code.here();
    code.jump(0, forever);

    code.bind(some);
    let copy = |code: &mut Code, from: i64, to: u64, size_bytes: u64| {
        code.push(addi(5, 31, from));
        code.load_immediate(6, to);
        code.load_immediate(7, size_bytes);
        emit_copy(code);
    };
    copy(code, BLOB_ENTRIES, WINDOW_ENTRIES, 8 * WINDOW_PAGES as u64);
    copy(code, BLOB_ENTRIES + 8 * WINDOW_PAGES as i64, WINDOW_MEGAPAGES + 8, 8);
    copy(code, BLOB_DATA, DATA_SLOT, DATA_SIZE_BYTES as u64);
    // x5 now points at the code.
    code.load_immediate(6, CODE_SLOT);
    code.push(ld(7, 31, BLOB_CODE_SIZE));
    emit_copy(code);
    code.push(FENCE_I);

    // Clear the dump, the traps in it above all.
    code.push(addi(5, CONTEXT_REGISTER, DUMP));
    code.load_immediate(6, DUMP_LINES as u64);
    let clear = code.here();
    code.push(sd(0, 5, 0));
    code.push(addi(5, 5, 8));
    code.push(addi(6, 6, -1));
    code.branch(1, 6, 0, clear);

    code.push(ld(5, 31, BLOB_END_PC));
    code.push(sd(5, CONTEXT_REGISTER, END_PC));
    code.push(ld(5, 31, BLOB_SATP));
    code.push(csrw(CSR_SATP, 5));
    code.push(SFENCE_VMA_ALL);
    code.load_immediate(5, SSTATUS_SUM_MXR | SSTATUS_SPP | 0x22);
    code.push(csr(CSRRC, 0, CSR_SSTATUS, 5));
    code.load_immediate(5, SSTATUS_FS);
    code.push(csr(CSRRS, 0, CSR_SSTATUS, 5));
    code.push(ld(5, 31, BLOB_PRIVILEGE));
    code.push(csr(CSRRS, 0, CSR_SSTATUS, 5));
    code.load_immediate(5, CODE_SLOT);
    code.push(csrw(CSR_SEPC, 5));
    code.push(csrw(CSR_SSCRATCH, 0));
    code.push(ld(5, 31, BLOB_FCSR));
    code.push(csrw(CSR_FCSR, 5));
    for register in 0..32 {
        code.push(i_type(LOAD_FP, register, 3, 31, BLOB_FLOATS + 8 * i64::from(register)));
    }
    for register in 1..32 {
        code.push(ld(register, 31, BLOB_INTEGERS + 8 * (i64::from(register) - 1)));
    }
    code.push(SRET);
}

/// Logs a trap and skips its instruction; clears a software interrupt; ends the program at its last instruction.
fn emit_handler(code: &mut Code, handler: Label, next: Label, print_word: Label) {
    let context = CONTEXT_REGISTER;
    let (interrupt, fetch, resume, end) = (code.label(), code.label(), code.label(), code.label());
    code.bind(handler);
    for register in 5..10 {
        code.push(sd(register, context, SAVED + 8 * (i64::from(register) - 5)));
    }
    // A breakpoint's trap value may be zero or the address: log zero.
    code.push(csrr(6, CSR_SCAUSE));
    code.push(addi(5, 6, -3));
    code.push(r_type(OP, 5, 3, 0, 5, 0));
    code.push(r_type(OP, 5, 0, 0, 5, 0x20));
    code.push(csrr(7, CSR_STVAL));
    code.push(r_type(OP, 7, 7, 7, 5, 0));
    code.push(csrr(9, CSR_SEPC));
    // The end of the program is not a trap of it.
    code.push(addi(5, 6, -3));
    let not_end = code.label();
    code.branch(1, 5, 0, not_end);
    code.push(ld(5, context, END_PC));
    code.branch(0, 9, 5, end);
    code.bind(not_end);

    code.push(ld(8, context, DUMP_TRAP_COUNT));
    code.push(addi(5, 8, 1));
    code.push(sd(5, context, DUMP_TRAP_COUNT));
    code.push(addi(5, 0, TRAPS_LISTED as i64));
    code.push(r_type(OP, 8, 7, 8, 5, 1));
    code.push(addi(5, 0, 24));
    code.push(r_type(OP, 8, 0, 8, 5, 1));
    code.push(add(8, 8, context));
    code.push(sd(6, 8, DUMP_TRAPS));
    code.push(sd(9, 8, DUMP_TRAPS + 8));
    code.push(sd(7, 8, DUMP_TRAPS + 16));
    code.load_immediate(5, HASH_MULTIPLIER);
    code.push(ld(8, context, DUMP_TRAP_HASH));
    emit_hash(code);
    code.push(addi(9, 7, 0));
    emit_hash(code);
    code.push(addi(9, 6, 0));
    emit_hash(code);
    code.push(sd(8, context, DUMP_TRAP_HASH));

    code.branch(4, 6, 0, interrupt);
    code.push(addi(5, 6, -1));
    code.branch(0, 5, 0, fetch);
    code.push(addi(5, 6, -12));
    code.branch(0, 5, 0, fetch);
    // Skip two or four bytes, whatever the code page allows.
    code.push(csrr(6, CSR_SEPC));
    code.push(csrr(7, CSR_SSTATUS));
    code.load_immediate(8, SSTATUS_SUM_MXR);
    code.push(csr(CSRRS, 0, CSR_SSTATUS, 8));
    code.push(i_type(LOAD, 8, 5, 6, 0));
    code.push(csrw(CSR_SSTATUS, 7));
    code.push(i_type(OP_IMM, 8, 7, 8, 3));
    code.push(i_type(OP_IMM, 8, 3, 8, 3));
    code.push(i_type(OP_IMM, 8, 1, 8, 1));
    code.push(addi(6, 6, 4));
    code.push(r_type(OP, 6, 0, 6, 8, 0x20));
    code.push(csrw(CSR_SEPC, 6));
    code.jump(0, resume);
    code.bind(fetch);
    code.push(csrw(CSR_SEPC, RESUME_REGISTER));
    code.jump(0, resume);
    code.bind(interrupt);
    code.push(csr(7, 0, CSR_SIP, 2));
    code.bind(resume);
    for register in 5..10 {
        code.push(ld(register, context, SAVED + 8 * (i64::from(register) - 5)));
    }
    code.push(SRET);

    code.bind(end);
    emit_dump(code, next, print_word);
}

/// Stores the final state into the dump, prints it, and goes on with the next program.
fn emit_dump(code: &mut Code, next: Label, print_word: Label) {
    let context = CONTEXT_REGISTER;
    for register in 5..10 {
        code.push(ld(register, context, SAVED + 8 * (i64::from(register) - 5)));
    }
    for register in 1..32 {
        code.push(sd(register, context, DUMP + 8 * (i64::from(register) - 1)));
    }
    code.push(csrw(CSR_SATP, 0));
    code.push(SFENCE_VMA_ALL);
    code.push(csrr(5, CSR_SSTATUS));
    code.push(sd(5, context, DUMP_SSTATUS));
    code.load_immediate(5, SSTATUS_FS);
    code.push(csr(CSRRS, 0, CSR_SSTATUS, 5));
    for register in 0..32 {
        code.push(s_type(STORE_FP, 3, context, register, DUMP_FLOATS + 8 * i64::from(register)));
    }
    code.push(csrr(5, CSR_FCSR));
    code.push(sd(5, context, DUMP_FCSR));
    code.push(csrr(5, CSR_SSCRATCH));
    code.push(sd(5, context, DUMP_SSCRATCH));
    code.push(csrw(CSR_SIE, 0));
    code.push(csr(7, 0, CSR_SIP, 2));

    // Hash the data: x6 word, x7 end of the data, x10 end of the block, x11 where the hash goes.
    code.load_immediate(5, HASH_MULTIPLIER);
    code.load_immediate(6, DATA_SLOT);
    code.load_immediate(7, DATA_SLOT + DATA_SIZE_BYTES as u64);
    code.push(addi(11, context, DUMP_BLOCKS));
    let block = code.here();
    code.push(addi(8, 0, 0));
    code.push(addi(10, 6, BLOCK_SIZE_BYTES as i64));
    let word = code.here();
    code.push(ld(9, 6, 0));
    emit_hash(code);
    code.push(addi(6, 6, 8));
    code.branch(1, 6, 10, word);
    code.push(sd(8, 11, 0));
    code.push(addi(11, 11, 8));
    code.branch(1, 6, 7, block);

    // Translation sets A and D in the entries.
    code.load_immediate(6, WINDOW_ENTRIES);
    for index in 0..WINDOW_PAGES as i64 {
        code.push(ld(5, 6, 8 * index));
        code.push(sd(5, context, DUMP_ENTRIES + 8 * index));
    }

    // Print all lines: x20 line, x21 lines left.
    code.push(addi(20, context, DUMP));
    code.load_immediate(21, DUMP_LINES as u64);
    let line = code.here();
    code.push(ld(10, 20, 0));
    code.jump(1, print_word);
    code.push(addi(20, 20, 8));
    code.push(addi(21, 21, -1));
    code.branch(1, 21, 0, line);

    code.push(ld(5, context, CURRENT));
    code.push(ld(6, 5, BLOB_SIZE));
    code.push(add(5, 5, 6));
    code.push(sd(5, context, CURRENT));
    code.jump(0, next);
}

/// `print_word` prints x10 as sixteen digits and a newline; `print_character` the byte in x10. Both return to x1.
fn emit_print(code: &mut Code, print_word: Label, print_character: Label) {
    code.bind(print_word);
    code.push(addi(12, 1, 0));
    code.push(addi(13, 10, 0));
    code.push(addi(14, 0, 60));
    let digit = code.here();
    code.push(r_type(OP, 10, 5, 13, 14, 0));
    code.push(i_type(OP_IMM, 10, 7, 10, 15));
    code.push(i_type(OP_IMM, 15, 3, 10, 10));
    let below_ten = code.label();
    code.push(addi(10, 10, i64::from(b'0')));
    code.branch(1, 15, 0, below_ten);
    code.push(addi(10, 10, i64::from(b'a' - b'0' - 10)));
    code.bind(below_ten);
    code.jump(1, print_character);
    code.push(addi(14, 14, -4));
    code.branch(5, 14, 0, digit);
    code.push(addi(10, 0, i64::from(b'\n')));
    code.push(addi(1, 12, 0));
    code.bind(print_character);
    code.load_immediate(16, 0x1000_0000);
    let busy = code.here();
    code.push(i_type(LOAD, 17, 4, 16, 5));
    code.push(i_type(OP_IMM, 17, 7, 17, 0x20));
    code.branch(0, 17, 0, busy);
    code.push(s_type(STORE, 0, 16, 10, 0));
    code.push(i_type(JALR, 0, 0, 1, 0));
}

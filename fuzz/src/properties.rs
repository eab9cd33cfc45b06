//! Properties that hold for any input, as functions of bytes. The fuzz targets and the property tests of `make test`
//! share them.

use concord_isa::compressed::expand;
use concord_isa::decode::decode;
use concord_isa::op::{Kind, Op, SINK};
use concord_machine::run::{Limits, Options, Unattended, run};
use concord_machine::{Board, Configuration, Executor, Gear, Machine, Net, loader, snapshot};
use std::path::Path;
use vm_memory::{GuestAddress, GuestMemoryMmap};

const MEMORY_BASE: u64 = 0x8000_0000;
const MEMORY_BYTES: usize = 16 << 20;

/// Every word decodes to an op whose registers exist. The op does not depend on its position, except for values
/// relative to the program counter. Every compressed instruction that is not reserved expands to a legal one.
pub fn decoder(bytes: &[u8]) {
    for chunk in bytes.chunks_exact(4) {
        let word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        if word & 3 == 3 {
            check_op(word, 0, 4);
            check_op(word, word >> 8 & 0xffe, 4);
        } else {
            let half = word as u16;
            // Other encodings are reserved.
            if let Some(expanded) = expand(half) {
                assert_eq!(expanded & 3, 3, "{half:#06x} expands to {expanded:#x}");
                assert_ne!(check_op(expanded, word >> 16 & 0xffe, 2).kind, Kind::Illegal, "{half:#06x}");
            }
        }
    }
}

fn check_op(word: u32, offset: u32, length_bytes: u32) -> Op {
    let op = decode(word, offset, length_bytes);
    let start = decode(word, 0, length_bytes);
    assert_eq!(op.kind, start.kind, "{word:#010x}");
    assert!(op.rd <= SINK, "{word:#010x}: {op:?}");
    match op.kind {
        Kind::Jump => {
            let link = u32::from(op.rs1) | u32::from(op.rs2) << 8;
            assert_eq!(link, offset + length_bytes, "{word:#010x}");
            assert_eq!(op.imm.wrapping_sub(start.imm), offset as i32, "{word:#010x}");
        }
        Kind::JumpRegister => {
            assert_eq!(op.imm as u32 & 0xffff, offset + length_bytes, "{word:#010x}");
            assert!(op.rs1 < 32, "{word:#010x}: {op:?}");
        }
        Kind::Illegal => assert_eq!(op.imm as u32, word),
        _ => {
            assert!(op.rs1 < 32 && op.rs2 < 32, "{word:#010x}: {op:?}");
            let moved = op.imm.wrapping_sub(start.imm);
            assert!(moved == 0 || moved == offset as i32, "{word:#010x}");
        }
    }
    op
}

/// A kernel is loaded inside memory, or refused with one line that gives the reason.
pub fn kernel(bytes: &[u8]) {
    let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(MEMORY_BASE), MEMORY_BYTES)]).expect("16 MiB");
    match loader::load_kernel(&memory, Path::new("kernel"), bytes) {
        Ok(kernel) => {
            assert!(kernel.range.contains(&kernel.entry), "{kernel:x?}");
            assert!(kernel.entry & 1 == 0, "{kernel:x?}");
            assert!(kernel.range.start >= MEMORY_BASE && kernel.range.end <= MEMORY_BASE + MEMORY_BYTES as u64);
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// A board is valid, or refused with one line that gives the reason.
pub fn board(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Board::from_toml(&text, "board.toml") {
        Ok(board) => board.validate().expect("a board from a file is valid"),
        Err(error) => assert_one_line(&error.to_string()),
    }
}

fn assert_one_line(message: &str) {
    assert!(!message.contains('\n') && !message.is_empty(), "not one line: {message:?}");
}

/// The state in a snapshot of a small machine that has executed some instructions in the timed gear.
pub fn snapshot_state() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (kernel, path) = (directory.path().join("kernel"), directory.path().join("snapshot"));
    // Stores to a few lines, one of them in a suspended transaction and one in an active transaction (xbegin, xpush,
    // xbegin), and then an endless loop.
    let instructions = [
        0x0000_0297,
        0x0052_b023,
        0x0000_008b,
        0x4052_b423,
        0x0000_400b,
        0x0000_010b,
        0x0052_b823,
        0x0002_b303,
        0x0000_006f,
    ];
    std::fs::write(&kernel, elf(&instructions, &[])).expect("the kernel is written");
    let mut configuration = configuration(&kernel, Gear::Timed);
    configuration.board.cache.second.size_bytes = 16 << 10;
    configuration.board.cache.data.size_bytes = 1 << 10;
    configuration.board.cache.instruction.size_bytes = 1 << 10;
    configuration.board.translation.entries = 8;
    configuration.board.harts.count = 2;
    let mut machine = Machine::new(configuration).expect("the machine starts");
    run_shortly(&mut machine, 100);
    machine.save(&path).expect("the snapshot is written");
    let file = std::fs::read(&path).expect("the snapshot is read");
    let stream = zstd::decode_all(&file[12..file.len() - 32]).expect("the snapshot's stream");
    let length = u64::from_le_bytes(stream[..8].try_into().expect("eight bytes")) as usize;
    stream[8..8 + length].to_vec()
}

/// Reads a snapshot whose state is `state` with changes. Each four bytes of `changes` are an offset of three bytes and
/// the new byte there.
pub fn snapshot_changed(state: &[u8], changes: &[u8]) {
    let mut state = state.to_vec();
    for change in changes.chunks_exact(4) {
        let place = usize::from(change[0]) | usize::from(change[1]) << 8 | usize::from(change[2]) << 16;
        let length = state.len();
        state[place % length] = change[3];
    }
    snapshot(&state);
}

/// Reads a snapshot with these bytes as its state: a machine that runs, or an error. Returns true for a machine.
pub fn snapshot(state: &[u8]) -> bool {
    let mut stream = (state.len() as u64).to_le_bytes().to_vec();
    stream.extend(state);
    let compressed = zstd::encode_all(&stream[..], 1).expect("memory is written to");
    match snapshot::read_unchecked(&compressed) {
        Some(mut machine) => {
            let limit = machine.instructions().saturating_add(2_000);
            run_shortly(&mut machine, limit);
            machine.digest().expect("it has no disks");
            true
        }
        None => false,
    }
}

/// Register values that are likely to reveal errors.
const INTERESTING: [u64; 24] = [
    0,
    1,
    u64::MAX,
    1 << 63,
    i64::MAX as u64,
    0x8000_0000,
    0x8020_1000,
    0x8020_1fff,
    0x8020_1ffc,
    0x80ff_ffff,
    0x80ff_fff8,
    0x80ff_fffc,
    0x8100_0000,
    0x7fff_ffff,
    0x7fff_fffc,
    0x1000_0000,
    0x1000_1000,
    0x1000_8000,
    0x0c00_2080,
    0x0c20_1004,
    0xffff_ffff_ffff_fffc,
    0x0000_0040_0000_0000,
    0xffff_ffc0_0000_0000,
    0x5449_4d45,
];

/// Instructions with any registers, in any mode, leave the machine running or ended. The first byte selects mode and
/// gear, the next 128 choose registers, and the rest are up to 64 instructions.
pub fn instruction(bytes: &[u8]) {
    if let Some(mut machine) = machine(bytes, |word| word, 0) {
        run_shortly(&mut machine, 2_000);
    }
}

/// The traps after which the program of [`executors`] begins anew, so that its runs become hot.
const REPETITIONS: u64 = 6;

/// A program ends in one state on both executors, whatever its instructions, registers, mode and gear are, and wherever it
/// is stopped. The first two bytes say where; the others are those of [`instruction`], with most words made legal.
pub fn executors(bytes: &[u8]) {
    let Some((limit, bytes)) = bytes.split_first_chunk() else { return };
    let limit = u64::from(u16::from_le_bytes(*limit)) % 4_000;
    let state = |executor| {
        let mut machine = machine(bytes, likely, REPETITIONS)?;
        machine.set_executor_of_test(executor, 1).expect("this host executes translated code");
        run_shortly(&mut machine, limit);
        Some((machine.instructions(), machine.digest().expect("it has no disks")))
    };
    assert_eq!(state(Executor::Translator), state(Executor::Interpreter));
}

/// A word with an opcode that there is, and if it is a branch or a jump, a near target. One word in sixteen stays.
fn likely(word: u32) -> u32 {
    const OPCODES: [u32; 15] =
        [0x13, 0x33, 0x03, 0x23, 0x63, 0x6f, 0x37, 0x17, 0x2f, 0x3b, 0x1b, 0x07, 0x27, 0x73, 0x53];
    let Some(opcode) = OPCODES.get((word >> 3 & 15) as usize) else { return word };
    let rest = word & !0x7f;
    // The sign of the displacement in all of its bits but the lowest.
    let sign = if word >> 31 == 1 { u32::MAX } else { 0 };
    opcode
        | match opcode {
            // The conditions 2 and 3 do not exist.
            0x63 => rest & 0x01ff_ff00 & !(!rest >> 1 & 2 << 12) | sign & 0xfe00_0080,
            0x6f => rest & 0x03e0_0f80 | sign & 0xfc1f_f000,
            _ => rest,
        }
}

/// A machine whose program is these bytes, as [`instruction`] says, with `change` made to each instruction. After so many
/// traps as `repetitions` says the program begins anew.
fn machine(bytes: &[u8], change: impl Fn(u32) -> u32, repetitions: u64) -> Option<Machine> {
    let (mode, bytes) = bytes.split_first()?;
    let mut registers = [0_u64; 64];
    let (choices, code) = bytes.split_at(bytes.len().min(128));
    for (register, choice) in registers.iter_mut().zip(choices.chunks_exact(2)) {
        let offset = u64::from(choice[1] & 0x3f);
        *register = match INTERESTING.get(usize::from(choice[0]) % 32) {
            Some(value) => value.wrapping_add(offset).wrapping_sub(8),
            None => u64::from(choice[1]).wrapping_mul(0x0101_0101_0101_0101) ^ u64::from(choice[0]) << 56,
        };
    }
    let word = |word: &[u8]| change(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let words: Vec<u32> = code.chunks_exact(4).take(64).map(word).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kernel = directory.path().join("kernel");
    let guest = guest(*mode, &registers, &words, repetitions);
    std::fs::write(&kernel, elf(&entry_code(), &guest)).expect("the kernel is written");
    let gear = if mode & 1 == 1 { Gear::Timed } else { Gear::Functional };
    let mut configuration = configuration(&kernel, gear);
    configuration.board.cache.second.size_bytes = 16 << 10;
    configuration.board.cache.data.size_bytes = 1 << 10;
    configuration.board.cache.instruction.size_bytes = 1 << 10;
    configuration.board.harts.count = 1 + usize::from(*mode >> 1 & 1);
    Some(Machine::new(configuration).expect("the machine starts"))
}

const ENTRY: u64 = 0x8020_0000;
const BLOCK: u64 = ENTRY + 0x1000;
const TABLE: u64 = ENTRY + 0x2000;
const WORDS: u64 = ENTRY + 0x900;
const HANDLER: u64 = ENTRY + 0xc00;

/// Loads every register from the block and returns to the instructions in the mode that the block contains.
fn entry_code() -> Vec<u32> {
    let load = |register: u32, offset: u32| offset << 20 | 31 << 15 | 3 << 12 | register << 7 | 0x03;
    let load_float = |register: u32, offset: u32| load(register, offset) | 0x04;
    let write_csr = |csr: u32| csr << 20 | 30 << 15 | 1 << 12 | 0x73;
    // auipc x31, 1: the block. The other addresses lie below it, in reach of a 12-bit immediate.
    let mut code = vec![0x0000_1f97];
    let below = |distance: u64| (distance as u32).wrapping_neg() << 20 | 31 << 15 | 30 << 7 | 0x13;
    code.extend([below(BLOCK - HANDLER), write_csr(0x105), below(BLOCK - WORDS), write_csr(0x141)]);
    code.extend([load(30, 512), write_csr(0x100), load(30, 520), write_csr(0x180)]);
    code.extend([load(30, 528), write_csr(0x140)]);
    code.extend((0..32).map(|register| load_float(register, 256 + 8 * register)));
    code.extend((1..32).map(|register| load(register, 8 * register)));
    // sret
    code.push(0x1020_0073);
    code
}

/// The memory contents from [`WORDS`] on.
fn guest(mode: u8, registers: &[u64; 64], words: &[u32], repetitions: u64) -> Vec<u8> {
    let mut bytes = vec![0; 0x3000 - 0x900];
    let mut put = |address: u64, value: &[u8]| {
        let offset = (address - WORDS) as usize;
        bytes[offset..offset + value.len()].copy_from_slice(value);
    };
    for (index, word) in words.iter().enumerate() {
        put(WORDS + 4 * index as u64, &word.to_le_bytes());
    }
    // Counts sscratch down and returns to the words, until it is negative: csrrw x31, sscratch, x31; addi x31, x31, -1;
    // bltz x31, 24; csrrw x31, sscratch, x31; auipc x30, 0; addi x30, x30, WORDS - .; csrw sepc, x30; sret.
    let back = (HANDLER + 16 - WORDS) as u32;
    let again = [0x140f_9ff3, 0xffff_8f93, 0x000f_cc63, 0x140f_9ff3, 0x0000_0f17, back.wrapping_neg() << 20 | 0xf_0f13];
    // And then lui x1, 0x100; lui x2, 5; addi x2, x2, 0x555; sw x2, 0(x1); j .
    let end = [0x141f_1073, 0x1020_0073, 0x0010_00b7, 0x0000_5137, 0x5551_0113, 0x0020_a023, 0x0000_006f];
    for (index, word) in again.iter().chain(&end).enumerate() {
        put(HANDLER + 4 * index as u64, &u32::to_le_bytes(*word));
    }
    for (index, register) in registers.iter().enumerate() {
        put(BLOCK + 8 * index as u64, &register.to_le_bytes());
    }
    let user = mode >> 2 & 1 == 1;
    let status: u64 = 3 << 13 | if user { 0 } else { 1 << 8 } | u64::from(mode >> 3 & 3) << 18;
    let satp = if mode >> 5 & 1 == 1 { 8 << 60 | TABLE >> 12 } else { 0 };
    put(BLOCK + 512, &status.to_le_bytes());
    put(BLOCK + 520, &satp.to_le_bytes());
    put(BLOCK + 528, &repetitions.to_le_bytes());
    // Gigapages: devices and RAM at their physical addresses, and RAM once more in the last gigapage.
    let flags: u64 = if user { 0xdf } else { 0xcf };
    for (index, physical) in [(0, 0_u64), (2, MEMORY_BASE), (511, MEMORY_BASE)] {
        put(TABLE + 8 * index, &(physical >> 12 << 10 | flags).to_le_bytes());
    }
    bytes
}

/// An ELF file with code at its entry and bytes at [`WORDS`].
fn elf(code: &[u32], rest: &[u8]) -> Vec<u8> {
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.resize((WORDS - ENTRY) as usize, 0);
    image.extend(rest);
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // Executable, EM_RISCV, version 1; one program header of 56 bytes follows the header of 64 bytes.
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    for word in [ENTRY, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    let size = image.len() as u64;
    for word in [0x1000, ENTRY, ENTRY, size, size, 0x1000] {
        file.extend(u64::to_le_bytes(word));
    }
    file.resize(0x1000, 0);
    file.extend(image);
    file
}

/// A small valid kernel, for the loader's corpus.
pub fn small_kernel() -> Vec<u8> {
    elf(&entry_code(), &[])
}

fn configuration(kernel: &Path, gear: Gear) -> Configuration {
    let mut board = Board::preset("metatm-2007").expect("the preset exists");
    board.harts.count = 1;
    board.memory.size_bytes = MEMORY_BYTES as u64;
    Configuration {
        board,
        seed: 1,
        gear,
        kernel: kernel.to_owned(),
        initrd: None,
        append: String::new(),
        disks: Vec::new(),
        net: Net::None,
        check_isolation: false,
    }
}

fn run_shortly(machine: &mut Machine, instructions: u64) {
    // A hart whose trap handler cannot be fetched uses up cycles and retires nothing.
    let limits = Limits { instructions: Some(instructions), cycles: Some(1_000_000) };
    // Any end is right, and so is an error of the host.
    let _ = run(machine, &Options { limits, ..Options::default() }, &mut Unattended::default());
}

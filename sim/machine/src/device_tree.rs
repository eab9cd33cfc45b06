//! The flattened device tree that describes the machine to the guest.
//!
//! The layout is that of QEMU's `virt` machine, so that one kernel runs on both, less the devices
//! that this machine does not have: no CLINT (the SBI keeps the timer and sends the interrupts between
//! harts), no PCI, no flash, and no syscon-poweroff nodes, as SBI system reset serves.
//!
//! Sources: the Devicetree Specification 0.4; in Linux, `Documentation/devicetree/bindings/` for
//! `riscv/cpus.yaml`, `riscv/extensions.yaml` and `interrupt-controller/sifive,plic-1.0.0.yaml`.

use std::ops::Range;

use concord_abi::htm;
use concord_dev::map;
use vm_fdt::{FdtWriter, FdtWriterNode};

use crate::board::{Board, LevelBoard};
use crate::loader::MEMORY_BASE;

/// The extensions that every hart implements, in canonical order: single letters, then multi-letter names as the
/// RISC-V ISA manual sorts them (Z-names by their category letter, then S-names).
///
/// Svvptc holds because the translation look-aside buffer never caches an invalid entry. Neither
/// Svade nor Svadu is listed, as the guest cannot choose between the two. Zihpm is absent: the
/// machine counts only cycles and instructions.
pub const EXTENSIONS: &[&str] = &[
    "i",
    "m",
    "a",
    "f",
    "d",
    "c",
    "zicntr",
    "zicsr",
    "zifencei",
    "zba",
    "zbb",
    "zbs",
    "sstc",
    "svvptc",
    htm::EXTENSION,
];

/// Slots of the virtio-mmio window that the machine has.
pub const VIRTIO_SLOTS_MAX: usize = map::SLOT_COUNT;

const UART_FREQUENCY_HERTZ: u32 = 3_686_400;

/// Interrupt numbers of a hart's own controller (privileged architecture, `mcause`).
const MACHINE_EXTERNAL: u32 = 11;
const SUPERVISOR_EXTERNAL: u32 = 9;

/// Linux takes no longer command line on RISC-V (`COMMAND_LINE_SIZE`, with its final NUL).
const BOOTARGS_BYTES_MAX: usize = 1023;
const RNG_SEED_BYTES: usize = 64;

/// Free space at the end of the tree, where a boot loader adds properties without moving the tree: U-Boot
/// writes the new command line and the place of the initial RAM disk into it. The size is a choice: QEMU leaves
/// more than that, and the longest command line is a quarter of it.
pub const FREE_BYTES: usize = 4096;

/// Offset of the header's `totalsize` (Devicetree Specification, section 5.2).
const TOTAL_SIZE_OFFSET: usize = 4;

const PLIC_PHANDLE: u32 = 1;
/// A hart's phandles are these plus its number, which is below 64.
const CPU_PHANDLES: u32 = 0x100;
const INTERRUPT_PHANDLES: u32 = 0x200;
const CACHE_PHANDLES: u32 = 0x300;

/// Why there is no device tree.
#[derive(Debug, thiserror::Error)]
pub enum DeviceTreeError {
    #[error("kernel command line of {length_bytes} bytes is too long: at most {BOOTARGS_BYTES_MAX}")]
    BootargsLong { length_bytes: usize },
    #[error("kernel command line has a NUL at byte {offset}")]
    BootargsNul { offset: usize },
    #[error("{slots} virtio devices are too many: at most {VIRTIO_SLOTS_MAX}")]
    Slots { slots: usize },
    #[error("initial RAM disk from {:#x} to {:#x} is empty or reversed", range.start, range.end)]
    Initrd { range: Range<u64> },
    #[error("{harts} harts are too many for a device tree: at most 64")]
    Harts { harts: usize },
    #[error("device tree cannot be written: {0}")]
    Write(#[from] vm_fdt::Error),
}

/// Builds the tree for a board. The last [`FREE_BYTES`] of it are free.
///
/// `extensions` are those of each hart, usually [`EXTENSIONS`]; `virtio_slots` the number of
/// virtio-mmio slots to describe, from slot 0 on. The guest's random seed derives from `seed`, so
/// equal arguments give equal bytes.
///
/// # Errors
/// [`DeviceTreeError`] for a command line, disk or count that a tree cannot hold.
pub fn build(
    board: &Board,
    bootargs: &str,
    initrd: Option<Range<u64>>,
    seed: u64,
    virtio_slots: usize,
    extensions: &[&str],
) -> Result<Vec<u8>, DeviceTreeError> {
    check(board, bootargs, initrd.as_ref(), virtio_slots)?;
    let mut tree = FdtWriter::new()?;
    let root = tree.begin_node("")?;
    tree.property_string("compatible", "riscv-virtio")?;
    tree.property_string("model", "concord,virt")?;
    cells(&mut tree, 2, 2)?;
    chosen(&mut tree, bootargs, initrd, seed)?;
    let memory = tree.begin_node(&format!("memory@{MEMORY_BASE:x}"))?;
    tree.property_string("device_type", "memory")?;
    tree.property_array_u64("reg", &[MEMORY_BASE, board.memory.size_bytes])?;
    tree.end_node(memory)?;
    cpus(&mut tree, board, extensions)?;
    soc(&mut tree, board.harts.count, virtio_slots)?;
    tree.end_node(root)?;
    with_free_space(tree.finish()?)
}

/// Appends [`FREE_BYTES`] of zeros to a finished tree and counts them in its header's `totalsize`.
fn with_free_space(mut tree: Vec<u8>) -> Result<Vec<u8>, DeviceTreeError> {
    tree.resize(tree.len() + FREE_BYTES, 0);
    let total_bytes = u32::try_from(tree.len()).map_err(|_| vm_fdt::Error::TotalSizeTooLarge)?;
    tree[TOTAL_SIZE_OFFSET..TOTAL_SIZE_OFFSET + 4].copy_from_slice(&total_bytes.to_be_bytes());
    Ok(tree)
}

fn check(
    board: &Board,
    bootargs: &str,
    initrd: Option<&Range<u64>>,
    virtio_slots: usize,
) -> Result<(), DeviceTreeError> {
    if bootargs.len() > BOOTARGS_BYTES_MAX {
        return Err(DeviceTreeError::BootargsLong { length_bytes: bootargs.len() });
    }
    if let Some(offset) = bootargs.find('\0') {
        return Err(DeviceTreeError::BootargsNul { offset });
    }
    if virtio_slots > VIRTIO_SLOTS_MAX {
        return Err(DeviceTreeError::Slots { slots: virtio_slots });
    }
    if board.harts.count > 64 {
        return Err(DeviceTreeError::Harts { harts: board.harts.count });
    }
    match initrd {
        Some(range) if range.is_empty() => Err(DeviceTreeError::Initrd { range: range.clone() }),
        _ => Ok(()),
    }
}

fn cells(tree: &mut FdtWriter, address: u32, size: u32) -> Result<(), vm_fdt::Error> {
    tree.property_u32("#address-cells", address)?;
    tree.property_u32("#size-cells", size)
}

fn chosen(tree: &mut FdtWriter, bootargs: &str, initrd: Option<Range<u64>>, seed: u64) -> Result<(), vm_fdt::Error> {
    let chosen = tree.begin_node("chosen")?;
    tree.property_string("bootargs", bootargs)?;
    tree.property_string("stdout-path", &format!("/soc/serial@{:x}", map::UART.base))?;
    if let Some(range) = initrd {
        tree.property_u64("linux,initrd-start", range.start)?;
        tree.property_u64("linux,initrd-end", range.end)?;
    }
    let mut rng_seed = [0; RNG_SEED_BYTES];
    blake3::Hasher::new_derive_key("concord device tree rng-seed")
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut rng_seed);
    tree.property("rng-seed", &rng_seed)?;
    tree.end_node(chosen)
}

/// The `riscv,isa` string that kernels before Linux 6.7 read: single letters, then the others,
/// each after an underscore.
fn isa_string(extensions: &[&str]) -> String {
    let mut isa = String::from("rv64");
    for extension in extensions {
        if extension.len() > 1 {
            isa.push('_');
        }
        isa.push_str(extension);
    }
    isa
}

fn cpus(tree: &mut FdtWriter, board: &Board, extensions: &[&str]) -> Result<(), vm_fdt::Error> {
    let cpus = tree.begin_node("cpus")?;
    cells(tree, 1, 0)?;
    // The board is validated: the timebase is 10 MHz.
    let timebase_hertz = u32::try_from(board.clock.timebase_hertz).map_err(|_| vm_fdt::Error::TotalSizeTooLarge)?;
    tree.property_u32("timebase-frequency", timebase_hertz)?;
    let isa = isa_string(extensions);
    let harts = hart_numbers(board.harts.count);
    for hart in harts.clone() {
        cpu(tree, board, hart, &isa, extensions)?;
    }
    let map = tree.begin_node("cpu-map")?;
    let cluster = tree.begin_node("cluster0")?;
    for hart in harts {
        let core = tree.begin_node(&format!("core{hart}"))?;
        tree.property_u32("cpu", CPU_PHANDLES + hart)?;
        tree.end_node(core)?;
    }
    tree.end_node(cluster)?;
    tree.end_node(map)?;
    tree.end_node(cpus)
}

/// Hart numbers as the tree's cells hold them; `check` has bounded the count.
fn hart_numbers(count: usize) -> Range<u32> {
    0..count as u32
}

fn cpu(tree: &mut FdtWriter, board: &Board, hart: u32, isa: &str, extensions: &[&str]) -> Result<(), vm_fdt::Error> {
    let cpu = tree.begin_node(&format!("cpu@{hart:x}"))?;
    tree.property_phandle(CPU_PHANDLES + hart)?;
    tree.property_string("device_type", "cpu")?;
    tree.property_u32("reg", hart)?;
    tree.property_string("status", "okay")?;
    tree.property_string("compatible", "riscv")?;
    tree.property_string("riscv,isa", isa)?;
    tree.property_string("riscv,isa-base", "rv64i")?;
    let extensions = extensions.iter().map(|&name| name.to_owned()).collect();
    tree.property_string_list("riscv,isa-extensions", extensions)?;
    tree.property_string("mmu-type", "riscv,sv48")?;
    let line_bytes = board.cache.line_bytes;
    level(tree, "i-cache", &board.cache.instruction, line_bytes)?;
    level(tree, "d-cache", &board.cache.data, line_bytes)?;
    tree.property_u32("next-level-cache", CACHE_PHANDLES + hart)?;

    let controller = interrupt_controller(tree, "interrupt-controller")?;
    tree.property_phandle(INTERRUPT_PHANDLES + hart)?;
    tree.property_string("compatible", "riscv,cpu-intc")?;
    tree.end_node(controller)?;

    let second = tree.begin_node("l2-cache")?;
    tree.property_phandle(CACHE_PHANDLES + hart)?;
    tree.property_string("compatible", "cache")?;
    tree.property_u32("cache-level", 2)?;
    tree.property_null("cache-unified")?;
    level(tree, "cache", &board.cache.second, line_bytes)?;
    tree.end_node(second)?;
    tree.end_node(cpu)
}

/// Size, line size and set count of one cache, as properties that start with `prefix`.
fn level(tree: &mut FdtWriter, prefix: &str, level: &LevelBoard, line_bytes: u64) -> Result<(), vm_fdt::Error> {
    let sets = level.size_bytes / (level.ways as u64 * line_bytes).max(1);
    for (name, value) in [("size", level.size_bytes), ("block-size", line_bytes), ("sets", sets)] {
        // A valid board has no cache above 1 GiB.
        let value = u32::try_from(value).map_err(|_| vm_fdt::Error::PropertyValueTooLarge)?;
        tree.property_u32(&format!("{prefix}-{name}"), value)?;
    }
    Ok(())
}

fn interrupt_controller(tree: &mut FdtWriter, name: &str) -> Result<FdtWriterNode, vm_fdt::Error> {
    let node = tree.begin_node(name)?;
    tree.property_null("interrupt-controller")?;
    tree.property_u32("#interrupt-cells", 1)?;
    tree.property_u32("#address-cells", 0)?;
    Ok(node)
}

fn soc(tree: &mut FdtWriter, harts: usize, virtio_slots: usize) -> Result<(), vm_fdt::Error> {
    let soc = tree.begin_node("soc")?;
    cells(tree, 2, 2)?;
    tree.property_string("compatible", "simple-bus")?;
    tree.property_null("ranges")?;

    let test = device(tree, "test", map::FINISHER)?;
    let names = ["sifive,test1", "sifive,test0", "syscon"];
    tree.property_string_list("compatible", names.map(str::to_owned).to_vec())?;
    tree.end_node(test)?;

    let plic = interrupt_controller(tree, &format!("plic@{:x}", map::PLIC.base))?;
    tree.property_phandle(PLIC_PHANDLE)?;
    tree.property_array_u64("reg", &[map::PLIC.base, map::PLIC.size_bytes])?;
    let names = ["sifive,plic-1.0.0", "riscv,plic0"];
    tree.property_string_list("compatible", names.map(str::to_owned).to_vec())?;
    // Source 0 does not exist.
    tree.property_u32("riscv,ndev", map::INTERRUPT_COUNT as u32 - 1)?;
    // The order numbers the contexts: two a hart, machine mode before supervisor mode.
    let contexts: Vec<u32> = hart_numbers(harts)
        .flat_map(|hart| {
            let controller = INTERRUPT_PHANDLES + hart;
            [controller, MACHINE_EXTERNAL, controller, SUPERVISOR_EXTERNAL]
        })
        .collect();
    tree.property_array_u32("interrupts-extended", &contexts)?;
    tree.end_node(plic)?;

    let uart = device(tree, "serial", map::UART)?;
    tree.property_string("compatible", "ns16550a")?;
    tree.property_u32("clock-frequency", UART_FREQUENCY_HERTZ)?;
    interrupt(tree, map::UART_INTERRUPT)?;
    tree.end_node(uart)?;

    // Slot 0 first, so that the guest numbers its disks in the order of the slots.
    for slot in 0..virtio_slots {
        let base = map::SLOT.base + slot as u64 * map::SLOT.size_bytes;
        let virtio = device(tree, "virtio_mmio", map::Range { base, ..map::SLOT })?;
        tree.property_string("compatible", "virtio,mmio")?;
        tree.property_null("dma-coherent")?;
        interrupt(tree, map::SLOT_INTERRUPT + slot)?;
        tree.end_node(virtio)?;
    }
    tree.end_node(soc)
}

fn device(tree: &mut FdtWriter, name: &str, range: map::Range) -> Result<FdtWriterNode, vm_fdt::Error> {
    let node = tree.begin_node(&format!("{name}@{:x}", range.base))?;
    tree.property_array_u64("reg", &[range.base, range.size_bytes])?;
    Ok(node)
}

fn interrupt(tree: &mut FdtWriter, number: usize) -> Result<(), vm_fdt::Error> {
    tree.property_u32("interrupt-parent", PLIC_PHANDLE)?;
    tree.property_u32("interrupts", number as u32)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    fn board(harts: usize) -> Board {
        let mut board = Board::preset("metatm-2007").expect("the preset is valid");
        board.harts.count = harts;
        board
    }

    fn tree(harts: usize) -> Vec<u8> {
        build(
            &board(harts),
            "console=ttyS0 root=/dev/vda",
            Some(0xbf00_0000..0xbf12_3456),
            7,
            VIRTIO_SLOTS_MAX,
            EXTENSIONS,
        )
        .expect("a tree")
    }

    /// The tree as text, for review: a node or property a line.
    fn render(blob: &[u8]) -> String {
        let cell = |at: usize| u32::from_be_bytes(blob[at..at + 4].try_into().expect("a cell"));
        let text = |at: usize| {
            let bytes = blob[at..].split(|&byte| byte == 0).next().expect("text");
            std::str::from_utf8(bytes).expect("text")
        };
        let (mut at, strings) = (cell(8) as usize, cell(12) as usize);
        let (mut lines, mut depth) = (String::new(), 0);
        loop {
            let token = cell(at);
            at += 4;
            let indent = "  ".repeat(depth);
            match token {
                1 => {
                    let name = text(at);
                    lines.push_str(&format!("{indent}{name}/\n"));
                    at += name.len() + 1;
                    depth += 1;
                }
                2 => depth -= 1,
                3 => {
                    let length = cell(at) as usize;
                    let name = text(strings + cell(at + 4) as usize);
                    let value = &blob[at + 8..at + 8 + length];
                    lines.push_str(&format!("{indent}{name} ={}\n", render_value(value)));
                    at += 8 + length;
                }
                9 => return lines,
                other => panic!("token {other} at {at:#x}"),
            }
            at = at.next_multiple_of(4);
        }
    }

    fn render_value(value: &[u8]) -> String {
        let printable = |&byte: &u8| byte == 0 || (b' '..=b'~').contains(&byte);
        let is_text = value.len() > 1 && value[0] != 0 && value.ends_with(b"\0") && value.iter().all(printable);
        if is_text {
            return format!(" {:?}", String::from_utf8_lossy(&value[..value.len() - 1]));
        }
        value.chunks(4).map(|cell| cell.iter().fold(" ".to_owned(), |text, byte| format!("{text}{byte:02x}"))).collect()
    }

    #[test]
    fn the_tree_of_two_harts() {
        insta::assert_snapshot!(render(&tree(2)));
    }

    /// The device tree compiler's own checks, where it is installed.
    #[test]
    fn the_compiler_has_no_complaint() {
        for harts in [1, 2, 64] {
            let compiler = Command::new("dtc")
                .args(["-I", "dtb", "-O", "dtb", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let Ok(mut compiler) = compiler else {
                eprintln!("there is no dtc here: not checked");
                return;
            };
            let blob = tree(harts);
            let mut input = compiler.stdin.take().expect("a pipe");
            let writer = std::thread::spawn({
                let blob = blob.clone();
                move || input.write_all(&blob)
            });
            let output = compiler.wait_with_output().expect("the compiler ends");
            writer.join().expect("the writer ends").expect("the compiler reads");
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{harts} harts");
            assert_eq!(render(&output.stdout), render(&blob), "{harts} harts");
        }
    }

    #[test]
    fn equal_arguments_give_equal_bytes_and_the_seed_counts() {
        assert_eq!(tree(4), tree(4));
        let seeded = |seed| build(&board(1), "", None, seed, 0, EXTENSIONS).expect("a tree");
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1), seeded(2));
    }

    #[test]
    fn a_tree_of_64_harts_fits_its_place() {
        assert!(tree(64).len() < crate::loader::DEVICE_TREE_BYTES_MAX as usize / 8);
    }

    #[test]
    fn what_a_tree_cannot_hold_is_refused() {
        let refuse =
            |board: &Board, bootargs: &str, initrd, slots| match build(board, bootargs, initrd, 0, slots, EXTENSIONS) {
                Ok(_) => panic!("accepted"),
                Err(error) => error.to_string(),
            };
        let lines = [
            refuse(&board(1), &"x".repeat(1024), None, 0),
            refuse(&board(1), "quiet\0", None, 0),
            refuse(&board(1), "", None, 9),
            refuse(&board(65), "", None, 0),
            refuse(&board(1), "", Some(0x9000_0000..0x9000_0000), 0),
        ];
        insta::assert_snapshot!(lines.join("\n"));
        build(&board(1), &"x".repeat(1023), None, 0, 0, EXTENSIONS).expect("the longest");
    }

    /// Where the header says that the tree ends, and where its last block does.
    fn total_and_used_bytes(blob: &[u8]) -> (usize, usize) {
        let cell = |at: usize| u32::from_be_bytes(blob[at..at + 4].try_into().expect("a cell")) as usize;
        let (structure, strings) = (cell(8) + cell(36), cell(12) + cell(32));
        (cell(TOTAL_SIZE_OFFSET), structure.max(strings))
    }

    proptest! {
        #[test]
        fn the_end_of_a_tree_is_free(bootargs in "[a-z =]{0,1023}", harts in 1..65usize, slots in 0..=VIRTIO_SLOTS_MAX) {
            let blob = build(&board(harts), &bootargs, None, 1, slots, EXTENSIONS).expect("a tree");
            let (total, used) = total_and_used_bytes(&blob);
            prop_assert_eq!(total, blob.len());
            prop_assert!(used + FREE_BYTES <= total);
            prop_assert!(blob[used..].iter().all(|&byte| byte == 0));
        }

        #[test]
        fn any_command_line_is_answered(bootargs in "\\PC{0,200}|[\\x00-\\x7f]{0,40}", seed: u64) {
            let result = build(&board(1), &bootargs, None, seed, 1, EXTENSIONS);
            prop_assert_eq!(result.is_err(), bootargs.contains('\0'));
        }
    }
}

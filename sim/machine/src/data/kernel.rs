//! Reads the data structures of a Linux kernel in the guest's memory.

use super::per_cpu::PerCpu;
use crate::symbols::SymbolTable;
use crate::types::{Field, Types};
use concord_mem::ram::{PAGE_BYTES, Ram};
use concord_mem::translation::{Context, peek};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Symbols that the look-up begins at.
pub(super) const ROOTS: &[&str] = &[
    PAGE_TABLE,
    "mem_map",
    "phys_ram_base",
    "init_task",
    "nr_cpu_ids",
    "pcpu_unit_size",
    "__per_cpu_offset",
    "__per_cpu_start",
    "__per_cpu_end",
];

/// The page table of the kernel itself.
const PAGE_TABLE: &str = "swapper_pg_dir";

/// Bits of `satp` above the number of the page table's page.
const SATP_MODE: u64 = 0xf << 60;

/// A kernel with its types.
pub(super) struct Kernel<'a> {
    ram: &'a Ram,
    pub types: &'a Types,
    context: Context,
    pub per_cpu: Vec<PerCpu>,
    /// Names of tasks by the physical addresses of their stacks' pages, found when first asked for.
    pub stacks: OnceCell<BTreeMap<u64, String>>,
}

impl<'a> Kernel<'a> {
    /// The kernel in a memory. `satps` are those of the harts, one of which must say how addresses are translated.
    pub fn new(ram: &'a Ram, types: &'a Types, satps: impl IntoIterator<Item = u64>) -> Option<Kernel<'a>> {
        let mode = satps.into_iter().map(|satp| satp & SATP_MODE).find(|mode| *mode != 0)?;
        let table = SymbolTable::physical_address_of_linux(types.root(PAGE_TABLE)?)?;
        let context = Context { satp: mode | (table / PAGE_BYTES), ..Context::default() };
        let mut kernel = Kernel { ram, types, context, per_cpu: Vec::new(), stacks: OnceCell::new() };
        kernel.per_cpu = kernel.per_cpu_areas().unwrap_or_default();
        Some(kernel)
    }

    /// The physical address of an address of the kernel's, if it lies in memory.
    pub fn physical(&self, address: u64) -> Option<u64> {
        let physical = peek(self.ram, &self.context, address)? | (address % PAGE_BYTES);
        self.ram.contains(physical, 1).then_some(physical)
    }

    /// A number of 1, 2, 4 or 8 bytes at an address of the kernel's.
    pub fn read(&self, address: u64, size_bytes: u64) -> Option<u64> {
        let physical = self.physical(address)?;
        let is_whole = matches!(size_bytes, 1 | 2 | 4 | 8) && address.is_multiple_of(size_bytes);
        (is_whole && self.ram.contains(physical, size_bytes)).then(|| self.ram.read(physical, size_bytes))
    }

    /// The number in a member of a structure that begins at an address.
    pub fn read_field(&self, address: u64, structure: &str, member: &str) -> Option<u64> {
        let Field { offset_bytes, size_bytes } = self.types.field(structure, member)?;
        self.read(address.wrapping_add(offset_bytes), size_bytes)
    }

    /// The value of a variable among [`ROOTS`].
    pub fn read_root(&self, name: &str, size_bytes: u64) -> Option<u64> {
        self.read(self.types.root(name)?, size_bytes)
    }

    /// A printable text of at most `bytes_max` bytes before its zero.
    pub fn read_text(&self, address: u64, bytes_max: u64) -> Option<String> {
        let mut text = String::new();
        for index in 0..=bytes_max {
            match self.read(address.wrapping_add(index), 1)? as u8 {
                0 => return (!text.is_empty()).then_some(text),
                byte if byte == b' ' || byte.is_ascii_graphic() => text.push(char::from(byte)),
                _ => return None,
            }
        }
        None
    }

    /// The bytes of the guest's memory.
    pub fn memory_bytes(&self) -> u64 {
        self.ram.size_bytes()
    }
}

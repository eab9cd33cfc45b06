//! Symbols of a guest program by address: which function a program counter is in, and which object data belong to.

mod kallsyms;

use crate::input;
use crate::loader::{LINUX_OFFSET_BYTES, MEMORY_BASE};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// Why there are no symbols.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    #[error("{}: cannot read the symbol file: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: not a line of System.map: {text:?}", path.display())]
    Line { path: PathBuf, line: usize, text: String },
    #[error("{}: cannot read the ELF symbols: {source}", path.display())]
    Elf { path: PathBuf, source: object::Error },
    #[error("{}: there is no text symbol in it", path.display())]
    Empty { path: PathBuf },
}

/// The longest symbol file. A choice: no `vmlinux` with all its debugging information comes near.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Address that the first byte of a RISC-V 64 Linux is linked for (`KERNEL_LINK_ADDR`).
const LINUX_LINK_ADDRESS: u64 = 0xffff_ffff_8000_0000;

/// Symbols of text and of data that are written to, each ordered by address, one at each address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolTable {
    entries: Vec<Entry>,
    data: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    start: u64,
    /// First address that no longer belongs to the symbol.
    end: u64,
    name: Box<str>,
}

/// A symbol as a file has it, before one is chosen for each address.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    address: u64,
    name: String,
    /// Of several at one address the greatest is kept: a function before a label, a global
    /// before a weak before a local symbol, and any of them before the mark of a section.
    rank: u8,
}

/// What a file has, in any order.
#[derive(Debug, Default)]
struct Symbols {
    text: Vec<Candidate>,
    data: Vec<Candidate>,
    /// Addresses that nothing before them reaches.
    limits: Vec<u64>,
    /// The end of the whole program is among the limits. A Linux that keeps names of text alone leaves it out
    /// (`CONFIG_KALLSYMS_ALL`), and what it still has of data is too little to tell objects by.
    has_end: bool,
}

impl SymbolTable {
    /// The function that holds `address`, and how far into it. Where several symbols share an
    /// address the choice depends only on the symbols, never on their order in the file.
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        find(&self.entries, address)
    }

    /// The object at an address as the guest's data accesses have it, and how far into it.
    pub fn lookup_data(&self, address: u64) -> Option<(&str, u64)> {
        find(&self.data, address)
    }

    /// The object at a physical address: of a program that runs untranslated, or of a Linux kernel, which lies in memory as it is
    /// linked.
    pub fn lookup_physical_data(&self, address: u64) -> Option<(&str, u64)> {
        self.lookup_data(self.linked_address_of_data(address)?)
    }

    /// The address that the object at a physical address was linked for; none where there is no object.
    pub fn linked_address_of_data(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(MEMORY_BASE + LINUX_OFFSET_BYTES);
        let linux = offset.and_then(|offset| offset.checked_add(LINUX_LINK_ADDRESS));
        [Some(address), linux].into_iter().flatten().find(|linked| self.lookup_data(*linked).is_some())
    }

    /// The physical address of what a Linux kernel was linked with at an address.
    pub(crate) fn physical_address_of_linux(linked: u64) -> Option<u64> {
        linked.checked_sub(LINUX_LINK_ADDRESS)?.checked_add(MEMORY_BASE + LINUX_OFFSET_BYTES)
    }

    /// Number of text symbols.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no text symbol, which no constructor returns.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// From a file: an ELF file such as `vmlinux`, or the text of `System.map`.
    ///
    /// # Errors
    /// [`SymbolsError`] names the file and, in a text, the line.
    pub fn from_file(path: &Path) -> Result<Self, SymbolsError> {
        let bytes =
            input::read(path, FILE_BYTES_MAX).map_err(|source| SymbolsError::Read { path: path.to_owned(), source })?;
        if bytes.starts_with(b"\x7fELF") {
            Self::from_elf(&bytes, path)
        } else {
            Self::from_system_map(&String::from_utf8_lossy(&bytes), path)
        }
    }

    /// From the symbol table of a 64-bit little-endian ELF file; `path` is for errors.
    ///
    /// # Errors
    /// [`SymbolsError::Elf`] where the file is damaged, [`SymbolsError::Empty`] where it is
    /// stripped.
    pub fn from_elf(bytes: &[u8], path: &Path) -> Result<Self, SymbolsError> {
        let file = ElfFile64::<LittleEndian, _>::parse(bytes)
            .map_err(|source| SymbolsError::Elf { path: path.to_owned(), source })?;
        let (mut text, mut data) = (Vec::new(), Vec::new());
        // A function ends at the latest where its section does, not where the next section's
        // first symbol starts.
        let mut limits = Vec::new();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            limits.push(section.address().saturating_add(section.size()));
        }
        for symbol in file.symbols() {
            let function = symbol.kind() == SymbolKind::Text;
            let label = symbol.kind() == SymbolKind::Unknown || symbol.kind() == SymbolKind::Label;
            // A label at a section's end is in no section, whatever the linker says.
            let section = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
                .filter(|section| symbol.address().wrapping_sub(section.address()) < section.size())
                .map(|section| section.kind());
            let is_text = (function || label) && section == Some(SectionKind::Text);
            // Labels in data are marks of linker scripts, without a size.
            let is_data = symbol.kind() == SymbolKind::Data
                && symbol.size() != 0
                && matches!(section, Some(SectionKind::Data | SectionKind::UninitializedData));
            let Ok(name) = symbol.name() else { continue };
            if !(is_text || is_data) || !is_plain_name(name) {
                continue;
            }
            let binding = match (symbol.is_global(), symbol.is_weak()) {
                (true, false) => 2,
                (true, true) => 1,
                _ => 0,
            };
            let rank = binding + if function { 3 } else { 0 };
            let candidate = Candidate { address: symbol.address(), name: name.to_owned(), rank };
            if is_text {
                text.push(candidate);
            } else {
                limits.push(symbol.address().saturating_add(symbol.size()));
                data.push(candidate);
            }
        }
        let symbols = Symbols { text, data, limits, has_end: true };
        Self::choose(symbols).ok_or_else(|| SymbolsError::Empty { path: path.to_owned() })
    }

    /// From the text that `nm -n` makes of a kernel; `path` is for errors.
    ///
    /// # Errors
    /// [`SymbolsError::Line`] for a line that is not an address, a type and a name;
    /// [`SymbolsError::Empty`] where no line is a text symbol.
    pub fn from_system_map(map: &str, path: &Path) -> Result<Self, SymbolsError> {
        let mut symbols = Symbols::default();
        for (index, line) in map.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (address, kind, name) = system_map_line(line).ok_or_else(|| SymbolsError::Line {
                path: path.to_owned(),
                line: index + 1,
                text: line.chars().take(80).collect(),
            })?;
            classify(&mut symbols, address, kind, name);
        }
        Self::choose(symbols).ok_or_else(|| SymbolsError::Empty { path: path.to_owned() })
    }

    /// From the symbol table that a Linux kernel of 6.4 or later carries for itself, in the bytes
    /// of its unpacked Image. None where there is no such table.
    pub fn from_kallsyms(image: &[u8]) -> Option<Self> {
        Self::choose(kallsyms::read(image)?)
    }

    fn choose(symbols: Symbols) -> Option<Self> {
        let Symbols { text, mut data, mut limits, has_end } = symbols;
        if !has_end {
            data.clear();
        }
        limits.sort_unstable();
        let entries = choose(text, &limits);
        // Data end at functions too, where a text lies between them and their file does not say how long they are.
        limits.extend(entries.iter().map(|entry| entry.start));
        limits.sort_unstable();
        let data = choose(data, &limits);
        (!entries.is_empty()).then_some(Self { entries, data })
    }
}

/// The entry that holds `address`, and how far into it.
fn find(entries: &[Entry], address: u64) -> Option<(&str, u64)> {
    let after = entries.partition_point(|entry| entry.start <= address);
    let entry = entries.get(after.checked_sub(1)?)?;
    (address < entry.end).then(|| (&*entry.name, address - entry.start))
}

/// One symbol for each address, each ending where the next one starts or at the next limit; the limits are in order.
fn choose(mut candidates: Vec<Candidate>, limits: &[u64]) -> Vec<Entry> {
    candidates.sort_by(|a, b| (a.address, b.rank, &a.name).cmp(&(b.address, a.rank, &b.name)));
    candidates.dedup_by_key(|candidate| candidate.address);
    let next: Vec<u64> = candidates.iter().skip(1).map(|candidate| candidate.address).chain([u64::MAX]).collect();
    let entry = |(candidate, next): (Candidate, u64)| {
        let after = limits.partition_point(|&limit| limit <= candidate.address);
        let end = limits.get(after).map_or(next, |&limit| limit.min(next));
        Entry { start: candidate.address, end, name: candidate.name.into() }
    };
    candidates.into_iter().zip(next).map(entry).collect()
}

/// Labels that a Linux linker script puts behind text, where there is none.
const TEXT_ENDS: &[&str] = &["_etext", "_einittext"];

/// The label that it puts behind everything.
const END: &str = "_end";

/// Other labels that it puts between objects of data (`include/asm-generic/vmlinux.lds.h`).
const DATA_MARKS: &[&str] = &[
    "_sdata",
    "_edata",
    "__bss_start",
    "__bss_stop",
    "__global_pointer$",
    "__init_data_begin",
    "__init_data_end",
    "__per_cpu_load",
    "__per_cpu_start",
    "__per_cpu_end",
];

/// Whether a symbol marks a place between objects: it names none, and the object before it ends there.
fn is_data_mark(name: &str) -> bool {
    name == END || DATA_MARKS.contains(&name) || name.starts_with("__start_") || name.starts_with("__stop_")
}

/// Sorts in a symbol with a type letter of `nm`.
fn classify(symbols: &mut Symbols, address: u64, kind: char, name: &str) {
    let rank = match kind {
        // Linux's linker script marks where parts of the text begin and end, some with the first function's address.
        'T' if name.starts_with("__") && (name.ends_with("_text_start") || name.ends_with("_text_end")) => 0,
        'T' => 3,
        'W' | 'w' => 2,
        't' => 1,
        // An absolute or undefined symbol has no address in memory.
        'A' | 'a' | 'U' => return,
        'D' | 'd' | 'B' | 'b' if is_data_mark(name) => {
            symbols.has_end |= name == END;
            return symbols.limits.push(address);
        }
        'D' | 'd' | 'B' | 'b' if is_plain_name(name) => {
            let rank = u8::from(kind.is_ascii_uppercase());
            symbols.data.push(Candidate { address, name: name.to_owned(), rank });
            return symbols.limits.push(address);
        }
        _ => return symbols.limits.push(address),
    };
    if TEXT_ENDS.contains(&name) {
        symbols.limits.push(address);
    } else if is_plain_name(name) {
        symbols.text.push(Candidate { address, name: name.to_owned(), rank });
    }
}

/// Leaves out the assembler's local labels, which Linux may prefix, and the mapping symbols that mark code and data
/// (`$x`, `$d`; RISC-V ELF psABI).
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.contains(".L")
}

fn system_map_line(line: &str) -> Option<(u64, char, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut kind = words.next()?.chars();
    let (letter, None) = (kind.next()?, kind.next()) else { return None };
    // A module's name in brackets may follow.
    let name = words.next()?;
    letter.is_ascii_alphabetic().then_some((address, letter, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAP: &str = "\
0000000000000008 A an_absolute
ffffffff80000000 T _start
ffffffff80000000 t local_twin
ffffffff80000000 T _text
ffffffff80000010 t $x
ffffffff80000040 W weak
ffffffff80000040 t strong_local
ffffffff80000080 T __noinstr_text_start
ffffffff80000080 T last
ffffffff80000100 R rodata
ffffffff80000200 D data
ffffffff80000300 t in_init_text
ffffffff80000400 D table
ffffffff80000500 D __stop_table
ffffffff80000600 B counter
ffffffff80000700 B __bss_stop
ffffffff80000700 B _end
";

    fn map(text: &str) -> Result<SymbolTable, SymbolsError> {
        SymbolTable::from_system_map(text, Path::new("System.map"))
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let symbols = map(MAP).expect("symbols");
        for (address, expected) in [
            (0x8, None),
            (0xffff_ffff_7fff_ffff, None),
            (0xffff_ffff_8000_0000, Some(("_start", 0))),
            (0xffff_ffff_8000_0010, Some(("_start", 0x10))),
            (0xffff_ffff_8000_0044, Some(("weak", 4))),
            (0xffff_ffff_8000_00ff, Some(("last", 0x7f))),
            (0xffff_ffff_8000_0100, None),
            (0xffff_ffff_8000_0250, None),
            (0xffff_ffff_8000_0300, Some(("in_init_text", 0))),
            (0xffff_ffff_8000_0400, None),
        ] {
            assert_eq!(symbols.lookup(address), expected, "{address:#x}");
        }
        assert_eq!(symbols.len(), 4);
    }

    #[test]
    fn an_address_belongs_to_the_object_before_it_where_linux_was_linked_and_where_it_lies() {
        let symbols = map(MAP).expect("symbols");
        for (offset, expected) in [
            (0x44, None),
            (0x100, None),
            (0x1ff, None),
            (0x200, Some(("data", 0))),
            (0x2ff, Some(("data", 0xff))),
            (0x300, None),
            (0x4ff, Some(("table", 0xff))),
            (0x500, None),
            (0x5ff, None),
            (0x6ff, Some(("counter", 0xff))),
            (0x700, None),
            (0x3e95_0000, None),
        ] {
            assert_eq!(symbols.lookup_data(LINUX_LINK_ADDRESS + offset), expected, "{offset:#x}");
            assert_eq!(symbols.lookup_physical_data(0x8020_0000 + offset), expected, "{offset:#x}");
        }
        assert_eq!(symbols.lookup_physical_data(0x200), None);
    }

    #[test]
    fn data_have_no_names_where_only_those_of_text_were_kept() {
        let symbols = map(MAP.split_inclusive('\n').filter(|line| !line.contains("_end")).collect::<String>().as_str());
        let symbols = symbols.expect("symbols");
        assert_eq!(symbols.lookup(LINUX_LINK_ADDRESS), Some(("_start", 0)));
        for offset in [0x200, 0x400, 0x600, 0x3e95_0000] {
            assert_eq!(symbols.lookup_data(LINUX_LINK_ADDRESS + offset), None, "{offset:#x}");
        }
    }

    #[test]
    fn the_order_of_the_file_does_not_matter() {
        let mut lines: Vec<&str> = MAP.lines().collect();
        let symbols = map(MAP).expect("symbols");
        for _ in 0..lines.len() {
            lines.rotate_left(1);
            assert_eq!(map(&lines.join("\n")).expect("symbols"), symbols);
        }
    }

    /// An ELF file with 256 bytes of text at 0x8000_0000, 16 of data behind it, and these symbols:
    /// name, address, type and binding, section (1 text, 2 data).
    fn elf(symbols: &[(&str, u64, u8, u16)]) -> Vec<u8> {
        let (mut names, mut table) = (vec![0], vec![0; 24]);
        for &(name, address, info, section) in symbols {
            table.extend((names.len() as u32).to_le_bytes());
            table.extend([info, 0]);
            table.extend(section.to_le_bytes());
            table.extend(address.to_le_bytes());
            let size_bytes: u64 = if info & 15 == OBJECT { 8 } else { 0 };
            table.extend(size_bytes.to_le_bytes());
            names.extend(name.as_bytes());
            names.push(0);
        }
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        // Type, machine, version; then, from byte 52, the sizes and counts of the tables.
        file[16..24].copy_from_slice(&[2, 0, 243, 0, 1, 0, 0, 0]);
        file[52..64].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0, 5, 0, 4, 0]);
        let table_at = file.len() as u64;
        file.extend(&table);
        let names_at = file.len() as u64;
        file.extend(&names);
        file.resize(file.len().next_multiple_of(8), 0);
        let sections_at = file.len() as u64;
        file[40..48].copy_from_slice(&sections_at.to_le_bytes());
        // Name, type, flags, address, offset, size, link, information, alignment, entry size.
        for [kind, flags, address, offset, size, link, entry] in [
            [0, 0, 0, 0, 0, 0, 0],
            [1, 6, 0x8000_0000, 0, 0x100, 0, 0],
            [1, 3, 0x8000_0100, 0, 0x10, 0, 0],
            [2, 0, 0, table_at, table.len() as u64, 4, 24],
            [3, 0, 0, names_at, names.len() as u64, 0, 0],
        ] {
            file.extend(0u32.to_le_bytes());
            file.extend((kind as u32).to_le_bytes());
            file.extend([flags, address, offset, size].map(u64::to_le_bytes).concat());
            file.extend((link as u32).to_le_bytes());
            file.extend(1u32.to_le_bytes());
            file.extend([8, entry].map(u64::to_le_bytes).concat());
        }
        file
    }

    const LABEL: u8 = 0;
    const OBJECT: u8 = 1;
    const FUNCTION: u8 = 2;
    const GLOBAL: u8 = 1 << 4;
    const WEAK: u8 = 2 << 4;

    #[test]
    fn an_elf_file_names_functions_before_labels_and_global_before_local() {
        let file = elf(&[
            ("label", 0x8000_0000, GLOBAL | LABEL, 1),
            ("local", 0x8000_0000, FUNCTION, 1),
            ("weak", 0x8000_0010, WEAK | FUNCTION, 1),
            ("other_local", 0x8000_0010, FUNCTION, 1),
            ("global_b", 0x8000_0020, GLOBAL | FUNCTION, 1),
            ("global_a", 0x8000_0020, GLOBAL | FUNCTION, 1),
            ("weak_too", 0x8000_0020, WEAK | FUNCTION, 1),
            ("$x", 0x8000_0030, LABEL, 1),
            (".L1", 0x8000_0030, LABEL, 1),
            ("table_in_text", 0x8000_0030, OBJECT, 1),
            ("only_a_label", 0x8000_0080, LABEL, 1),
            ("end_of_text", 0x8000_0100, GLOBAL | LABEL, 1),
            ("data", 0x8000_0100, GLOBAL | OBJECT, 2),
            ("label_in_data", 0x8000_0104, GLOBAL | LABEL, 2),
            ("end_of_data", 0x8000_0110, GLOBAL | OBJECT, 2),
            ("elsewhere", 0x8000_0090, GLOBAL | LABEL, 0),
        ]);
        let symbols = SymbolTable::from_elf(&file, Path::new("vmlinux")).expect("symbols");
        for (address, expected) in [
            (0x7fff_ffff, None),
            (0x8000_0004, Some(("local", 4))),
            (0x8000_0010, Some(("weak", 0))),
            (0x8000_0034, Some(("global_a", 0x14))),
            (0x8000_00ff, Some(("only_a_label", 0x7f))),
            (0x8000_0100, None),
            (0x8000_0108, None),
        ] {
            assert_eq!(symbols.lookup(address), expected, "{address:#x}");
        }
        assert_eq!(symbols.len(), 4);
        for (address, expected) in [
            (0x8000_0030, None),
            (0x8000_00ff, None),
            (0x8000_0100, Some(("data", 0))),
            (0x8000_0107, Some(("data", 7))),
            (0x8000_0108, None),
            (0x8000_0110, None),
        ] {
            assert_eq!(symbols.lookup_data(address), expected, "{address:#x}");
            assert_eq!(symbols.lookup_physical_data(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn a_stripped_elf_file_has_no_symbols() {
        let error = SymbolTable::from_elf(&elf(&[]), Path::new("vmlinux")).expect_err("stripped");
        insta::assert_snapshot!(error, @"vmlinux: there is no text symbol in it");
    }

    #[test]
    fn what_has_no_symbols_says_so() {
        let mut lines = String::new();
        for result in [
            map(""),
            map("ffffffff80000200 D data\n"),
            map("ffffffff80000000 T _start\nffffffff8000000g T x\n"),
            map("ffffffff80000000 TT _start\n"),
            map("ffffffff80000000 T\n"),
            SymbolTable::from_elf(b"\x7fELF", Path::new("vmlinux")),
            SymbolTable::from_file(Path::new("no/such/System.map")),
        ] {
            match result {
                Ok(symbols) => panic!("accepted {symbols:?}"),
                Err(error) => lines.push_str(&format!("{error}\n")),
            }
        }
        insta::assert_snapshot!(lines);
    }

    proptest! {
        #[test]
        fn any_map_is_answered(text in "([0-9a-f]{1,17} [a-zA-Z] [$._a-z]{1,4}\n|\\PC{0,20}\n){0,6}") {
            let _ = map(&text);
        }

        #[test]
        fn a_mutated_elf_file_is_answered(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut file = elf(&[("f", 0x8000_0000, FUNCTION, 1), ("g", 0x8000_0040, FUNCTION, 1)]);
            for (at, value) in changes {
                let at = at.index(file.len());
                file[at] = value;
            }
            let _ = SymbolTable::from_elf(&file, Path::new("vmlinux"));
            file.truncate(cut.index(file.len()));
            let _ = SymbolTable::from_elf(&file, Path::new("vmlinux"));
        }

        #[test]
        fn each_lookup_agrees_with_a_walk(
            addresses in proptest::collection::vec(0u64..64, 1..12),
            limits in proptest::collection::vec(0u64..64, 0..4),
            at in 0u64..80,
        ) {
            let text = addresses
                .iter()
                .enumerate()
                .map(|(index, &address)| Candidate { address, name: format!("f{index}"), rank: 0 })
                .collect();
            let symbols = SymbolTable::choose(Symbols { text, limits: limits.clone(), ..Symbols::default() }).expect("symbols");
            let start = addresses.iter().copied().filter(|&address| address <= at).max();
            let cut = |start| limits.iter().any(|&limit| limit > start && limit <= at);
            let expected = start.filter(|&start| !cut(start)).map(|start| {
                let first = addresses
                    .iter()
                    .enumerate()
                    .filter(|&(_, &address)| address == start)
                    .map(|(index, _)| format!("f{index}"))
                    .min()
                    .expect("one");
                (first, at - start)
            });
            let found = symbols.lookup(at).map(|(name, offset)| (name.to_owned(), offset));
            prop_assert_eq!(found, expected);
        }
    }
}

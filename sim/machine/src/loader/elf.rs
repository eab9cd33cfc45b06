//! ELF kernels: segments at their physical addresses (System V ABI; RISC-V ELF psABI).

use std::ops::Range;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, U64};

use super::{FileError, Kernel, MEMORY_BASE, Memory};
use crate::symbols::SymbolTable;

/// Where a Linux kernel that is linked for physical address 0 goes: the place that its Image
/// asks for.
pub(crate) const LINUX_OFFSET_BYTES: u64 = 2 << 20;

/// Start of the upper half of the address space, where kernels run.
const UPPER_HALF: u64 = 1 << 63;

const HEADER: &str = "ELF header";

struct Segment {
    /// Position in the program header table, for messages.
    index: usize,
    file: Range<usize>,
    virtual_start: u64,
    physical_start: u64,
    memory_bytes: u64,
}

pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

pub(super) fn load(memory: &Memory<'_>, path: &Path, bytes: &[u8]) -> Result<Kernel, FileError> {
    check_identity(bytes)?;
    let header = FileHeader64::<LittleEndian>::parse(bytes)
        .map_err(|error| FileError::Header { header: HEADER, reason: error.to_string() })?;
    let kind = header.e_type(LittleEndian);
    if kind != elf::ET_EXEC {
        let what = match kind {
            elf::ET_REL => "a relocatable object: link it first",
            elf::ET_DYN => "position-independent: link it with -no-pie, or use the Image of a relocatable Linux",
            elf::ET_CORE => "a core dump",
            _ => "an ELF file that is not executable",
        };
        return Err(FileError::Foreign { what: what.to_owned() });
    }
    let mut segments = segments(bytes, header)?;
    let entry = header.e_entry(LittleEndian);
    place_linux(&mut segments, entry);
    let ranges = ranges(memory, &segments)?;
    let entry = physical_entry(&segments, entry)?;
    for segment in &segments {
        // `segments` has checked the range against the file.
        memory.write(segment.physical_start, &bytes[segment.file.clone()])?;
    }
    let start = ranges.iter().map(|range| range.start).min();
    let end = ranges.iter().map(|range| range.end).max();
    let range = start.zip(end).map(|(start, end)| start..end).ok_or(FileError::NoSegment)?;
    // A stripped kernel runs as well; damage in a part that is only for the reader does not stop it.
    let symbols = SymbolTable::from_elf(bytes, path).ok();
    Ok(Kernel { entry, range, symbols })
}

/// Class, byte order and machine, before anything that depends on them is read.
fn check_identity(bytes: &[u8]) -> Result<(), FileError> {
    let actual_bytes = bytes.len() as u64;
    let expected_bytes = size_of::<FileHeader64<LittleEndian>>() as u64;
    let truncated = || FileError::Truncated { header: HEADER, expected_bytes, actual_bytes };
    let &[.., class, data] = bytes.get(..6).ok_or_else(truncated)? else {
        return Err(truncated());
    };
    let machine: [u8; 2] = bytes.get(18..20).and_then(|field| field.try_into().ok()).ok_or_else(truncated)?;
    let machine = if data == elf::ELFDATA2MSB.0 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    let bits = match class {
        c if c == elf::ELFCLASS32.0 => "32-bit",
        c if c == elf::ELFCLASS64.0 => "64-bit",
        _ => return Err(FileError::Header { header: HEADER, reason: format!("class {class} is unknown") }),
    };
    let order = match data {
        d if d == elf::ELFDATA2LSB.0 => "little-endian",
        d if d == elf::ELFDATA2MSB.0 => "big-endian",
        _ => return Err(FileError::Header { header: HEADER, reason: format!("byte order {data} is unknown") }),
    };
    if machine != elf::EM_RISCV.0 || class != elf::ELFCLASS64.0 || data != elf::ELFDATA2LSB.0 {
        let what = format!("a {bits} {order} ELF file for {}", machine_name(machine));
        return Err(FileError::Foreign { what });
    }
    if actual_bytes < expected_bytes { Err(truncated()) } else { Ok(()) }
}

fn machine_name(machine: u16) -> String {
    match elf::Machine(machine) {
        elf::EM_RISCV => "RISC-V".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_386 => "x86".to_owned(),
        elf::EM_AARCH64 => "arm64".to_owned(),
        elf::EM_ARM => "32-bit Arm".to_owned(),
        elf::EM_PPC64 => "64-bit PowerPC".to_owned(),
        elf::EM_S390 => "s390".to_owned(),
        elf::EM_MIPS => "MIPS".to_owned(),
        elf::EM_LOONGARCH => "LoongArch".to_owned(),
        _ => format!("ELF machine {machine}"),
    }
}

/// The segments that occupy memory, each checked against the file's length.
fn segments(bytes: &[u8], header: &FileHeader64<LittleEndian>) -> Result<Vec<Segment>, FileError> {
    let actual_bytes = bytes.len() as u64;
    let table_end = u128::from(header.e_phoff(LittleEndian))
        + u128::from(header.e_phnum(LittleEndian)) * u128::from(header.e_phentsize(LittleEndian));
    if table_end > u128::from(actual_bytes) {
        let expected_bytes = u64::try_from(table_end).unwrap_or(u64::MAX);
        return Err(FileError::Truncated { header: HEADER, expected_bytes, actual_bytes });
    }
    let table = header
        .program_headers(LittleEndian, bytes)
        .map_err(|error| FileError::Header { header: HEADER, reason: error.to_string() })?;
    let value = |field: U64<LittleEndian>| field.get(LittleEndian);
    let mut segments = Vec::new();
    for (index, program) in table.iter().enumerate() {
        let memory_bytes = value(program.p_memsz);
        if program.p_type(LittleEndian) != elf::PT_LOAD || memory_bytes == 0 {
            continue;
        }
        let (offset, file_bytes) = (value(program.p_offset), value(program.p_filesz));
        if file_bytes > memory_bytes {
            let reason = format!("segment {index} has {file_bytes} bytes in the file but {memory_bytes} in memory");
            return Err(FileError::Header { header: "program header", reason });
        }
        let end = offset.checked_add(file_bytes).filter(|&end| end <= actual_bytes);
        let file = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        let Some(file) = file else {
            let expected_bytes = offset.saturating_add(file_bytes);
            return Err(FileError::Truncated { header: "program header", expected_bytes, actual_bytes });
        };
        let (virtual_start, physical_start) = (value(program.p_vaddr), value(program.p_paddr));
        segments.push(Segment { index, file, virtual_start, physical_start, memory_bytes });
    }
    if segments.is_empty() { Err(FileError::NoSegment) } else { Ok(segments) }
}

/// A RISC-V `vmlinux` is linked for physical address 0 and runs wherever it is put; it goes where
/// its Image would. Nothing else has its entry in the upper half and its memory below RAM.
fn place_linux(segments: &mut [Segment], entry: u64) {
    let below = |segment: &Segment| {
        segment.physical_start.checked_add(segment.memory_bytes).is_some_and(|end| end <= MEMORY_BASE)
    };
    if entry >= UPPER_HALF && segments.iter().all(below) {
        for segment in segments {
            segment.physical_start += MEMORY_BASE + LINUX_OFFSET_BYTES;
        }
    }
}

/// Where the segments go, if they fit and do not overlap.
fn ranges(memory: &Memory<'_>, segments: &[Segment]) -> Result<Vec<Range<u64>>, FileError> {
    let mut ranges: Vec<(usize, Range<u64>)> = Vec::new();
    for segment in segments {
        let what = format!("segment {}", segment.index);
        ranges.push((segment.index, memory.range(&what, segment.physical_start, segment.memory_bytes)?));
    }
    ranges.sort_by_key(|(index, range)| (range.start, *index));
    for pair in ranges.windows(2) {
        if let [(first, first_range), (second, second_range)] = pair
            && second_range.start < first_range.end
        {
            return Err(FileError::Overlap {
                first: *first,
                first_range: first_range.clone(),
                second: *second,
                second_range: second_range.clone(),
            });
        }
    }
    Ok(ranges.into_iter().map(|(_, range)| range).collect())
}

/// The entry point is a virtual address; the kernel starts with translation off.
fn physical_entry(segments: &[Segment], entry: u64) -> Result<u64, FileError> {
    if !entry.is_multiple_of(2) {
        return Err(FileError::EntryOdd { entry });
    }
    let within =
        |start: u64, segment: &Segment| entry.checked_sub(start).filter(|&offset| offset < segment.memory_bytes);
    let translated =
        segments.iter().find_map(|segment| Some(segment.physical_start + within(segment.virtual_start, segment)?));
    // Some linker scripts give the entry as a physical address already.
    let physical = || segments.iter().find_map(|segment| within(segment.physical_start, segment)).map(|_| entry);
    let entry_physical = translated.or_else(physical).ok_or(FileError::EntryOutside { entry })?;
    // Segments may start at odd addresses.
    if entry_physical.is_multiple_of(2) {
        Ok(entry_physical)
    } else {
        Err(FileError::EntryOdd { entry: entry_physical })
    }
}

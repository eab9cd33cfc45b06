//! RISC-V Linux Images (`Documentation/arch/riscv/boot-image-header.rst`), with or without an
//! EFI stub.

use super::{FileError, Kernel, MEMORY_BASE, Memory};
use crate::symbols::SymbolTable;

const HEADER_BYTES: u64 = 64;
const TEXT_OFFSET: usize = 8;
const IMAGE_SIZE: usize = 16;
const FLAGS: usize = 24;
const MAGIC: usize = 56;
const PE_OFFSET: usize = 60;

const FLAG_BIG_ENDIAN: u64 = 1;

/// Linux/RISC-V 64 must start on a megapage (`Documentation/arch/riscv/boot.rst`).
const ALIGN_BYTES: u64 = 2 << 20;

const PE_SIGNATURE_BYTES: u64 = 4;
const COFF_HEADER_BYTES: u64 = 20;
const SECTION_HEADER_BYTES: u64 = 40;
const PE_MACHINE_RISCV64: u16 = 0x5064;

fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    let at = usize::try_from(at).ok()?;
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn load(memory: &Memory<'_>, bytes: &[u8]) -> Result<Kernel, FileError> {
    let actual_bytes = bytes.len() as u64;
    if bytes.get(MAGIC..MAGIC + 4) != Some(b"RSC\x05") {
        return Err(unknown(bytes));
    }
    let (Some(text_offset), Some(image_size), Some(flags)) =
        (u64_at(bytes, TEXT_OFFSET), u64_at(bytes, IMAGE_SIZE), u64_at(bytes, FLAGS))
    else {
        return Err(truncated("Image header", HEADER_BYTES, actual_bytes));
    };
    if actual_bytes < HEADER_BYTES {
        return Err(truncated("Image header", HEADER_BYTES, actual_bytes));
    }
    if flags & FLAG_BIG_ENDIAN != 0 {
        return Err(FileError::Foreign { what: "a big-endian RISC-V Linux Image".to_owned() });
    }
    if !text_offset.is_multiple_of(ALIGN_BYTES) {
        let reason = format!("text offset {text_offset:#x} is not a multiple of 2 MiB");
        return Err(FileError::Header { header: "Image header", reason });
    }
    if bytes.starts_with(b"MZ") {
        check_sections(bytes)?;
    } else if actual_bytes < image_size / 2 {
        // The size covers the memory that the kernel clears for itself behind the file's end, a tenth of it
        // in practice. Without an EFI stub nothing else tells how long the file should be.
        return Err(truncated("Image header", image_size, actual_bytes));
    }
    let Some(start) = MEMORY_BASE.checked_add(text_offset) else {
        let reason = format!("text offset {text_offset:#x} is too large");
        return Err(FileError::Header { header: "Image header", reason });
    };
    // Old kernels give no size.
    let range = memory.range("kernel", start, image_size.max(actual_bytes))?;
    memory.write(start, bytes)?;
    Ok(Kernel { entry: start, range, symbols: SymbolTable::from_kallsyms(bytes) })
}

fn truncated(header: &'static str, expected_bytes: u64, actual_bytes: u64) -> FileError {
    FileError::Truncated { header, expected_bytes, actual_bytes }
}

/// Checks the file against the section table of its EFI stub, which has the file's exact length.
fn check_sections(bytes: &[u8]) -> Result<(), FileError> {
    let header = "PE header";
    let actual_bytes = bytes.len() as u64;
    let short = |expected_bytes| truncated(header, expected_bytes, actual_bytes);
    let pe = u64::from(u32_at(bytes, PE_OFFSET as u64).ok_or_else(|| short(HEADER_BYTES))?);
    let coff = pe + PE_SIGNATURE_BYTES;
    let (Some(signature), Some(machine), Some(sections), Some(optional_bytes)) =
        (u32_at(bytes, pe), u16_at(bytes, coff), u16_at(bytes, coff + 2), u16_at(bytes, coff + 16))
    else {
        return Err(short(coff + COFF_HEADER_BYTES));
    };
    if signature != u32::from_le_bytes(*b"PE\0\0") {
        let reason = format!("no \"PE\" at byte {pe}");
        return Err(FileError::Header { header, reason });
    }
    if machine != PE_MACHINE_RISCV64 {
        return Err(FileError::Foreign { what: format!("an EFI application for {}", pe_machine(machine)) });
    }
    let table = coff + COFF_HEADER_BYTES + u64::from(optional_bytes);
    for section in 0..u64::from(sections) {
        let at = table + section * SECTION_HEADER_BYTES;
        let (Some(size), Some(offset)) = (u32_at(bytes, at + 16), u32_at(bytes, at + 20)) else {
            return Err(short(at + SECTION_HEADER_BYTES));
        };
        let end = u64::from(offset) + u64::from(size);
        if end > actual_bytes {
            return Err(short(end));
        }
    }
    Ok(())
}

/// Names a file that is no RISC-V Image as well as can be told.
fn unknown(bytes: &[u8]) -> FileError {
    let foreign = |what: &str| FileError::Foreign { what: what.to_owned() };
    if bytes.get(MAGIC..MAGIC + 4) == Some(b"ARM\x64") {
        return foreign("an arm64 Linux Image");
    }
    // Linux, Documentation/arch/x86/boot.rst.
    if bytes.get(0x202..0x206) == Some(b"HdrS") {
        return foreign("an x86 Linux bzImage");
    }
    if u32_at(bytes, 0x24) == Some(0x016f_2818) {
        return foreign("a 32-bit Arm Linux zImage");
    }
    if u32_at(bytes, 0) == Some(u32::from_be_bytes([0x56, 0x19, 0x05, 0x27])) {
        return foreign("a U-Boot uImage: take the Image inside it");
    }
    if u32_at(bytes, 0) == Some(u32::from_be_bytes([0xed, 0xfe, 0x0d, 0xd0])) {
        return foreign("a device tree or a FIT image");
    }
    if bytes.starts_with(b"MZ") {
        let machine = u32_at(bytes, PE_OFFSET as u64).and_then(|pe| u16_at(bytes, u64::from(pe) + PE_SIGNATURE_BYTES));
        return match machine {
            Some(machine) => foreign(&format!("an EFI application for {}, not a Linux Image", pe_machine(machine))),
            None => truncated("PE header", HEADER_BYTES + COFF_HEADER_BYTES, bytes.len() as u64),
        };
    }
    if bytes.starts_with(b"070701") || bytes.starts_with(b"070702") {
        return foreign("a cpio archive: is it the initial RAM disk?");
    }
    if (bytes.len() as u64) < HEADER_BYTES {
        return truncated("Image header", HEADER_BYTES, bytes.len() as u64);
    }
    FileError::Unknown
}

/// Machine types of the PE/COFF specification that boot Linux.
fn pe_machine(machine: u16) -> String {
    match machine {
        0x014c => "x86".to_owned(),
        0x01c2 => "32-bit Arm".to_owned(),
        0x5032 => "32-bit RISC-V".to_owned(),
        PE_MACHINE_RISCV64 => "64-bit RISC-V".to_owned(),
        0x6264 => "LoongArch".to_owned(),
        0x8664 => "x86-64".to_owned(),
        0xaa64 => "arm64".to_owned(),
        other => format!("PE machine {other:#06x}"),
    }
}

//! Puts a kernel, its initial RAM disk and its device tree into guest memory.
//!
//! A kernel is a RISC-V Linux Image, plain or compressed, or an ELF file whose segments go to
//! their physical addresses. It starts in S-mode at [`Loaded::entry`]. From the bottom of memory
//! to its top: the kernel, free memory, the RAM disk, the device tree in the last 2 MiB. The places
//! depend only on the files' sizes, so that a run does not change when its command line does.
//!
//! Memory is expected as new, all zero: the loader does not touch the memory that a kernel reserves
//! beyond its file's end, which so costs the host nothing until the guest uses it.

mod elf;
mod image;
mod unpack;

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use vm_memory::{Address, Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};

use crate::symbols::SymbolTable;

pub(crate) use elf::LINUX_OFFSET_BYTES;

/// Where RAM starts.
pub const MEMORY_BASE: u64 = 0x8000_0000;

/// Room for the device tree at the top of memory, and its alignment. Linux maps two megapages
/// around the tree before it has page tables of its own, and takes no tree above 2 MiB
/// (`MAX_FDT_SIZE`).
pub const DEVICE_TREE_BYTES_MAX: u64 = 2 << 20;

/// Linux maps its memory in megapages where it can; a disk that starts on one costs it nothing.
const INITRD_ALIGN_BYTES: u64 = 2 << 20;

/// No kernel with all its debugging information comes near, and a file that has grown by mistake
/// is refused before it fills the host's memory.
const KERNEL_FILE_BYTES_MAX: u64 = 4 << 30;

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Physical address of the first instruction.
    pub entry: u64,
    /// Physical addresses from the kernel's first byte to the last that it reserves.
    pub kernel: Range<u64>,
    /// Physical addresses of the initial RAM disk.
    pub initrd: Option<Range<u64>>,
    /// Physical address for [`write_device_tree`].
    pub device_tree_address: u64,
    /// Symbols: those of an ELF file that is not stripped, or those that a Linux Image
    /// carries for itself.
    pub symbols: Option<SymbolTable>,
}

/// A kernel in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Physical address of the first instruction.
    pub entry: u64,
    /// Physical addresses from its first byte to the last that it reserves.
    pub range: Range<u64>,
    /// As in [`Loaded`].
    pub symbols: Option<SymbolTable>,
}

/// Why a file cannot be loaded. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{}: {what}", path.display())]
    File { path: PathBuf, what: FileError },
    #[error("guest memory must be one region from {MEMORY_BASE:#x} of at least 4 MiB: {what}")]
    Memory { what: String },
    #[error("device tree of {size_bytes} bytes is too long: at most {DEVICE_TREE_BYTES_MAX}")]
    DeviceTree { size_bytes: usize },
}

/// Why one file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    #[error("is not a regular file")]
    NotRegular,
    #[error("is empty")]
    Empty,
    #[error("{size_bytes} bytes are too many for a kernel: at most {KERNEL_FILE_BYTES_MAX}")]
    Huge { size_bytes: u64 },
    #[error("is not a RISC-V kernel: it is {what}")]
    Foreign { what: String },
    #[error("is not a kernel: neither an ELF file nor a RISC-V Linux Image (no \"RSC\\x05\" at byte 56)")]
    Unknown,
    #[error("is compressed with {method}, which is not supported: unpack it with `{command}`")]
    Compression { method: &'static str, command: &'static str },
    #[error("is damaged or truncated {method} data: {reason}")]
    Unpack { method: &'static str, reason: String },
    #[error("unpacks to more than the {limit_bytes} bytes of guest memory")]
    UnpackedHuge { limit_bytes: u64 },
    #[error("is truncated: {header} says {expected_bytes} bytes, the file has {actual_bytes}")]
    Truncated { header: &'static str, expected_bytes: u64, actual_bytes: u64 },
    #[error("has a damaged {header}: {reason}")]
    Header { header: &'static str, reason: String },
    #[error(
        "{what} from {start:#x} to {end:#x} is outside guest memory, which is {memory_start:#x} to {memory_end:#x}"
    )]
    Outside { what: String, start: u128, end: u128, memory_start: u64, memory_end: u64 },
    #[error(
        "{what} from {start:#x} to {end:#x} leaves no room for the device tree at {device_tree:#x}: give the guest more memory"
    )]
    OverDeviceTree { what: String, start: u128, end: u128, device_tree: u64 },
    #[error("segments {first} ({}) and {second} ({}) overlap", hex(first_range), hex(second_range))]
    Overlap { first: usize, first_range: Range<u64>, second: usize, second_range: Range<u64> },
    #[error("has no segment to load")]
    NoSegment,
    #[error("entry point {entry:#x} is in none of its segments")]
    EntryOutside { entry: u64 },
    #[error("entry point {entry:#x} is odd")]
    EntryOdd { entry: u64 },
    #[error(
        "initial RAM disk of {size_bytes} bytes does not fit between the kernel's end at {kernel_end:#x} and the device tree at {device_tree:#x}: give the guest more memory"
    )]
    InitrdFit { size_bytes: u64, kernel_end: u64, device_tree: u64 },
    #[error("cannot be copied to guest memory at {address:#x}: {reason}")]
    Copy { address: u64, reason: String },
}

fn hex(range: &Range<u64>) -> String {
    format!("{:#x} to {:#x}", range.start, range.end)
}

impl FileError {
    fn at(self, path: &Path) -> LoadError {
        LoadError::File { path: path.to_owned(), what: self }
    }
}

/// Guest memory, and the part of it that a kernel and its RAM disk may use.
struct Memory<'a> {
    guest: &'a GuestMemoryMmap<()>,
    end: u64,
    device_tree_address: u64,
}

impl<'a> Memory<'a> {
    fn new(guest: &'a GuestMemoryMmap<()>) -> Result<Self, LoadError> {
        let mut regions = guest.iter();
        let (Some(region), None) = (regions.next(), regions.next()) else {
            return Err(LoadError::Memory { what: format!("there are {} regions", guest.num_regions()) });
        };
        let start = region.start_addr().raw_value();
        let length = region.len();
        match start.checked_add(length) {
            Some(end) if start == MEMORY_BASE && length >= 2 * DEVICE_TREE_BYTES_MAX => {
                let device_tree_address = (end - DEVICE_TREE_BYTES_MAX) / DEVICE_TREE_BYTES_MAX * DEVICE_TREE_BYTES_MAX;
                Ok(Self { guest, end, device_tree_address })
            }
            _ => Err(LoadError::Memory { what: format!("it has {length} bytes from {start:#x}") }),
        }
    }

    fn size_bytes(&self) -> u64 {
        self.end - MEMORY_BASE
    }

    /// The range from `start`, if it is in memory and below the device tree.
    fn range(&self, what: &str, start: u64, size_bytes: u64) -> Result<Range<u64>, FileError> {
        let end = u128::from(start) + u128::from(size_bytes);
        let (what, start_wide) = (what.to_owned(), u128::from(start));
        if start < MEMORY_BASE || end > u128::from(self.end) {
            let (memory_start, memory_end) = (MEMORY_BASE, self.end);
            return Err(FileError::Outside { what, start: start_wide, end, memory_start, memory_end });
        }
        if end > u128::from(self.device_tree_address) {
            let device_tree = self.device_tree_address;
            return Err(FileError::OverDeviceTree { what, start: start_wide, end, device_tree });
        }
        Ok(start..start + size_bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.guest
            .write_slice(bytes, GuestAddress(address))
            .map_err(|error| FileError::Copy { address, reason: error.to_string() })
    }
}

/// Loads a kernel file and, if there is one, a file with an initial RAM disk.
///
/// # Errors
/// [`LoadError`]; guest memory then holds part of the files and is of no further use.
pub fn load(memory: &GuestMemoryMmap<()>, kernel: &Path, initrd: Option<&Path>) -> Result<Loaded, LoadError> {
    let place = Memory::new(memory)?;
    let bytes = read_kernel(kernel).map_err(|error| error.at(kernel))?;
    let Kernel { entry, range: kernel, symbols } = load_kernel(memory, kernel, &bytes)?;
    let initrd = match initrd {
        Some(path) => Some(load_initrd(&place, path, kernel.end).map_err(|error| error.at(path))?),
        None => None,
    };
    Ok(Loaded { entry, kernel, initrd, device_tree_address: place.device_tree_address, symbols })
}

/// Loads a kernel from the bytes of its file; `path` is for errors.
///
/// # Errors
/// As [`load`].
pub fn load_kernel(memory: &GuestMemoryMmap<()>, path: &Path, bytes: &[u8]) -> Result<Kernel, LoadError> {
    let memory = Memory::new(memory)?;
    unpack::unpack(bytes, memory.size_bytes())
        .and_then(|unpacked| match &unpacked {
            Some(kernel) => load_unpacked(&memory, path, kernel),
            None => load_unpacked(&memory, path, bytes),
        })
        .map_err(|error| error.at(path))
}

fn load_unpacked(memory: &Memory<'_>, path: &Path, bytes: &[u8]) -> Result<Kernel, FileError> {
    if bytes.is_empty() {
        Err(FileError::Empty)
    } else if elf::is_elf(bytes) {
        elf::load(memory, path, bytes)
    } else {
        image::load(memory, bytes)
    }
}

/// Puts the device tree at [`Loaded::device_tree_address`].
///
/// # Errors
/// [`LoadError::DeviceTree`] if it does not fit in its place.
pub fn write_device_tree(memory: &GuestMemoryMmap<()>, loaded: &Loaded, tree: &[u8]) -> Result<(), LoadError> {
    if tree.len() as u64 > DEVICE_TREE_BYTES_MAX {
        return Err(LoadError::DeviceTree { size_bytes: tree.len() });
    }
    memory
        .write_slice(tree, GuestAddress(loaded.device_tree_address))
        .map_err(|error| LoadError::Memory { what: error.to_string() })
}

/// Opens a regular file that has something in it. Others could block, or never end.
fn open(path: &Path) -> Result<(File, u64), FileError> {
    // The kind is asked before the file is opened, as opening a pipe without a writer blocks.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotRegular);
    }
    let file = File::open(path)?;
    match file.metadata()?.len() {
        0 => Err(FileError::Empty),
        size_bytes => Ok((file, size_bytes)),
    }
}

fn read_kernel(path: &Path) -> Result<Vec<u8>, FileError> {
    let (file, size_bytes) = open(path)?;
    if size_bytes > KERNEL_FILE_BYTES_MAX {
        return Err(FileError::Huge { size_bytes });
    }
    let mut bytes = Vec::new();
    file.take(KERNEL_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As high as it fits, so that the kernel has the low memory in one piece.
fn load_initrd(memory: &Memory<'_>, path: &Path, kernel_end: u64) -> Result<Range<u64>, FileError> {
    let (mut file, size_bytes) = open(path)?;
    let device_tree = memory.device_tree_address;
    let start = device_tree
        .checked_sub(size_bytes)
        .map(|start| start / INITRD_ALIGN_BYTES * INITRD_ALIGN_BYTES)
        .filter(|&start| start >= kernel_end)
        .ok_or(FileError::InitrdFit { size_bytes, kernel_end, device_tree })?;
    let length =
        usize::try_from(size_bytes).map_err(|_| FileError::InitrdFit { size_bytes, kernel_end, device_tree })?;
    memory
        .guest
        .read_exact_volatile_from(GuestAddress(start), &mut file, length)
        .map_err(|error| FileError::Copy { address: start, reason: error.to_string() })?;
    Ok(start..start + size_bytes)
}

#[cfg(test)]
mod tests;

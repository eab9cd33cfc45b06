//! Faults, which the guest causes, and errors, which the user or the host causes.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// An access the bus refuses; the guest takes an access fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BusFault {
    #[error("no device at address {address:#x}")]
    Unmapped { address: u64 },
    #[error("access of {size_bytes} bytes not allowed at address {address:#x}")]
    Size { address: u64, size_bytes: u8 },
}

/// A configuration that cannot be built, a host file that fails, or a saved state that does not fit.
#[derive(Debug, Error)]
pub enum DeviceError {
    #[error("{harts} harts: the interrupt controller takes 1 to 64")]
    HartCount { harts: usize },
    #[error("{disks} disks: the board takes at most {disks_max}")]
    DiskCount { disks: usize, disks_max: usize },
    #[error("disk image {}: cannot open: {source}", path.display())]
    DiskOpen { path: PathBuf, source: io::Error },
    #[error("disk image {}: not a regular file", path.display())]
    DiskNotFile { path: PathBuf },
    #[error("disk image {}: size of {size_bytes} bytes is not a multiple of 512 above 0", path.display())]
    DiskSize { path: PathBuf, size_bytes: u64 },
    #[error("disk image {}: read-only on the host, but the disk is to be written", path.display())]
    DiskReadOnly { path: PathBuf },
    #[error("disk image {}: used by two disks, one of which writes it", path.display())]
    DiskShared { path: PathBuf },
    #[error(
        "disk image {}: changed from {expected_bytes} to {found_bytes} bytes while in use",
        path.display()
    )]
    DiskResized { path: PathBuf, expected_bytes: u64, found_bytes: u64 },
    #[error("disk image {}: cannot {action} {length_bytes} bytes at {offset_bytes}: {source}", path.display())]
    DiskAccess { path: PathBuf, action: &'static str, offset_bytes: u64, length_bytes: u64, source: io::Error },
    #[error("disk image {}: cannot sync to the host's storage: {source}", path.display())]
    DiskSync { path: PathBuf, source: io::Error },
    #[error(
        "disk image {}: is {found_bytes} bytes, but was {saved_bytes} when the state was saved",
        path.display()
    )]
    DiskSavedSize { path: PathBuf, saved_bytes: u64, found_bytes: u64 },
    #[error(
        "disk image {}: its content has changed since the state was saved (digest {found} instead of {saved})",
        path.display()
    )]
    DiskSavedContent { path: PathBuf, saved: String, found: String },
    #[error("network script: packet {index} is sent at cycle {send_cycle}, before the one ahead of it")]
    ScriptOrder { index: usize, send_cycle: u64 },
    #[error("network script: packet {index} has {size_bytes} bytes of payload, more than {size_bytes_max}")]
    ScriptPayload { index: usize, size_bytes: usize, size_bytes_max: usize },
    #[error("saved device state does not fit the board: it has {saved}, the board {configured}")]
    StateMismatch { saved: String, configured: String },
    #[error("saved device state is corrupt: {what}")]
    StateCorrupt { what: String },
}

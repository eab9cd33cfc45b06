//! Why a machine cannot be built, resumed or run on.

use crate::board::BoardError;
use crate::device_tree::DeviceTreeError;
use crate::loader::LoadError;
use crate::output::OutputError;
use crate::saving::snapshot::SnapshotError;
use concord_dev::DeviceError;
use concord_mem::ram::RamError;
use std::path::PathBuf;

/// Every error of this crate that a user's input or the host can cause.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error(transparent)]
    Memory(#[from] RamError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    DeviceTree(#[from] DeviceTreeError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{}: {error}", path.display())]
    Snapshot { path: PathBuf, error: SnapshotError },
    #[error("cannot print what the guest printed: {0}")]
    Console(std::io::Error),
    #[error("--gdb {port}: port {port} of the loopback interface: {error}")]
    Debugger { port: u16, error: std::io::Error },
    #[error("the state has no digest: {0}")]
    Digest(String),
}

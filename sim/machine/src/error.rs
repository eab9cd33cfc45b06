//! Why a machine cannot be built, resumed or run on.

use crate::board::BoardError;
use crate::device_tree::DeviceTreeError;
use crate::loader::LoadError;
use concord_dev::DeviceError;
use concord_mem::ram::RamError;

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
}

//! A saved bus.

use serde::{Deserialize, Serialize};

use crate::bus::DiskUse;
use crate::finisher::Finish;
use crate::ns16550::Ns16550;
use crate::plic::Plic;
use crate::virtio::mmio::SlotState;

/// The whole state of a bus, without its configuration and the content of the disk images. A bus restored from
/// it behaves as the one that was saved, bit for bit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusState {
    pub(crate) uart: Ns16550,
    pub(crate) plic: Plic,
    pub(crate) slots: Vec<Option<SlotState>>,
    pub(crate) finish: Option<Finish>,
    pub(crate) dma_writes: Vec<(u64, u64)>,
    pub(crate) disk_use: DiskUse,
}

//! Counters of the devices. They are part of a saved state, so a resumed run ends with the same totals.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatistics {
    /// In the order of the configuration.
    pub disks: Vec<DiskStatistics>,
    pub net: Option<NetStatistics>,
    pub uart: UartStatistics,
    /// Bytes the entropy device gave.
    pub entropy_bytes: u64,
}

/// Counts of completed requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStatistics {
    pub reads: u64,
    pub writes: u64,
    pub write_zeroes: u64,
    pub flushes: u64,
    /// Requests answered with an I/O error or as unsupported.
    pub errors: u64,
    pub read_bytes: u64,
    /// Bytes of writes; zeroed bytes are not counted.
    pub written_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetStatistics {
    /// Frames the guest sent, and their bytes without the virtio header.
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// Frames put into the guest's buffers.
    pub received_frames: u64,
    pub received_bytes: u64,
    /// Frames that no peer took: malformed, longer than the link carries, or above what the link holds.
    pub sent_dropped_frames: u64,
    /// Frames that arrived and found no buffer.
    pub received_dropped_frames: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UartStatistics {
    /// Bytes the guest sent through the UART or the firmware's console.
    pub transmitted_bytes: u64,
    /// Bytes of input the guest took.
    pub received_bytes: u64,
}

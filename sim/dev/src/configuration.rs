//! The devices on a board's bus, and their latencies.

use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The hart clock: one cycle is one nanosecond.
pub const CYCLES_PER_SECOND: u64 = 1_000_000_000;

/// Everything [`crate::Bus::new`] needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusConfiguration {
    /// Number of harts, 1 to 64. The interrupt controller has two contexts for each.
    pub harts: usize,
    /// Seed of the entropy device.
    pub seed: u64,
    /// Disks, in the order in which the guest finds them; at most 6.
    pub disks: Vec<DiskConfiguration>,
    /// The network device and its built-in peer, if the board has one.
    pub net: Option<NetConfiguration>,
    /// Whether the board has the entropy device.
    pub entropy: bool,
}

/// One virtio block device and the host file behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskConfiguration {
    /// A regular file whose size is a multiple of 512 bytes and not zero.
    pub path: PathBuf,
    pub mode: DiskMode,
    pub latency: DiskLatency,
}

/// Where the guest's writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskMode {
    /// To the image, when the request completes.
    Write,
    /// To memory; the image stays as it is.
    Overlay,
    /// Nowhere: the device is read-only and says so to the guest.
    ReadOnly,
}

/// How long a disk request takes.
///
/// The fixed part is the access time of a device with a queue: it runs from the submission of each request,
/// and the access times of requests in flight overlap. The data then moves over one channel, one request
/// after another in the order of submission. A request thus completes at `max(submission + fixed_cycles, end
/// of the transfer before) + transfer`. Completions keep the order of submission, so a flush needs no rule of
/// its own: whatever was submitted before it is on the disk.
///
/// The overlap is a choice: with one request at a time, as on a disk with one arm, a guest could gain nothing
/// from a queue, and the fixed latency would act as a bandwidth limit that no current device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLatency {
    /// Cycles from submission to the start of the transfer. With 0 and no bandwidth limit a request completes
    /// at the next [`crate::Bus::advance`].
    pub fixed_cycles: u64,
    /// Bandwidth of the channel in bytes a second of guest time; unlimited when absent.
    pub bandwidth_bytes_per_second: Option<NonZeroU64>,
}

impl DiskLatency {
    /// Cycles the channel is taken by a transfer, rounded up.
    pub(crate) fn transfer_cycles(&self, length_bytes: u64) -> u64 {
        let Some(bandwidth) = self.bandwidth_bytes_per_second else {
            return 0;
        };
        let cycles = (u128::from(length_bytes) * u128::from(CYCLES_PER_SECOND)).div_ceil(u128::from(bandwidth.get()));
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }
}

/// The link, and the packets that the peer at its other end sends unasked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetConfiguration {
    /// Cycles a frame takes in each direction.
    pub latency_cycles: u64,
    /// Packets the peer sends unasked, in the order of their cycles.
    pub script: Vec<ScriptedPacket>,
}

impl Default for NetConfiguration {
    fn default() -> Self {
        NetConfiguration { latency_cycles: 100_000, script: Vec::new() }
    }
}

/// A UDP datagram from the peer to the guest. It reaches the guest one link latency after it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptedPacket {
    /// The cycle at which the peer sends it.
    pub send_cycle: u64,
    pub source_port: u16,
    pub destination_port: u16,
    /// At most 1472 bytes, as one Ethernet frame carries.
    pub payload: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_rounds_up_and_never_overflows() {
        let at = |bandwidth| DiskLatency { fixed_cycles: 0, bandwidth_bytes_per_second: NonZeroU64::new(bandwidth) };
        assert_eq!(at(0).transfer_cycles(u64::MAX), 0);
        assert_eq!(at(CYCLES_PER_SECOND).transfer_cycles(4096), 4096);
        assert_eq!(at(100_000_000).transfer_cycles(4096), 40_960);
        assert_eq!(at(3_000_000_000).transfer_cycles(4), 2);
        assert_eq!(at(1).transfer_cycles(u64::MAX), u64::MAX);
    }
}

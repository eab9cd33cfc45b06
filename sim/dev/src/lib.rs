//! The devices of the machine, one device a file, behind one [`Bus`].
//!
//! The memory map is that of QEMU's `virt` board where the two have the same device. Time is given in cycles
//! of the hart clock by the caller; nothing here reads the host's clock, and every answer follows from the
//! configuration, the calls made and the cycles they were made at. Devices change guest memory only inside
//! [`Bus::write`] and [`Bus::advance`], and each range they change is reported by [`Bus::dma_writes`].

mod bus;
mod configuration;
mod error;
mod finisher;
pub mod map;
mod ns16550;
mod plic;
mod state;
mod statistics;
mod virtio;

pub use bus::Bus;
pub use configuration::{
    BusConfiguration, CYCLES_PER_SECOND, DiskConfiguration, DiskLatency, DiskMode, NetConfiguration, ScriptedPacket,
};
pub use error::{BusFault, DeviceError};
pub use finisher::Finish;
pub use state::BusState;
pub use statistics::{DeviceStatistics, DiskStatistics, NetStatistics, UartStatistics};
pub use virtio::disk::DiskDigest;
pub use virtio::peer::{GUEST_IPV4, GUEST_MAC, PEER_IPV4, PEER_MAC};

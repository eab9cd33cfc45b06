//! Virtio 1.2 devices behind the MMIO transport.

pub mod block;
pub mod disk;
pub mod entropy;
pub mod memory;
pub mod mmio;
pub mod net;
pub mod peer;
pub mod ring;

use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use memory::Dma;
use ring::{Ring, RingError};

/// Largest queue a device offers, in descriptors.
pub const QUEUE_SIZE_MAX: u16 = 256;

/// Every device offers the modern interface, indirect descriptors, and event indices, which spare the guest
/// notifications and interrupts.
///
/// No driver must take one of them. A driver without the modern interface may use the same registers, as on QEMU:
/// xv6 reads and writes only the lower half of the features, and so cannot negotiate VERSION_1.
pub const COMMON_FEATURES: u64 =
    1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_RING_F_INDIRECT_DESC | 1 << VIRTIO_RING_F_EVENT_IDX;

/// A device behind the transport that all virtio devices share.
///
/// `rings` is empty in `run_event` while the driver is not ready; `notify` is then not called at all. An
/// error from either puts the device in the state DEVICE_NEEDS_RESET. Both return whether the driver is to
/// get a used-buffer interrupt.
pub trait VirtioDevice {
    /// Device number (specification, section 5).
    fn device_id(&self) -> u32;
    /// Feature bits beside [`COMMON_FEATURES`].
    fn features(&self) -> u64;
    /// The device and its driver have agreed on these features.
    fn accept_features(&mut self, _features: u64) {}
    fn queue_count(&self) -> usize;
    /// The configuration space from its beginning; bytes beyond it read 0.
    fn config(&self) -> Vec<u8>;
    /// The driver made buffers available in queue `index`.
    fn notify(
        &mut self,
        index: usize,
        rings: &mut [Ring],
        dma: &mut Dma<'_>,
        now_cycles: u64,
    ) -> Result<bool, RingError>;
    /// The cycle at which the device next acts by itself; `u64::MAX` where it does not.
    fn next_event_cycle(&self) -> u64;
    /// Carries out the event that is due at `next_event_cycle`; the first, where several are.
    fn run_event(&mut self, rings: &mut [Ring], dma: &mut Dma<'_>) -> Result<bool, RingError>;
    /// Forgets every request in flight.
    fn reset(&mut self);
}

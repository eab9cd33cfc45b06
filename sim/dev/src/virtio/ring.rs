//! A split virtqueue: virtio-queue's `Queue` with the checks it leaves to its user, and with a log of its
//! writes.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtio_bindings::virtio_ring::VRING_AVAIL_F_NO_INTERRUPT;
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use super::QUEUE_SIZE_MAX;
use super::memory::{Dma, OutsideMemory, Segment, Segments};
use crate::error::DeviceError;

/// The driver broke the rules in a way the device cannot answer within the queue; it needs a reset.
#[derive(Debug, Error)]
pub enum RingError {
    #[error("virtqueue: {0}")]
    Queue(#[from] virtio_queue::Error),
    #[error("descriptor chain from {head} loops, leaves its table, or is longer than the queue")]
    Chain { head: u16 },
    #[error("descriptor chain from {head} has a device-readable part after a device-writable one")]
    Order { head: u16 },
    #[error("descriptor chain from {head} lacks a part the request needs")]
    Short { head: u16 },
    #[error("more requests in flight than the queue has descriptors")]
    Overfull,
    #[error("buffer outside memory")]
    OutsideMemory,
}

impl From<OutsideMemory> for RingError {
    fn from(_: OutsideMemory) -> Self {
        RingError::OutsideMemory
    }
}

/// One request: the segments that the device may read, and those that it may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    pub head: u16,
    pub readable: Segments,
    pub writable: Segments,
}

/// The driver's setup, and how far the queue has come. A ring is rebuilt from it alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingState {
    pub size: u32,
    pub ready: bool,
    pub descriptor_table: u64,
    pub available_ring: u64,
    pub used_ring: u64,
    next_available: u16,
    next_used: u16,
    event_index: bool,
}

impl Default for RingState {
    fn default() -> Self {
        RingState {
            size: u32::from(QUEUE_SIZE_MAX),
            ready: false,
            descriptor_table: 0,
            available_ring: 0,
            used_ring: 0,
            next_available: 0,
            next_used: 0,
            event_index: false,
        }
    }
}

/// A virtqueue. The registers in `setup` may change while it is not ready; `queue` is built from them when it
/// becomes so.
#[derive(Debug)]
pub struct Ring {
    setup: RingState,
    queue: Option<Queue>,
}

impl Ring {
    pub fn new() -> Ring {
        Ring { setup: RingState::default(), queue: None }
    }

    pub fn restore(state: &RingState) -> Result<Ring, DeviceError> {
        let mut ring = Ring { setup: state.clone(), queue: None };
        if state.ready {
            let queue = build(state).map_err(|error| DeviceError::StateCorrupt { what: error.to_string() })?;
            ring.queue = Some(queue);
        }
        Ok(ring)
    }

    pub fn state(&self) -> RingState {
        let mut state = self.setup.clone();
        if let Some(queue) = &self.queue {
            state.next_available = queue.next_avail();
            state.next_used = queue.next_used();
        }
        state
    }

    pub fn ready(&self) -> bool {
        self.queue.is_some()
    }

    /// Queue size in descriptors, as the driver set it.
    pub fn size(&self) -> usize {
        self.setup.size as usize
    }

    /// The setup registers, writable only while the queue is not ready (specification, section 4.2.2.2).
    pub fn setup_mut(&mut self) -> Option<&mut RingState> {
        (!self.ready()).then_some(&mut self.setup)
    }

    /// Takes the setup into use. Fails when the size is not a power of two in range or a ring is misaligned
    /// or outside RAM.
    pub fn enable(&mut self, event_index: bool, memory: &GuestMemoryMmap<()>) -> Result<(), RingError> {
        let mut setup = self.setup.clone();
        setup.event_index = event_index;
        setup.next_available = 0;
        setup.next_used = 0;
        let mut queue = build(&setup)?;
        queue.set_ready(true);
        if !queue.is_valid(memory) {
            return Err(RingError::OutsideMemory);
        }
        setup.ready = true;
        self.setup = setup;
        self.queue = Some(queue);
        Ok(())
    }

    /// Takes the queue out of use; its setup may change again.
    pub fn disable(&mut self) {
        self.queue = None;
        self.setup.ready = false;
    }

    /// Back to the state after a device reset.
    pub fn reset(&mut self) {
        *self = Ring::new();
    }

    /// Takes the next available chain.
    pub fn pop(&mut self, dma: &Dma<'_>) -> Result<Option<Chain>, RingError> {
        let Some(queue) = &mut self.queue else {
            return Ok(None);
        };
        let Some(descriptors) = queue.iter(dma.memory)?.next() else {
            return Ok(None);
        };
        let head = descriptors.head_index();
        let mut chain = Chain { head, readable: Segments::default(), writable: Segments::default() };
        // The iterator ends in silence on any malformed descriptor; a chain is whole only when its last one
        // names no next.
        let mut whole = false;
        for (count, descriptor) in descriptors.enumerate() {
            if count >= usize::from(queue.size()) {
                return Err(RingError::Chain { head });
            }
            let segment = Segment { address: descriptor.addr().0, length_bytes: u64::from(descriptor.len()) };
            if descriptor.is_write_only() {
                chain.writable.0.push(segment);
            } else if chain.writable.0.is_empty() {
                chain.readable.0.push(segment);
            } else {
                return Err(RingError::Order { head });
            }
            whole = !descriptor.has_next();
        }
        if whole { Ok(Some(chain)) } else { Err(RingError::Chain { head }) }
    }

    /// Gives a chain back with `written_bytes` of its writable part filled. Returns whether the driver wants
    /// an interrupt.
    pub fn push(&mut self, dma: &mut Dma<'_>, head: u16, written_bytes: u64) -> Result<bool, RingError> {
        let Some(queue) = &mut self.queue else {
            return Ok(false);
        };
        let index = u64::from(queue.next_used() % queue.size());
        let written_bytes = u32::try_from(written_bytes).unwrap_or(u32::MAX);
        queue.add_used(dma.memory, head, written_bytes)?;
        dma.record(queue.used_ring() + 4 + 8 * index, 8);
        dma.record(queue.used_ring() + 2, 2);
        if queue.event_idx_enabled() {
            return Ok(queue.needs_notification(dma.memory)?);
        }
        let flags: u16 = dma
            .memory
            .load(GuestAddress(queue.avail_ring()), Ordering::Acquire)
            .map_err(virtio_queue::Error::GuestMemory)?;
        Ok(u32::from(u16::from_le(flags)) & VRING_AVAIL_F_NO_INTERRUPT == 0)
    }

    /// Asks the driver to notify the device of the next chain it makes available. With event indices that
    /// takes a write.
    pub fn request_notification(&mut self, dma: &mut Dma<'_>) -> Result<(), RingError> {
        if let Some(queue) = &mut self.queue
            && queue.event_idx_enabled()
        {
            queue.enable_notification(dma.memory)?;
            dma.record(queue.used_ring() + 4 + 8 * u64::from(queue.size()), 2);
        }
        Ok(())
    }
}

fn build(state: &RingState) -> Result<Queue, virtio_queue::Error> {
    let size = u16::try_from(state.size).map_err(|_| virtio_queue::Error::InvalidSize)?;
    let mut queue = Queue::new(QUEUE_SIZE_MAX)?;
    queue.try_set_size(size)?;
    queue.try_set_desc_table_address(GuestAddress(state.descriptor_table))?;
    queue.try_set_avail_ring_address(GuestAddress(state.available_ring))?;
    queue.try_set_used_ring_address(GuestAddress(state.used_ring))?;
    queue.set_event_idx(state.event_index);
    queue.set_next_avail(state.next_available);
    queue.set_next_used(state.next_used);
    queue.set_ready(state.ready);
    Ok(queue)
}

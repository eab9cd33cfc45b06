//! Virtio entropy device (section 5.4), seeded: the bytes are one BLAKE3 output stream derived from the seed,
//! handed out in the order of the requests. A request completes when it is submitted.

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_ids::VIRTIO_ID_RNG;

use super::VirtioDevice;
use super::memory::Dma;
use super::ring::{Ring, RingError};

/// Most that one request gets. The device may give less than was asked for (section 5.4.6.1), and a driver
/// that names the same memory many times must not keep the host busy for long.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// Separates this use of BLAKE3 from any other; changing it changes every run.
const CONTEXT: &str = "concord virtio entropy device, stream of a seed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntropyState {
    seed: u64,
    /// Bytes given so far: the position in the stream.
    position_bytes: u64,
}

pub struct Entropy {
    state: EntropyState,
}

impl Entropy {
    pub fn new(seed: u64) -> Entropy {
        Entropy { state: EntropyState { seed, position_bytes: 0 } }
    }

    pub fn restore(state: &EntropyState) -> Entropy {
        Entropy { state: state.clone() }
    }

    pub fn save(&self) -> EntropyState {
        self.state.clone()
    }

    /// From now on the bytes are those of another seed's stream, from the place on where this one's ended.
    pub fn reseed(&mut self, seed: u64) {
        self.state.seed = seed;
    }

    pub fn given_bytes(&self) -> u64 {
        self.state.position_bytes
    }

    fn take(&mut self, bytes: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.state.seed.to_le_bytes());
        let mut stream = hasher.finalize_xof();
        stream.set_position(self.state.position_bytes);
        stream.fill(bytes);
        self.state.position_bytes += bytes.len() as u64;
    }
}

impl VirtioDevice for Entropy {
    fn device_id(&self) -> u32 {
        VIRTIO_ID_RNG
    }

    fn features(&self) -> u64 {
        0
    }

    fn queue_count(&self) -> usize {
        1
    }

    fn config(&self) -> Vec<u8> {
        Vec::new()
    }

    fn notify(
        &mut self,
        index: usize,
        rings: &mut [Ring],
        dma: &mut Dma<'_>,
        _now_cycles: u64,
    ) -> Result<bool, RingError> {
        let mut interrupt = false;
        let ring = &mut rings[index];
        while let Some(chain) = ring.pop(dma)? {
            if !chain.writable.in_memory(dma.memory) {
                return Err(RingError::OutsideMemory);
            }
            let length_bytes = chain.writable.length_bytes().min(REQUEST_BYTES_MAX);
            let mut bytes = vec![0; length_bytes as usize];
            self.take(&mut bytes);
            dma.scatter(&chain.writable, &bytes)?;
            interrupt |= ring.push(dma, chain.head, length_bytes)?;
        }
        ring.request_notification(dma)?;
        Ok(interrupt)
    }

    fn next_event_cycle(&self) -> u64 {
        u64::MAX
    }

    fn run_event(&mut self, _rings: &mut [Ring], _dma: &mut Dma<'_>) -> Result<bool, RingError> {
        Ok(false)
    }

    fn reset(&mut self) {}
}

//! Virtio network device (section 5.1) on a link with a latency and a built-in peer.
//!
//! A frame leaves the guest when it is submitted, and its buffer is given back at once. It reaches the peer
//! one link latency later, and the answer the guest one more. A frame that arrives while the guest offers no
//! buffer is dropped, as a network card without memory of its own would.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ids::VIRTIO_ID_NET;
use virtio_bindings::virtio_net::{VIRTIO_NET_F_MAC, VIRTIO_NET_F_STATUS, VIRTIO_NET_S_LINK_UP};

use super::VirtioDevice;
use super::memory::Dma;
use super::peer::{self, DATAGRAM_PAYLOAD_BYTES_MAX, GUEST_MAC};
use super::ring::{Ring, RingError};
use crate::configuration::{NetConfiguration, ScriptedPacket};
use crate::error::DeviceError;
use crate::statistics::NetStatistics;

const QUEUE_RECEIVE: usize = 0;

/// The header before each frame (section 5.1.6); without offloads only its number of buffers is ever not 0. A driver
/// that has not negotiated VERSION_1 knows no number of buffers (section 5.1.6.1, legacy interface).
const HEADER: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const LEGACY_HEADER_BYTES: usize = 10;

/// Ethernet header, a VLAN tag and 1500 bytes.
const FRAME_BYTES_MAX: u64 = 1518;
const FRAME_BYTES_MIN: u64 = 14;

/// Answers on their way to the guest; a bound, so that a guest cannot make the host's memory grow.
const LINK_FRAMES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Arrival {
    cycle: u64,
    frame: Vec<u8>,
}

/// The device's part of a saved machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetState {
    answers: VecDeque<Arrival>,
    /// All of the script, so that a board with another one is told apart.
    script: Vec<ScriptedPacket>,
    script_next: usize,
    /// The driver has negotiated VERSION_1.
    is_modern: bool,
    statistics: NetStatistics,
}

pub struct Net {
    latency_cycles: u64,
    state: NetState,
}

impl Net {
    /// Fails when the script's cycles go back or a payload does not fit a frame.
    pub fn new(configuration: &NetConfiguration) -> Result<Net, DeviceError> {
        let script = &configuration.script;
        for (index, packet) in script.iter().enumerate() {
            if index > 0 && packet.send_cycle < script[index - 1].send_cycle {
                return Err(DeviceError::ScriptOrder { index, send_cycle: packet.send_cycle });
            }
            if packet.payload.len() > DATAGRAM_PAYLOAD_BYTES_MAX {
                return Err(DeviceError::ScriptPayload {
                    index,
                    size_bytes: packet.payload.len(),
                    size_bytes_max: DATAGRAM_PAYLOAD_BYTES_MAX,
                });
            }
        }
        Ok(Net {
            latency_cycles: configuration.latency_cycles,
            state: NetState {
                answers: VecDeque::new(),
                script: script.clone(),
                script_next: 0,
                is_modern: true,
                statistics: NetStatistics::default(),
            },
        })
    }

    pub fn restore(configuration: &NetConfiguration, state: &NetState) -> Result<Net, DeviceError> {
        let mut net = Net::new(configuration)?;
        if net.state.script != state.script {
            return Err(DeviceError::StateMismatch {
                saved: format!("a network script of {} packets", state.script.len()),
                configured: format!("another, of {}", net.state.script.len()),
            });
        }
        net.state = state.clone();
        Ok(net)
    }

    pub fn save(&self) -> NetState {
        self.state.clone()
    }

    pub fn statistics(&self) -> &NetStatistics {
        &self.state.statistics
    }

    fn header(&self) -> &'static [u8] {
        if self.state.is_modern { &HEADER } else { &HEADER[..LEGACY_HEADER_BYTES] }
    }

    fn next_answer_cycle(&self) -> u64 {
        self.state.answers.front().map_or(u64::MAX, |arrival| arrival.cycle)
    }

    fn next_script_cycle(&self) -> u64 {
        self.state
            .script
            .get(self.state.script_next)
            .map_or(u64::MAX, |packet| packet.send_cycle.saturating_add(self.latency_cycles))
    }

    /// Takes the frame that arrives next; of two at the same cycle, the answer.
    fn take_arrival(&mut self) -> Option<Vec<u8>> {
        if self.next_answer_cycle() <= self.next_script_cycle() {
            return self.state.answers.pop_front().map(|arrival| arrival.frame);
        }
        let packet = self.state.script.get(self.state.script_next)?;
        self.state.script_next += 1;
        Some(peer::datagram(packet.source_port, packet.destination_port, &packet.payload))
    }

    /// The frame leaves the guest; the peer's answer is on its way back as soon as its time is known.
    fn send(&mut self, frame: &[u8], now_cycles: u64) {
        let statistics = &mut self.state.statistics;
        statistics.sent_frames += 1;
        statistics.sent_bytes += frame.len() as u64;
        let Some(answer) = peer::answer(frame) else {
            return;
        };
        if self.state.answers.len() >= LINK_FRAMES_MAX {
            statistics.sent_dropped_frames += 1;
            return;
        }
        // The link keeps the order of frames, even across a restore onto a board with a shorter latency.
        let behind_cycle = self.state.answers.back().map_or(0, |arrival| arrival.cycle);
        self.state.answers.push_back(Arrival {
            cycle: now_cycles.saturating_add(self.latency_cycles.saturating_mul(2)).max(behind_cycle),
            frame: answer,
        });
    }

    fn deliver(&mut self, frame: &[u8], rings: &mut [Ring], dma: &mut Dma<'_>) -> Result<bool, RingError> {
        let header = self.header();
        let statistics = &mut self.state.statistics;
        let chain = match rings.get_mut(QUEUE_RECEIVE) {
            Some(ring) => ring.pop(dma)?,
            None => None,
        };
        let Some(chain) = chain else {
            statistics.received_dropped_frames += 1;
            return Ok(false);
        };
        if !chain.writable.in_memory(dma.memory) {
            return Err(RingError::OutsideMemory);
        }
        let packet = [header, frame].concat();
        let length_bytes = packet.len() as u64;
        if chain.writable.length_bytes() < length_bytes {
            return Err(RingError::Short { head: chain.head });
        }
        dma.scatter(&chain.writable, &packet)?;
        statistics.received_frames += 1;
        statistics.received_bytes += frame.len() as u64;
        rings[QUEUE_RECEIVE].push(dma, chain.head, length_bytes)
    }
}

impl VirtioDevice for Net {
    fn device_id(&self) -> u32 {
        VIRTIO_ID_NET
    }

    fn features(&self) -> u64 {
        1 << VIRTIO_NET_F_MAC | 1 << VIRTIO_NET_F_STATUS
    }

    fn queue_count(&self) -> usize {
        2
    }

    fn accept_features(&mut self, features: u64) {
        self.state.is_modern = features & (1 << VIRTIO_F_VERSION_1) != 0;
    }

    /// Ethernet address and link status (section 5.1.4).
    fn config(&self) -> Vec<u8> {
        let status = VIRTIO_NET_S_LINK_UP as u16;
        [&GUEST_MAC[..], &status.to_le_bytes()].concat()
    }

    fn notify(
        &mut self,
        index: usize,
        rings: &mut [Ring],
        dma: &mut Dma<'_>,
        now_cycles: u64,
    ) -> Result<bool, RingError> {
        // Buffers to receive into are looked for when a frame arrives.
        if index == QUEUE_RECEIVE {
            return Ok(false);
        }
        let header_bytes = self.header().len() as u64;
        let ring = &mut rings[index];
        let mut interrupt = false;
        while let Some(chain) = ring.pop(dma)? {
            let (_, frame) = chain.readable.split(header_bytes);
            let length_bytes = frame.length_bytes();
            if (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&length_bytes) {
                let mut bytes = vec![0; length_bytes as usize];
                dma.gather(&frame, &mut bytes)?;
                self.send(&bytes, now_cycles);
            } else {
                self.state.statistics.sent_dropped_frames += 1;
            }
            interrupt |= ring.push(dma, chain.head, 0)?;
        }
        ring.request_notification(dma)?;
        Ok(interrupt)
    }

    fn next_event_cycle(&self) -> u64 {
        self.next_answer_cycle().min(self.next_script_cycle())
    }

    fn run_event(&mut self, rings: &mut [Ring], dma: &mut Dma<'_>) -> Result<bool, RingError> {
        match self.take_arrival() {
            Some(frame) => self.deliver(&frame, rings, dma),
            None => Ok(false),
        }
    }

    /// Frames on the link stay there: they are not the device's.
    fn reset(&mut self) {}
}

//! Virtio block device (section 5.2).
//!
//! A request is read from its chain when it is submitted, and does all of its work, on the image and on guest
//! memory, when it completes. [`crate::configuration::DiskLatency`] says when that is. A write is in the
//! host's page cache when it has completed, so it survives the end of this process; only
//! [`crate::Bus::finish_disks`] waits for the host's storage, because a guest's flush would cost host time
//! and change nothing the guest can see.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_WRITE_ZEROES,
    VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_FLUSH,
    VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};
use virtio_bindings::virtio_ids::VIRTIO_ID_BLOCK;

use super::disk::{Disk, DiskState, SECTOR_BYTES};
use super::memory::{Dma, Segments};
use super::ring::{Chain, Ring, RingError};
use super::{QUEUE_SIZE_MAX, VirtioDevice};
use crate::configuration::DiskConfiguration;
use crate::error::DeviceError;
use crate::statistics::DiskStatistics;

/// Data segments a request may have: a full queue less header and status.
const SEGMENTS_MAX: u32 = QUEUE_SIZE_MAX as u32 - 2;

/// Longest range one write-zeroes request names.
const WRITE_ZEROES_SECTORS_MAX: u32 = 8192;

const HEADER_BYTES: u64 = 16;
const WRITE_ZEROES_RANGE_BYTES: u64 = 16;
const CONFIG_BYTES: usize = 60;

/// Data moves in pieces of this size, so that no request makes the host allocate more.
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Operation {
    Read {
        sector: u64,
        data: Segments,
    },
    Write {
        sector: u64,
        data: Segments,
    },
    WriteZeroes {
        ranges: Segments,
    },
    Flush,
    GetId {
        data: Segments,
    },
    /// Nothing to do but to answer with a status: malformed or unknown.
    Refuse {
        status: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Request {
    completion_cycle: u64,
    head: u16,
    operation: Operation,
    /// The last writable byte of the chain.
    status: Segments,
}

/// The device's part of a saved machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockState {
    disk: DiskState,
    in_flight: Vec<Request>,
    channel_free_cycle: u64,
    statistics: DiskStatistics,
    index: usize,
}

pub struct Block {
    disk: Disk,
    /// In the order of submission, which is the order of completion.
    in_flight: VecDeque<Request>,
    /// When the transfer of the last request submitted ends.
    channel_free_cycle: u64,
    statistics: DiskStatistics,
    /// Number of the disk, which its identification string shows.
    index: usize,
    host_error: Option<DeviceError>,
}

/// Why an operation failed: the guest sees the same either way, the user does not.
enum Failure {
    Guest,
    Host(DeviceError),
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Failure::Host(error)
    }
}

impl Block {
    pub fn new(disk: Disk, index: usize) -> Block {
        Block {
            disk,
            in_flight: VecDeque::new(),
            channel_free_cycle: 0,
            statistics: DiskStatistics::default(),
            index,
            host_error: None,
        }
    }

    pub fn restore(configuration: &DiskConfiguration, state: &BlockState) -> Result<Block, DeviceError> {
        Ok(Block {
            disk: Disk::restore(configuration, &state.disk)?,
            in_flight: state.in_flight.iter().cloned().collect(),
            channel_free_cycle: state.channel_free_cycle,
            statistics: state.statistics.clone(),
            index: state.index,
            host_error: None,
        })
    }

    pub fn save(&self) -> BlockState {
        BlockState {
            disk: self.disk.save(),
            in_flight: self.in_flight.iter().cloned().collect(),
            channel_free_cycle: self.channel_free_cycle,
            statistics: self.statistics.clone(),
            index: self.index,
        }
    }

    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    pub fn statistics(&self) -> &DiskStatistics {
        &self.statistics
    }

    /// The first failure of the host's file since the last call.
    pub fn take_host_error(&mut self) -> Option<DeviceError> {
        self.host_error.take()
    }

    /// Reads a request from its chain. Only a chain that leaves no way to answer is an error.
    fn parse(&self, chain: Chain, dma: &Dma<'_>) -> Result<(Operation, Segments), RingError> {
        let Some(data_bytes) = chain.writable.length_bytes().checked_sub(1) else {
            return Err(RingError::Short { head: chain.head });
        };
        let (data, status) = chain.writable.split(data_bytes);
        if !status.in_memory(dma.memory) {
            return Err(RingError::OutsideMemory);
        }
        let refuse = |status| Operation::Refuse { status };
        let in_memory = chain.readable.in_memory(dma.memory) && data.in_memory(dma.memory);
        if !in_memory || chain.readable.length_bytes() < HEADER_BYTES {
            return Ok((refuse(VIRTIO_BLK_S_IOERR), status));
        }
        let (header, payload) = chain.readable.split(HEADER_BYTES);
        let mut bytes = [0; HEADER_BYTES as usize];
        dma.gather(&header, &mut bytes)?;
        let kind = le32(&bytes, 0);
        let sector = le64(&bytes, 8);
        let operation = match kind {
            VIRTIO_BLK_T_IN => Operation::Read { sector, data },
            VIRTIO_BLK_T_OUT => Operation::Write { sector, data: payload },
            VIRTIO_BLK_T_WRITE_ZEROES => Operation::WriteZeroes { ranges: payload },
            VIRTIO_BLK_T_FLUSH => Operation::Flush,
            VIRTIO_BLK_T_GET_ID => Operation::GetId { data },
            _ => refuse(VIRTIO_BLK_S_UNSUPP),
        };
        Ok((operation, status))
    }

    fn submit(&mut self, chain: Chain, dma: &Dma<'_>, now_cycles: u64) -> Result<(), RingError> {
        let head = chain.head;
        let (operation, status) = self.parse(chain, dma)?;
        let transferred_bytes = match &operation {
            Operation::Read { data, .. } | Operation::Write { data, .. } => data.length_bytes(),
            _ => 0,
        };
        let latency = self.disk.configuration().latency;
        let completion_cycle = now_cycles
            .saturating_add(latency.fixed_cycles)
            .max(self.channel_free_cycle)
            .saturating_add(latency.transfer_cycles(transferred_bytes));
        self.channel_free_cycle = completion_cycle;
        self.in_flight.push_back(Request { completion_cycle, head, operation, status });
        Ok(())
    }

    /// Carries out a request. Returns its status and the bytes written to the front of its writable part.
    fn execute(&mut self, operation: &Operation, dma: &mut Dma<'_>) -> (u32, u64) {
        let result = match operation {
            Operation::Read { sector, data } => self.read(*sector, data, dma),
            Operation::Write { sector, data } => self.write(*sector, data, dma),
            Operation::WriteZeroes { ranges } => self.write_zeroes(ranges, dma),
            Operation::Flush => self.flush(),
            Operation::GetId { data } => self.get_id(data, dma),
            Operation::Refuse { status } => {
                self.statistics.errors += 1;
                return (*status, 0);
            }
        };
        match result {
            Ok(written_bytes) => (VIRTIO_BLK_S_OK, written_bytes),
            Err(failure) => {
                self.statistics.errors += 1;
                if let Failure::Host(error) = failure {
                    self.host_error.get_or_insert(error);
                }
                (VIRTIO_BLK_S_IOERR, 0)
            }
        }
    }

    /// Offset of a range in the image, when all of the range is inside the disk and made of whole sectors.
    fn locate(&self, sector: u64, length_bytes: u64) -> Result<u64, Failure> {
        let offset_bytes = sector.checked_mul(SECTOR_BYTES).ok_or(Failure::Guest)?;
        let end_bytes = offset_bytes.checked_add(length_bytes);
        let inside = end_bytes.is_some_and(|end_bytes| end_bytes <= self.disk.size_bytes());
        if inside && length_bytes.is_multiple_of(SECTOR_BYTES) { Ok(offset_bytes) } else { Err(Failure::Guest) }
    }

    /// As `locate`, for an operation that changes the disk.
    fn locate_written(&self, sector: u64, length_bytes: u64) -> Result<u64, Failure> {
        if self.disk.read_only() {
            return Err(Failure::Guest);
        }
        self.locate(sector, length_bytes)
    }

    fn read(&mut self, sector: u64, data: &Segments, dma: &mut Dma<'_>) -> Result<u64, Failure> {
        let length_bytes = data.length_bytes();
        let mut offset_bytes = self.locate(sector, length_bytes)?;
        self.disk.check_size()?;
        let mut buffer = vec![0; PIECE_BYTES];
        for (address, length) in pieces(data) {
            let piece = &mut buffer[..length];
            self.disk.read(offset_bytes, piece)?;
            dma.write(address, piece).map_err(|_| Failure::Guest)?;
            offset_bytes += length as u64;
        }
        self.statistics.reads += 1;
        self.statistics.read_bytes += length_bytes;
        Ok(length_bytes)
    }

    fn write(&mut self, sector: u64, data: &Segments, dma: &Dma<'_>) -> Result<u64, Failure> {
        let length_bytes = data.length_bytes();
        let mut offset_bytes = self.locate_written(sector, length_bytes)?;
        self.disk.check_size()?;
        let mut buffer = vec![0; PIECE_BYTES];
        for (address, length) in pieces(data) {
            let piece = &mut buffer[..length];
            dma.read(address, piece).map_err(|_| Failure::Guest)?;
            self.disk.write(offset_bytes, piece)?;
            offset_bytes += length as u64;
        }
        self.statistics.writes += 1;
        self.statistics.written_bytes += length_bytes;
        Ok(0)
    }

    /// One range a request (section 5.2.6.2): first sector, number of sectors, flags. Unmapping is allowed,
    /// never asked for.
    fn write_zeroes(&mut self, ranges: &Segments, dma: &Dma<'_>) -> Result<u64, Failure> {
        if ranges.length_bytes() != WRITE_ZEROES_RANGE_BYTES {
            return Err(Failure::Guest);
        }
        let mut range = [0; WRITE_ZEROES_RANGE_BYTES as usize];
        dma.gather(ranges, &mut range).map_err(|_| Failure::Guest)?;
        let sectors = le32(&range, 8);
        if sectors > WRITE_ZEROES_SECTORS_MAX {
            return Err(Failure::Guest);
        }
        let length_bytes = u64::from(sectors) * SECTOR_BYTES;
        let offset_bytes = self.locate_written(le64(&range, 0), length_bytes)?;
        self.disk.check_size()?;
        self.disk.write(offset_bytes, &vec![0; length_bytes as usize])?;
        self.statistics.write_zeroes += 1;
        Ok(0)
    }

    /// Whatever was submitted before has completed, so there is nothing left to wait for.
    fn flush(&mut self) -> Result<u64, Failure> {
        self.disk.check_size()?;
        self.statistics.flushes += 1;
        Ok(0)
    }

    fn get_id(&self, data: &Segments, dma: &mut Dma<'_>) -> Result<u64, Failure> {
        let mut id = format!("concord-disk-{}", self.index).into_bytes();
        id.resize(VIRTIO_BLK_ID_BYTES as usize, 0);
        let length_bytes = data.length_bytes().min(id.len() as u64);
        let id = &id[..length_bytes as usize];
        dma.scatter(data, id).map_err(|_| Failure::Guest)?;
        Ok(length_bytes)
    }
}

impl VirtioDevice for Block {
    fn device_id(&self) -> u32 {
        VIRTIO_ID_BLOCK
    }

    fn features(&self) -> u64 {
        let features = 1 << VIRTIO_BLK_F_SEG_MAX | 1 << VIRTIO_BLK_F_BLK_SIZE | 1 << VIRTIO_BLK_F_FLUSH;
        if self.disk.read_only() { features | 1 << VIRTIO_BLK_F_RO } else { features | 1 << VIRTIO_BLK_F_WRITE_ZEROES }
    }

    fn queue_count(&self) -> usize {
        1
    }

    /// Section 5.2.4; fields of features that are not offered stay 0.
    fn config(&self) -> Vec<u8> {
        let mut config = vec![0; CONFIG_BYTES];
        let sectors = self.disk.size_bytes() / SECTOR_BYTES;
        config[0..8].copy_from_slice(&sectors.to_le_bytes());
        config[12..16].copy_from_slice(&SEGMENTS_MAX.to_le_bytes());
        config[20..24].copy_from_slice(&(SECTOR_BYTES as u32).to_le_bytes());
        if !self.disk.read_only() {
            config[48..52].copy_from_slice(&WRITE_ZEROES_SECTORS_MAX.to_le_bytes());
            config[52..56].copy_from_slice(&1u32.to_le_bytes());
        }
        config
    }

    fn notify(
        &mut self,
        index: usize,
        rings: &mut [Ring],
        dma: &mut Dma<'_>,
        now_cycles: u64,
    ) -> Result<bool, RingError> {
        let ring = &mut rings[index];
        while let Some(chain) = ring.pop(dma)? {
            // Each request in flight holds a descriptor, unless the driver makes the same one available again
            // and again.
            if self.in_flight.len() >= ring.size() {
                return Err(RingError::Overfull);
            }
            self.submit(chain, dma, now_cycles)?;
        }
        ring.request_notification(dma)?;
        Ok(false)
    }

    fn next_event_cycle(&self) -> u64 {
        self.in_flight.front().map_or(u64::MAX, |request| request.completion_cycle)
    }

    fn run_event(&mut self, rings: &mut [Ring], dma: &mut Dma<'_>) -> Result<bool, RingError> {
        let (Some(request), Some(ring)) = (self.in_flight.pop_front(), rings.first_mut()) else {
            return Ok(false);
        };
        let (status, written_bytes) = self.execute(&request.operation, dma);
        dma.scatter(&request.status, &[status as u8])?;
        // The status byte is counted too: it is in the writable part.
        ring.push(dma, request.head, written_bytes + 1)
    }

    fn reset(&mut self) {
        self.in_flight.clear();
        self.channel_free_cycle = 0;
    }
}

/// Contiguous pieces of at most `PIECE_BYTES`: guest address and length.
fn pieces(data: &Segments) -> impl Iterator<Item = (u64, usize)> {
    data.0.iter().flat_map(|segment| {
        (0..segment.length_bytes).step_by(PIECE_BYTES).map(|offset_bytes| {
            let left_bytes = segment.length_bytes - offset_bytes;
            (segment.address.wrapping_add(offset_bytes), left_bytes.min(PIECE_BYTES as u64) as usize)
        })
    })
}

fn le32(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn le64(bytes: &[u8; 16], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

//! A board and a driver for its virtio devices, written against the specification and not against the crate.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::{Path, PathBuf};

use concord_dev::*;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

pub const RAM_BASE: u64 = 0x8000_0000;
pub const RAM_BYTES: usize = 1 << 20;
pub const SLOT_NET: u64 = 6;
pub const SLOT_ENTROPY: u64 = 7;

pub const VERSION_1: u64 = 1 << 32;
pub const INDIRECT: u64 = 1 << 28;
pub const EVENT_INDEX: u64 = 1 << 29;

pub const MAGIC: u64 = 0x000;
pub const DEVICE_ID: u64 = 0x008;
pub const VENDOR: u64 = 0x00c;
pub const QUEUE_SELECT: u64 = 0x030;
pub const QUEUE_SIZE: u64 = 0x038;
pub const QUEUE_READY: u64 = 0x044;
pub const QUEUE_NOTIFY: u64 = 0x050;
pub const INTERRUPT_STATUS: u64 = 0x060;
pub const INTERRUPT_ACK: u64 = 0x064;
pub const STATUS: u64 = 0x070;
pub const QUEUE_DESCRIPTORS: u64 = 0x080;
pub const QUEUE_AVAILABLE: u64 = 0x090;
pub const QUEUE_USED: u64 = 0x0a0;
pub const CONFIG: u64 = 0x100;

pub const NEEDS_RESET: u64 = 64;

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const TABLE: u16 = 4;

pub fn configuration() -> BusConfiguration {
    BusConfiguration { harts: 2, seed: 1, disks: Vec::new(), net: None, entropy: false }
}

pub fn disk(path: &Path, mode: DiskMode, fixed_cycles: u64) -> DiskConfiguration {
    DiskConfiguration {
        path: PathBuf::from(path),
        mode,
        latency: DiskLatency { fixed_cycles, bandwidth_bytes_per_second: None },
    }
}

pub struct Board {
    pub bus: Bus,
    pub memory: GuestMemoryMmap<()>,
    pub now: u64,
    /// All of RAM when the log of writes was last checked.
    image: Vec<u8>,
}

impl Board {
    pub fn new(configuration: BusConfiguration) -> Board {
        Board::with_bus(Bus::new(configuration).unwrap())
    }

    pub fn with_bus(bus: Bus) -> Board {
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(RAM_BASE), RAM_BYTES)]).unwrap();
        Board { bus, memory, now: 0, image: vec![0; RAM_BYTES] }
    }

    /// The same memory at the same time with another bus.
    pub fn continued(&self, bus: Bus) -> Board {
        let mut board = Board::with_bus(bus);
        board.now = self.now;
        board.poke(RAM_BASE, &self.ram());
        board.image = self.image.clone();
        board
    }

    pub fn ram(&self) -> Vec<u8> {
        self.peek(RAM_BASE, RAM_BYTES)
    }

    pub fn peek(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_slice(&mut bytes, GuestAddress(address)).unwrap();
        bytes
    }

    pub fn peek16(&self, address: u64) -> u16 {
        u16::from_le_bytes(self.peek(address, 2).try_into().unwrap())
    }

    pub fn poke(&self, address: u64, bytes: &[u8]) {
        self.memory.write_slice(bytes, GuestAddress(address)).unwrap();
    }

    pub fn slot_address(slot: u64, register: u64) -> u64 {
        0x1000_1000 + slot * 0x1000 + register
    }

    pub fn get(&mut self, slot: u64, register: u64) -> u64 {
        self.bus.read(Board::slot_address(slot, register), 4, self.now).unwrap()
    }

    pub fn set(&mut self, slot: u64, register: u64, value: u64) {
        let address = Board::slot_address(slot, register);
        self.bus.write(address, 4, value, self.now, &self.memory).unwrap();
    }

    pub fn config(&mut self, slot: u64, offset: u64, size: u8) -> u64 {
        let address = Board::slot_address(slot, CONFIG + offset);
        self.bus.read(address, size, self.now).unwrap()
    }

    pub fn features(&mut self, slot: u64) -> u64 {
        self.set(slot, 0x014, 0);
        let low = self.get(slot, 0x010);
        self.set(slot, 0x014, 1);
        low | self.get(slot, 0x010) << 32
    }

    /// Resets a device and takes it up to FEATURES_OK. Returns whether the device took the features.
    pub fn negotiate(&mut self, slot: u64, features: u64) -> bool {
        self.set(slot, STATUS, 0);
        self.set(slot, STATUS, 1);
        self.set(slot, STATUS, 3);
        for (select, half) in [(0, features & 0xffff_ffff), (1, features >> 32)] {
            self.set(slot, 0x024, select);
            self.set(slot, 0x020, half);
        }
        self.set(slot, STATUS, 11);
        self.get(slot, STATUS) & 8 != 0
    }

    /// Brings a device up with queues of `size` descriptors, laid out from `base` on.
    pub fn start(&mut self, slot: u64, features: u64, queues: u64, size: u16, base: u64) -> Vec<Queue> {
        assert!(self.negotiate(slot, features));
        let queues = (0..queues)
            .map(|index| {
                let queue = Queue::new(slot, index, size, base + index * 0x4000, features);
                self.set(slot, QUEUE_SELECT, index);
                self.set(slot, QUEUE_SIZE, u64::from(size));
                for (register, address) in [
                    (QUEUE_DESCRIPTORS, queue.descriptors),
                    (QUEUE_AVAILABLE, queue.available),
                    (QUEUE_USED, queue.used),
                ] {
                    self.set(slot, register, address & 0xffff_ffff);
                    self.set(slot, register + 4, address >> 32);
                }
                self.set(slot, QUEUE_READY, 1);
                assert_eq!(self.get(slot, QUEUE_READY), 1);
                queue
            })
            .collect();
        self.set(slot, STATUS, 15);
        queues
    }

    /// Lets time pass up to and including `cycle`.
    pub fn until(&mut self, cycle: u64) {
        self.now = cycle;
        self.bus.advance(cycle, &self.memory);
    }

    /// Runs the next event and returns its cycle.
    pub fn step(&mut self) -> u64 {
        let cycle = self.bus.next_event_cycle();
        assert_ne!(cycle, u64::MAX, "no event to come");
        self.until(cycle);
        cycle
    }

    /// Takes the interrupt status of a device and acknowledges it.
    pub fn interrupt(&mut self, slot: u64) -> u64 {
        let status = self.get(slot, INTERRUPT_STATUS);
        self.set(slot, INTERRUPT_ACK, status);
        assert_eq!(self.get(slot, INTERRUPT_STATUS), 0);
        status
    }

    /// Lets an interrupt source reach hart 0.
    pub fn enable_interrupt(&mut self, source: u64) {
        self.bus.write(0x0c00_0000 + 4 * source, 4, 1, self.now, &self.memory).unwrap();
        self.bus.write(0x0c00_2080, 4, 1 << source, self.now, &self.memory).unwrap();
    }

    /// Hart 0 claims an interrupt; 0 when there is none.
    pub fn claim(&mut self) -> u64 {
        self.bus.read(0x0c20_1004, 4, self.now).unwrap()
    }

    pub fn complete(&mut self, source: u64) {
        self.bus.write(0x0c20_1004, 4, source, self.now, &self.memory).unwrap();
    }

    /// To be called after the driver's own writes and before the device's.
    pub fn mark(&mut self) {
        self.image = self.ram();
    }

    /// Checks that every byte of RAM that changed since `mark` is in a logged range.
    pub fn check_log(&mut self) {
        let now = self.ram();
        let mut expected = std::mem::take(&mut self.image);
        for (address, length) in self.bus.dma_writes() {
            let start = (address - RAM_BASE) as usize;
            let range = start..start + length as usize;
            expected[range.clone()].copy_from_slice(&now[range]);
        }
        let stray = (0..RAM_BYTES).find(|&at| expected[at] != now[at]);
        assert_eq!(stray, None, "a write of the device was not logged");
        self.image = now;
    }
}

/// The driver's side of a split virtqueue, with descriptors taken round robin.
#[derive(Clone)]
pub struct Queue {
    pub slot: u64,
    pub index: u64,
    pub size: u16,
    pub descriptors: u64,
    pub available: u64,
    pub used: u64,
    pub event_index: bool,
    next_descriptor: u16,
    next_available: u16,
    next_used: u16,
}

impl Queue {
    pub fn new(slot: u64, index: u64, size: u16, base: u64, features: u64) -> Queue {
        Queue {
            slot,
            index,
            size,
            descriptors: base,
            available: base + 0x2000,
            used: base + 0x3000,
            event_index: features & EVENT_INDEX != 0,
            next_descriptor: 0,
            next_available: 0,
            next_used: 0,
        }
    }

    pub fn descriptor(&self, board: &Board, index: u16, address: u64, length: u32, flags: u16, next: u16) {
        write_descriptor(board, self.descriptors + 16 * u64::from(index), address, length, flags, next);
    }

    /// Makes a chain available without notifying the device; returns its head.
    pub fn add(&mut self, board: &Board, parts: &[(u64, u32, bool)]) -> u16 {
        let head = self.next_descriptor;
        for (count, &(address, length, write)) in parts.iter().enumerate() {
            let index = (head + count as u16) % self.size;
            let last = count + 1 == parts.len();
            let flags = if write { WRITE } else { 0 } | if last { 0 } else { NEXT };
            let next = if last { 0 } else { (index + 1) % self.size };
            self.descriptor(board, index, address, length, flags, next);
        }
        self.next_descriptor = (head + parts.len() as u16) % self.size;
        self.offer(board, head);
        head
    }

    /// Puts a head into the available ring.
    pub fn offer(&mut self, board: &Board, head: u16) {
        let entry = self.available + 4 + 2 * u64::from(self.next_available % self.size);
        board.poke(entry, &head.to_le_bytes());
        self.next_available = self.next_available.wrapping_add(1);
        board.poke(self.available + 2, &self.next_available.to_le_bytes());
    }

    pub fn notify(&self, board: &mut Board) {
        board.mark();
        board.set(self.slot, QUEUE_NOTIFY, self.index);
    }

    pub fn submit(&mut self, board: &mut Board, parts: &[(u64, u32, bool)]) -> u16 {
        let head = self.add(board, parts);
        self.notify(board);
        head
    }

    /// Takes the next used element: head and bytes written.
    pub fn take_used(&mut self, board: &Board) -> Option<(u32, u32)> {
        if board.peek16(self.used + 2) == self.next_used {
            return None;
        }
        let entry = self.used + 4 + 8 * u64::from(self.next_used % self.size);
        let bytes = board.peek(entry, 8);
        self.next_used = self.next_used.wrapping_add(1);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Some((word(0), word(4)))
    }
}

pub fn write_descriptor(board: &Board, at: u64, address: u64, length: u32, flags: u16, next: u16) {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&address.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(&next.to_le_bytes());
    board.poke(at, &bytes);
}

/// Where the tests put buffers and rings.
pub const RINGS: u64 = RAM_BASE + 0x4_0000;
pub const HEADER: u64 = RAM_BASE + 0x1000;
pub const STATUS_BYTE: u64 = RAM_BASE + 0x2000;
pub const DATA: u64 = RAM_BASE + 0x8_0000;

pub const BLK_READ: u32 = 0;
pub const BLK_WRITE: u32 = 1;
pub const BLK_FLUSH: u32 = 4;
pub const BLK_GET_ID: u32 = 8;
pub const BLK_WRITE_ZEROES: u32 = 13;

/// Writes a block request's header to `at`.
pub fn block_header(board: &Board, at: u64, kind: u32, sector: u64) {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&sector.to_le_bytes());
    board.poke(at, &bytes);
}

/// A file of `sectors` sectors, each filled with its number plus one.
pub fn image(directory: &Path, sectors: usize) -> PathBuf {
    let path = directory.join("disk.img");
    let content: Vec<u8> = (0..sectors).flat_map(|sector| [(sector + 1) as u8; 512]).collect();
    std::fs::write(&path, content).unwrap();
    path
}

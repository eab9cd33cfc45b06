//! All devices behind one address decoder, with one clock and one interrupt controller.

use serde::{Deserialize, Serialize};
use vm_memory::GuestMemoryMmap;

use crate::configuration::{BusConfiguration, DiskMode};
use crate::error::{BusFault, DeviceError};
use crate::finisher::Finish;
use crate::map::{FINISHER, PLIC, Range, SLOT, SLOT_COUNT, SLOT_INTERRUPT, UART, UART_INTERRUPT};
use crate::ns16550::{self, Ns16550};
use crate::plic::Plic;
use crate::state::BusState;
use crate::statistics::DeviceStatistics;
use crate::virtio::block::Block;
use crate::virtio::disk::{Disk, DiskDigest};
use crate::virtio::entropy::Entropy;
use crate::virtio::memory::Dma;
use crate::virtio::mmio::{self, Device, Slot};
use crate::virtio::net::Net;

const HARTS_MAX: usize = 64;

/// Slots are fixed, so that adding a disk renames no other device: disks from 0 up, then these two.
const SLOT_NET: usize = 6;
const SLOT_ENTROPY: usize = 7;
const DISKS_MAX: usize = SLOT_NET;

/// A register's place: the device and the offset in it.
enum Target {
    Finisher(u64),
    Plic(u64),
    Uart(u64),
    Slot(usize, u64),
}

/// Every device of the machine.
pub struct Bus {
    uart: Ns16550,
    plic: Plic,
    slots: Vec<Option<Slot>>,
    finish: Option<Finish>,
    dma_writes: Vec<(u64, u64)>,
    /// The earliest of the slots' events.
    next_event_cycle: u64,
    disk_use: DiskUse,
}

/// When disks had requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskUse {
    /// Cycles with at least one request in flight, up to `since` where one is now.
    cycles: u64,
    /// The cycle from which on requests have been in flight until now; none where none is.
    since: Option<u64>,
}

impl DiskUse {
    /// From `now` on some disk has a request in flight, or none has.
    fn update(&mut self, in_flight: bool, now: u64) {
        match (in_flight, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.cycles = self.cycles.saturating_add(now.saturating_sub(since));
                self.since = None;
            }
            _ => {}
        }
    }

    fn cycles(&self, now: u64) -> u64 {
        self.cycles.saturating_add(self.since.map_or(0, |since| now.saturating_sub(since)))
    }
}

impl Bus {
    /// Builds the board and opens its disk images.
    ///
    /// Fails on a number of harts or disks the board cannot have, an image that cannot be used, or a network
    /// script out of order.
    pub fn new(configuration: BusConfiguration) -> Result<Bus, DeviceError> {
        check_counts(&configuration)?;
        let mut slots: Vec<Option<Slot>> = (0..SLOT_COUNT).map(|_| None).collect();
        for (index, disk) in configuration.disks.iter().enumerate() {
            let block = Block::new(Disk::open(disk)?, index);
            slots[index] = Some(Slot::new(Device::Block(block)));
        }
        if let Some(net) = &configuration.net {
            slots[SLOT_NET] = Some(Slot::new(Device::Net(Net::new(net)?)));
        }
        if configuration.entropy {
            let entropy = Entropy::new(configuration.seed);
            slots[SLOT_ENTROPY] = Some(Slot::new(Device::Entropy(entropy)));
        }
        let mut bus = Bus {
            uart: Ns16550::new(),
            plic: Plic::new(configuration.harts),
            slots,
            finish: None,
            dma_writes: Vec::new(),
            next_event_cycle: u64::MAX,
            disk_use: DiskUse::default(),
        };
        bus.check_shared_images()?;
        bus.update_next_event();
        Ok(bus)
    }

    /// Reads `size_bytes` (1, 2, 4 or 8) at `address`. Faults where there is no device, or where the device
    /// does not take the size.
    pub fn read(&mut self, address: u64, size_bytes: u8, _now_cycles: u64) -> Result<u64, BusFault> {
        let size_fault = BusFault::Size { address, size_bytes };
        match locate(address, size_bytes)? {
            Target::Finisher(_) => Ok(0),
            Target::Uart(offset) => {
                let value = self.uart.read(offset);
                // Only taking a byte can leave a reason to interrupt that the driver has not been told of.
                self.update_uart_interrupt(offset == ns16550::DATA);
                Ok(u64::from(value))
            }
            Target::Plic(offset) if size_bytes == 4 => Ok(u64::from(self.plic.read(offset))),
            Target::Plic(_) => Err(size_fault),
            Target::Slot(index, offset) => match &self.slots[index] {
                Some(slot) => slot.read(offset, size_bytes).ok_or(size_fault),
                None => Ok(u64::from(mmio::read_unused(offset as u32))),
            },
        }
    }

    /// True when a device answers accesses of this address and size, if perhaps with a fault.
    pub fn claims(&self, address: u64, size_bytes: u8) -> bool {
        locate(address, size_bytes).is_ok()
    }

    /// Writes the low `size_bytes` (1, 2, 4 or 8) of `value` at `address`. Faults as `read` does. A device
    /// that the write starts may read and write guest memory at once.
    pub fn write(
        &mut self,
        address: u64,
        size_bytes: u8,
        value: u64,
        now_cycles: u64,
        memory: &GuestMemoryMmap<()>,
    ) -> Result<(), BusFault> {
        let size_fault = BusFault::Size { address, size_bytes };
        match locate(address, size_bytes)? {
            Target::Finisher(0) if matches!(size_bytes, 2 | 4) => {
                let mask = u32::MAX >> (32 - 8 * u32::from(size_bytes));
                self.finish = Finish::decode(value as u32 & mask).or(self.finish);
            }
            Target::Finisher(_) => return Err(size_fault),
            Target::Uart(offset) => {
                self.uart.write(offset, value as u8);
                self.update_uart_interrupt(true);
            }
            Target::Plic(offset) if size_bytes == 4 => self.plic.write(offset, value as u32),
            Target::Plic(_) => return Err(size_fault),
            Target::Slot(index, offset) => {
                let mut dma = Dma { memory, writes: &mut self.dma_writes };
                if let Some(slot) = &mut self.slots[index] {
                    slot.write(offset, size_bytes, value, &mut dma, now_cycles).ok_or(size_fault)?;
                    self.update_slot(index, now_cycles);
                }
            }
        }
        Ok(())
    }

    /// The cycle of the earliest event to come; `u64::MAX` when there is none.
    pub fn next_event_cycle(&self) -> u64 {
        self.next_event_cycle
    }

    /// Cycles up to `now` in which at least one request of a disk was in flight.
    #[inline]
    pub fn disk_use_cycles(&self, now: u64) -> u64 {
        self.disk_use.cycles(now)
    }

    /// Runs every event due at or before `now_cycles`, in the order of their cycles, and of their slots at
    /// the same cycle.
    pub fn advance(&mut self, now_cycles: u64, memory: &GuestMemoryMmap<()>) {
        while let Some(index) = self.due_slot(now_cycles) {
            let event_cycle = self.next_event_cycle;
            let mut dma = Dma { memory, writes: &mut self.dma_writes };
            if let Some(slot) = &mut self.slots[index] {
                slot.run_event(&mut dma);
            }
            self.update_slot(index, event_cycle);
        }
    }

    /// Bit h: hart h's S-mode external interrupt is asserted.
    pub fn external_interrupt_harts(&self) -> u64 {
        self.plic.external_interrupt_harts()
    }

    /// Ranges of guest memory that devices wrote since the last call: address and length in bytes.
    pub fn dma_writes(&mut self) -> std::vec::Drain<'_, (u64, u64)> {
        self.dma_writes.drain(..)
    }

    /// Takes the bytes that the guest wrote to its console since the last call.
    pub fn console_output(&mut self) -> std::vec::Drain<'_, u8> {
        self.uart.drain_output()
    }

    /// Writes to the console past the UART, for the firmware's debug console.
    pub fn console_write(&mut self, bytes: &[u8]) {
        self.uart.append_output(bytes);
    }

    /// Queues bytes typed on the host. They wait until the UART has room.
    pub fn console_input(&mut self, bytes: &[u8]) {
        self.uart.queue_input(bytes);
        self.update_uart_interrupt(true);
    }

    /// Takes a byte of input past the UART, for the firmware's debug console.
    pub fn console_read(&mut self) -> Option<u8> {
        let byte = self.uart.take_input();
        self.update_uart_interrupt(true);
        byte
    }

    /// Takes the guest's command to the finisher, if it gave one since the last call.
    pub fn take_finish(&mut self) -> Option<Finish> {
        self.finish.take()
    }

    /// The first failure of a host file since the last call. The guest has got an I/O error for it; the run
    /// should end, because it no longer follows from the configuration.
    pub fn take_host_error(&mut self) -> Option<DeviceError> {
        self.blocks_mut().find_map(Block::take_host_error)
    }

    /// The whole state. It holds the digests of the disk images only as far as [`Bus::disk_digests`] has been
    /// called since the images last changed; without a digest, a restore checks just the image's size.
    pub fn save(&self) -> BusState {
        BusState {
            uart: self.uart.clone(),
            plic: self.plic.clone(),
            slots: self.slots.iter().map(|slot| slot.as_ref().map(Slot::save)).collect(),
            finish: self.finish,
            dma_writes: self.dma_writes.clone(),
            disk_use: self.disk_use,
        }
    }

    /// Builds the board in a saved state.
    ///
    /// Latencies and paths may differ from those of the board that was saved, and a disk that was written may
    /// get an overlay. Fails where `new` does, and when the state has other devices than the board or an
    /// image has changed.
    pub fn restore(configuration: BusConfiguration, state: &BusState) -> Result<Bus, DeviceError> {
        check_counts(&configuration)?;
        state.plic.check(configuration.harts)?;
        if state.slots.len() != SLOT_COUNT {
            return Err(DeviceError::StateCorrupt { what: format!("{} virtio slots", state.slots.len()) });
        }
        let configured =
            configuration.disks.len() + usize::from(configuration.net.is_some()) + usize::from(configuration.entropy);
        let saved = state.slots.iter().flatten().count();
        if saved != configured {
            return Err(DeviceError::StateMismatch {
                saved: format!("{saved} virtio devices"),
                configured: format!("{configured}"),
            });
        }
        let mut slots = Vec::with_capacity(SLOT_COUNT);
        for (index, slot) in state.slots.iter().enumerate() {
            let disk = configuration.disks.get(index);
            let slot = slot.as_ref().map(|slot| Slot::restore(slot, &configuration, disk));
            slots.push(slot.transpose()?);
        }
        let mut bus = Bus {
            uart: state.uart.clone(),
            plic: state.plic.clone(),
            slots,
            finish: state.finish,
            dma_writes: state.dma_writes.clone(),
            next_event_cycle: u64::MAX,
            disk_use: state.disk_use,
        };
        bus.check_shared_images()?;
        bus.update_next_event();
        Ok(bus)
    }

    /// From now on the devices draw from this seed.
    pub fn reseed(&mut self, seed: u64) {
        for slot in self.slots.iter_mut().flatten() {
            if let Device::Entropy(entropy) = slot.device_mut() {
                entropy.reseed(seed);
            }
        }
    }

    /// Digests of the disk images, in the order of the disks. Reads each image that has changed since the
    /// last call.
    pub fn disk_digests(&mut self) -> Result<Vec<DiskDigest>, DeviceError> {
        self.blocks_mut().map(|block| block.disk_mut().describe()).collect()
    }

    /// The counters of all devices.
    pub fn statistics(&self) -> DeviceStatistics {
        let mut statistics = DeviceStatistics { uart: self.uart.statistics.clone(), ..DeviceStatistics::default() };
        for slot in self.slots.iter().flatten() {
            match slot.device() {
                Device::Block(block) => statistics.disks.push(block.statistics().clone()),
                Device::Net(net) => statistics.net = Some(net.statistics().clone()),
                Device::Entropy(entropy) => statistics.entropy_bytes = entropy.given_bytes(),
            }
        }
        statistics
    }

    /// Waits until the images that were written are on the host's storage. To be called at the end of a run.
    pub fn finish_disks(&mut self) -> Result<(), DeviceError> {
        self.blocks_mut().try_for_each(|block| block.disk().sync())
    }

    fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.slots.iter_mut().flatten().filter_map(|slot| match slot.device_mut() {
            Device::Block(block) => Some(block),
            _ => None,
        })
    }

    /// Refuses two disks on one file: each would change the other's content without its driver's knowledge.
    fn check_shared_images(&mut self) -> Result<(), DeviceError> {
        let mut seen = Vec::new();
        for block in self.blocks_mut() {
            let identity = block.disk().identity()?;
            let configuration = block.disk().configuration();
            let write = configuration.mode == DiskMode::Write;
            if seen.iter().any(|&(other, other_write)| other == identity && (write || other_write)) {
                return Err(DeviceError::DiskShared { path: configuration.path.clone() });
            }
            seen.push((identity, write));
        }
        Ok(())
    }

    /// The slot of the earliest event, if that is due.
    fn due_slot(&self, now_cycles: u64) -> Option<usize> {
        if self.next_event_cycle > now_cycles || self.next_event_cycle == u64::MAX {
            return None;
        }
        self.slots
            .iter()
            .position(|slot| slot.as_ref().is_some_and(|slot| slot.next_event_cycle() == self.next_event_cycle))
    }

    /// Takes the UART's line to the interrupt controller; with `asserts`, a high line counts as a new assertion.
    fn update_uart_interrupt(&mut self, asserts: bool) {
        if !self.uart.interrupt_level() {
            self.plic.lower(UART_INTERRUPT);
        } else if asserts {
            self.plic.raise(UART_INTERRUPT);
        }
    }

    /// A slot did something at `now`.
    fn update_slot(&mut self, index: usize, now: u64) {
        if let Some(slot) = &mut self.slots[index] {
            let asserts = slot.take_assertion();
            if !slot.interrupt_level() {
                self.plic.lower(SLOT_INTERRUPT + index);
            } else if asserts {
                self.plic.raise(SLOT_INTERRUPT + index);
            }
        }
        self.update_next_event();
        let is_busy = |slot: &Slot| matches!(slot.device(), Device::Block(_)) && slot.next_event_cycle() != u64::MAX;
        let in_flight = self.slots.iter().flatten().any(is_busy);
        self.disk_use.update(in_flight, now);
    }

    fn update_next_event(&mut self) {
        self.next_event_cycle = self.slots.iter().flatten().map(Slot::next_event_cycle).min().unwrap_or(u64::MAX);
    }
}

fn check_counts(configuration: &BusConfiguration) -> Result<(), DeviceError> {
    let harts = configuration.harts;
    if harts == 0 || harts > HARTS_MAX {
        return Err(DeviceError::HartCount { harts });
    }
    let disks = configuration.disks.len();
    if disks > DISKS_MAX {
        return Err(DeviceError::DiskCount { disks, disks_max: DISKS_MAX });
    }
    Ok(())
}

/// Finds the register an access is for. Accesses are naturally aligned, so none crosses from one device to
/// the next.
fn locate(address: u64, size_bytes: u8) -> Result<Target, BusFault> {
    if !matches!(size_bytes, 1 | 2 | 4 | 8) || !address.is_multiple_of(u64::from(size_bytes)) {
        return Err(BusFault::Size { address, size_bytes });
    }
    let slots = Range { size_bytes: SLOT.size_bytes * SLOT_COUNT as u64, ..SLOT };
    let registers = Range { size_bytes: ns16550::REGISTER_COUNT, ..UART };
    if let Some(offset) = slots.offset(address) {
        Ok(Target::Slot((offset / SLOT.size_bytes) as usize, offset % SLOT.size_bytes))
    } else if let Some(offset) = PLIC.offset(address) {
        Ok(Target::Plic(offset))
    } else if let Some(offset) = registers.offset(address) {
        Ok(Target::Uart(offset))
    } else if let Some(offset) = FINISHER.offset(address) {
        Ok(Target::Finisher(offset))
    } else {
        Err(BusFault::Unmapped { address })
    }
}

//! Virtio over MMIO, version 2 (virtio 1.2, section 4.2): the registers of one slot.

use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_config::{
    VIRTIO_CONFIG_S_ACKNOWLEDGE, VIRTIO_CONFIG_S_DRIVER, VIRTIO_CONFIG_S_DRIVER_OK, VIRTIO_CONFIG_S_FAILED,
    VIRTIO_CONFIG_S_FEATURES_OK, VIRTIO_CONFIG_S_NEEDS_RESET,
};
use virtio_bindings::virtio_mmio::*;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use vm_memory::GuestMemoryMmap;

use super::block::{Block, BlockState};
use super::entropy::{Entropy, EntropyState};
use super::memory::Dma;
use super::net::{Net, NetState};
use super::ring::{Ring, RingError, RingState};
use super::{COMMON_FEATURES, QUEUE_SIZE_MAX, VirtioDevice};
use crate::configuration::{BusConfiguration, DiskConfiguration};
use crate::error::DeviceError;

/// Size of the registers before the configuration space.
const CONFIG_OFFSET: u64 = VIRTIO_MMIO_CONFIG as u64;

const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
/// QEMU's, which xv6's driver compares.
const VENDOR: u32 = u32::from_le_bytes(*b"QEMU");

/// Status bits the driver may set; it sets and never clears them, except all at once by a reset.
const STATUS_DRIVER: u32 = VIRTIO_CONFIG_S_ACKNOWLEDGE
    | VIRTIO_CONFIG_S_DRIVER
    | VIRTIO_CONFIG_S_DRIVER_OK
    | VIRTIO_CONFIG_S_FEATURES_OK
    | VIRTIO_CONFIG_S_FAILED;

/// The device in a slot.
pub enum Device {
    Block(Block),
    Net(Net),
    Entropy(Entropy),
}

impl Device {
    fn get(&self) -> &dyn VirtioDevice {
        match self {
            Device::Block(block) => block,
            Device::Net(net) => net,
            Device::Entropy(entropy) => entropy,
        }
    }

    fn get_mut(&mut self) -> &mut dyn VirtioDevice {
        match self {
            Device::Block(block) => block,
            Device::Net(net) => net,
            Device::Entropy(entropy) => entropy,
        }
    }
}

/// The state of the device in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceState {
    Block(BlockState),
    Net(NetState),
    Entropy(EntropyState),
}

impl DeviceState {
    fn name(&self) -> &'static str {
        match self {
            DeviceState::Block(_) => "a disk",
            DeviceState::Net(_) => "a network device",
            DeviceState::Entropy(_) => "an entropy device",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Registers {
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    status: u32,
    interrupt_status: u32,
}

/// All of a slot that a saved machine needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    registers: Registers,
    rings: Vec<RingState>,
    device: DeviceState,
}

/// A slot with a device in it.
pub struct Slot {
    registers: Registers,
    rings: Vec<Ring>,
    device: Device,
    /// The device has asserted the interrupt line, anew or again, and the interrupt controller has not been told.
    /// The bus takes it after whatever sets it, so no saved slot has it.
    asserts: bool,
}

impl Slot {
    pub fn new(device: Device) -> Slot {
        let rings = (0..device.get().queue_count()).map(|_| Ring::new()).collect();
        Slot { registers: Registers::default(), rings, device, asserts: false }
    }

    pub fn save(&self) -> SlotState {
        SlotState {
            registers: self.registers.clone(),
            rings: self.rings.iter().map(Ring::state).collect(),
            device: match &self.device {
                Device::Block(block) => DeviceState::Block(block.save()),
                Device::Net(net) => DeviceState::Net(net.save()),
                Device::Entropy(entropy) => DeviceState::Entropy(entropy.save()),
            },
        }
    }

    /// Rebuilds a slot; `disk` is the disk the board has in it, if any.
    pub fn restore(
        state: &SlotState,
        configuration: &BusConfiguration,
        disk: Option<&DiskConfiguration>,
    ) -> Result<Slot, DeviceError> {
        let device = match (&state.device, disk, &configuration.net) {
            (DeviceState::Block(block), Some(disk), _) => Device::Block(Block::restore(disk, block)?),
            (DeviceState::Net(net), None, Some(configured)) => Device::Net(Net::restore(configured, net)?),
            (DeviceState::Entropy(entropy), None, _) if configuration.entropy => {
                Device::Entropy(Entropy::restore(entropy))
            }
            (device, ..) => {
                return Err(DeviceError::StateMismatch {
                    saved: device.name().to_string(),
                    configured: "something else in the same slot".to_string(),
                });
            }
        };
        if state.rings.len() != device.get().queue_count() {
            return Err(DeviceError::StateCorrupt {
                what: format!("{} queues for {}", state.rings.len(), state.device.name()),
            });
        }
        let rings = state.rings.iter().map(Ring::restore);
        Ok(Slot { registers: state.registers.clone(), rings: rings.collect::<Result<_, _>>()?, device, asserts: false })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    pub fn interrupt_level(&self) -> bool {
        self.registers.interrupt_status != 0
    }

    /// Whether the device has asserted its interrupt line since the last call.
    pub fn take_assertion(&mut self) -> bool {
        std::mem::take(&mut self.asserts)
    }

    pub fn next_event_cycle(&self) -> u64 {
        self.device.get().next_event_cycle()
    }

    /// Reads `size_bytes` (1, 2, 4 or 8, aligned) at `offset`. Only the configuration space takes sizes other
    /// than 4; `None` for others.
    pub fn read(&self, offset: u64, size_bytes: u8) -> Option<u64> {
        if offset >= CONFIG_OFFSET {
            return Some(self.read_config(offset - CONFIG_OFFSET, size_bytes));
        }
        (size_bytes == 4).then(|| u64::from(self.read_register(offset as u32)))
    }

    /// Writes a register; `None` when the size is not 4. No device has a configuration field that the driver
    /// writes.
    pub fn write(&mut self, offset: u64, size_bytes: u8, value: u64, dma: &mut Dma<'_>, now_cycles: u64) -> Option<()> {
        if offset >= CONFIG_OFFSET {
            return Some(());
        }
        if size_bytes != 4 {
            return None;
        }
        let value = value as u32;
        match offset as u32 {
            VIRTIO_MMIO_QUEUE_READY => self.write_queue_ready(value, dma.memory),
            VIRTIO_MMIO_QUEUE_NOTIFY => self.notify(value, dma, now_cycles),
            VIRTIO_MMIO_STATUS => self.write_status(value),
            offset => self.write_register(offset, value),
        }
        Some(())
    }

    /// Runs the first event that is due at `next_event_cycle`.
    pub fn run_event(&mut self, dma: &mut Dma<'_>) {
        let active = self.active();
        let rings: &mut [Ring] = if active { &mut self.rings } else { &mut [] };
        let result = self.device.get_mut().run_event(rings, dma);
        self.finish(result);
    }

    /// Whether the driver has said that it is ready, and nothing has gone wrong since.
    fn active(&self) -> bool {
        let wanted = VIRTIO_CONFIG_S_DRIVER_OK | VIRTIO_CONFIG_S_FEATURES_OK;
        let unwanted = VIRTIO_CONFIG_S_NEEDS_RESET | VIRTIO_CONFIG_S_FAILED;
        self.registers.status & (wanted | unwanted) == wanted
    }

    fn features(&self) -> u64 {
        COMMON_FEATURES | self.device.get().features()
    }

    fn selected_ring(&self) -> Option<&Ring> {
        self.rings.get(self.registers.queue_select as usize)
    }

    fn read_register(&self, offset: u32) -> u32 {
        match offset {
            VIRTIO_MMIO_DEVICE_ID => self.device.get().device_id(),
            VIRTIO_MMIO_DEVICE_FEATURES => match self.registers.device_features_select {
                0 => self.features() as u32,
                1 => (self.features() >> 32) as u32,
                _ => 0,
            },
            VIRTIO_MMIO_QUEUE_NUM_MAX => self.selected_ring().map_or(0, |_| u32::from(QUEUE_SIZE_MAX)),
            VIRTIO_MMIO_QUEUE_READY => self.selected_ring().is_some_and(Ring::ready).into(),
            VIRTIO_MMIO_INTERRUPT_STATUS => self.registers.interrupt_status,
            VIRTIO_MMIO_STATUS => self.registers.status,
            // There is no shared memory region: length and base of any read as all ones (section 4.2.2).
            VIRTIO_MMIO_SHM_LEN_LOW
            | VIRTIO_MMIO_SHM_LEN_HIGH
            | VIRTIO_MMIO_SHM_BASE_LOW
            | VIRTIO_MMIO_SHM_BASE_HIGH => u32::MAX,
            // The configuration never changes, so its generation stays 0 like every other register.
            offset => read_unused(offset),
        }
    }

    fn read_config(&self, offset: u64, size_bytes: u8) -> u64 {
        let config = self.device.get().config();
        let mut value = [0; 8];
        for (index, byte) in value.iter_mut().take(usize::from(size_bytes)).enumerate() {
            *byte = config.get(offset as usize + index).copied().unwrap_or(0);
        }
        u64::from_le_bytes(value)
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        let registers = &mut self.registers;
        match offset {
            VIRTIO_MMIO_DEVICE_FEATURES_SEL => registers.device_features_select = value,
            VIRTIO_MMIO_DRIVER_FEATURES_SEL => registers.driver_features_select = value,
            VIRTIO_MMIO_DRIVER_FEATURES => {
                if registers.status & VIRTIO_CONFIG_S_FEATURES_OK == 0 {
                    match registers.driver_features_select {
                        0 => set_low(&mut registers.driver_features, value),
                        1 => set_high(&mut registers.driver_features, value),
                        _ => {}
                    }
                }
            }
            VIRTIO_MMIO_QUEUE_SEL => registers.queue_select = value,
            VIRTIO_MMIO_INTERRUPT_ACK => {
                registers.interrupt_status &= !value;
                // A cause that the driver has left out asserts the line again.
                self.asserts = true;
            }
            _ => self.write_queue_setup(offset, value),
        }
    }

    fn write_queue_setup(&mut self, offset: u32, value: u32) {
        let ring = self.rings.get_mut(self.registers.queue_select as usize);
        let Some(setup) = ring.and_then(Ring::setup_mut) else {
            return;
        };
        match offset {
            VIRTIO_MMIO_QUEUE_NUM => setup.size = value,
            VIRTIO_MMIO_QUEUE_DESC_LOW => set_low(&mut setup.descriptor_table, value),
            VIRTIO_MMIO_QUEUE_DESC_HIGH => set_high(&mut setup.descriptor_table, value),
            VIRTIO_MMIO_QUEUE_AVAIL_LOW => set_low(&mut setup.available_ring, value),
            VIRTIO_MMIO_QUEUE_AVAIL_HIGH => set_high(&mut setup.available_ring, value),
            VIRTIO_MMIO_QUEUE_USED_LOW => set_low(&mut setup.used_ring, value),
            VIRTIO_MMIO_QUEUE_USED_HIGH => set_high(&mut setup.used_ring, value),
            _ => {}
        }
    }

    fn write_queue_ready(&mut self, value: u32, memory: &GuestMemoryMmap<()>) {
        let event_index = self.registers.driver_features & (1 << VIRTIO_RING_F_EVENT_IDX) != 0;
        let Some(ring) = self.rings.get_mut(self.registers.queue_select as usize) else {
            return;
        };
        if value & 1 == 0 {
            ring.disable();
        } else if !ring.ready() {
            let result = ring.enable(event_index, memory);
            self.finish(result.map(|()| false));
        }
    }

    fn write_status(&mut self, value: u32) {
        if value == 0 {
            self.registers = Registers::default();
            self.rings.iter_mut().for_each(Ring::reset);
            self.device.get_mut().reset();
            return;
        }
        let mut set = value & STATUS_DRIVER;
        let features = self.registers.driver_features;
        if features & !self.features() != 0 {
            set &= !VIRTIO_CONFIG_S_FEATURES_OK;
        }
        if set & !self.registers.status & VIRTIO_CONFIG_S_FEATURES_OK != 0 {
            self.device.get_mut().accept_features(features);
        }
        self.registers.status |= set;
    }

    fn notify(&mut self, index: u32, dma: &mut Dma<'_>, now_cycles: u64) {
        let index = index as usize;
        if self.active() && self.rings.get(index).is_some_and(Ring::ready) {
            let device = self.device.get_mut();
            let result = device.notify(index, &mut self.rings, dma, now_cycles);
            self.finish(result);
        }
    }

    /// Asserts the interrupt that a device asked for. A device that failed needs a reset (section 2.1.2).
    fn finish(&mut self, result: Result<bool, RingError>) {
        match result {
            Ok(true) => self.assert_interrupt(VIRTIO_MMIO_INT_VRING),
            Ok(false) => {}
            Err(_) => {
                if self.registers.status & VIRTIO_CONFIG_S_DRIVER_OK != 0 {
                    self.assert_interrupt(VIRTIO_MMIO_INT_CONFIG);
                }
                self.registers.status |= VIRTIO_CONFIG_S_NEEDS_RESET;
                self.device.get_mut().reset();
            }
        }
    }

    fn assert_interrupt(&mut self, cause: u32) {
        self.registers.interrupt_status |= cause;
        self.asserts = true;
    }
}

/// A register of a slot without a device: it says that it is virtio, and that nothing is there (device number
/// 0).
pub fn read_unused(offset: u32) -> u32 {
    match offset {
        VIRTIO_MMIO_MAGIC_VALUE => MAGIC,
        VIRTIO_MMIO_VERSION => VERSION,
        VIRTIO_MMIO_VENDOR_ID => VENDOR,
        _ => 0,
    }
}

fn set_low(register: &mut u64, value: u32) {
    *register = (*register & !0xffff_ffff) | u64::from(value);
}

fn set_high(register: &mut u64, value: u32) {
    *register = (*register & 0xffff_ffff) | (u64::from(value) << 32);
}

//! Where devices are: the memory map and the interrupt sources of QEMU's `virt` board, as far as the two have the same
//! devices. The bus decodes addresses by it, and the machine writes its device tree from it.

/// Addresses of one device, or of several equal ones in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub base: u64,
    pub size_bytes: u64,
}

impl Range {
    /// The offset of an address in the range, if it is in it.
    pub(crate) fn offset(self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.size_bytes).then_some(offset)
    }
}

/// `sifive,test1`: ends the run.
pub const FINISHER: Range = Range { base: 0x0010_0000, size_bytes: 0x1000 };
/// `sifive,plic-1.0.0`.
pub const PLIC: Range = Range { base: 0x0c00_0000, size_bytes: 0x0060_0000 };
/// `ns16550a`. Only its eight registers answer.
pub const UART: Range = Range { base: 0x1000_0000, size_bytes: 0x100 };
pub const UART_INTERRUPT: usize = 10;

/// Slots for virtio devices, `virtio,mmio` each. A driver reads from a slot which device is in it.
pub const SLOT_COUNT: usize = 8;
/// The first slot; the others follow it.
pub const SLOT: Range = Range { base: 0x1000_1000, size_bytes: 0x1000 };
/// The interrupt source of the first slot; the others follow it.
pub const SLOT_INTERRUPT: usize = 1;

/// Interrupt sources of the PLIC with source 0, which does not exist.
pub use crate::plic::SOURCE_COUNT as INTERRUPT_COUNT;

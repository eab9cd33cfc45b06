//! The guest's RAM: one region of host memory, mapped lazily.

use vm_memory::{GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

/// The first physical address of RAM.
pub const RAM_BASE: u64 = 0x8000_0000;
pub const PAGE_BYTES: u64 = 4096;
pub const LINE_BYTES: u64 = 64;
pub const PAGE_SHIFT: u32 = 12;
pub const LINE_SHIFT: u32 = 6;

/// The host could not provide the guest's RAM.
#[derive(Debug, thiserror::Error)]
#[error("cannot map {size_bytes} bytes of guest memory: {reason}")]
pub struct RamError {
    size_bytes: u64,
    reason: String,
}

/// The guest's RAM.
pub struct Ram {
    memory: GuestMemoryMmap<()>,
    host: *mut u8,
    size_bytes: u64,
}

// SAFETY: `host` points into the mapping that `memory` owns. The mapping moves with it and is not tied to a thread.
unsafe impl Send for Ram {}

impl Ram {
    /// Maps `size_bytes` of zeroed RAM (a multiple of the page size) at [`RAM_BASE`].
    pub fn new(size_bytes: u64) -> Result<Ram, RamError> {
        let error = |reason: String| RamError { size_bytes, reason };
        let length = usize::try_from(size_bytes).map_err(|cause| error(cause.to_string()))?;
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(RAM_BASE), length)])
            .map_err(|cause| error(cause.to_string()))?;
        let host = memory.get_host_address(GuestAddress(RAM_BASE)).map_err(|cause| error(cause.to_string()))?;
        Ok(Ram { memory, host, size_bytes })
    }

    /// The same memory for the devices and the loader.
    pub fn memory(&self) -> &GuestMemoryMmap<()> {
        &self.memory
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub fn pages(&self) -> usize {
        (self.size_bytes >> PAGE_SHIFT) as usize
    }

    /// True if `length` bytes from the physical address `address` all lie in RAM.
    #[inline]
    pub fn contains(&self, address: u64, length: u64) -> bool {
        let offset = address.wrapping_sub(RAM_BASE);
        offset < self.size_bytes && length <= self.size_bytes - offset
    }

    /// The host's address of a physical address inside RAM.
    #[inline]
    pub fn host_address(&self, address: u64) -> *mut u8 {
        assert!(self.contains(address, 1));
        // SAFETY: the offset lies inside the mapping, as just asserted.
        unsafe { self.host.add((address - RAM_BASE) as usize) }
    }

    /// Reads `size_bytes` (1, 2, 4 or 8) little-endian bytes at a physical address whose whole range lies in RAM.
    #[inline]
    pub fn read(&self, address: u64, size_bytes: u64) -> u64 {
        assert!(self.contains(address, size_bytes));
        let host = self.host_address(address);
        // SAFETY: the whole range lies inside the mapping, as just asserted. The sizes are written out, because a copy
        // whose length is known only at run time is a call.
        unsafe {
            match size_bytes {
                1 => u64::from(host.read()),
                2 => u64::from(u16::from_le_bytes(host.cast::<[u8; 2]>().read())),
                4 => u64::from(u32::from_le_bytes(host.cast::<[u8; 4]>().read())),
                8 => u64::from_le_bytes(host.cast::<[u8; 8]>().read()),
                _ => panic!("an access of {size_bytes} bytes"),
            }
        }
    }

    /// Writes the low `size_bytes` (1, 2, 4 or 8) of `value` at a physical address whose whole range lies in RAM.
    #[inline]
    pub fn write(&self, address: u64, size_bytes: u64, value: u64) {
        assert!(self.contains(address, size_bytes));
        let host = self.host_address(address);
        // SAFETY: as in `read`.
        unsafe {
            match size_bytes {
                1 => host.write(value as u8),
                2 => host.cast::<[u8; 2]>().write((value as u16).to_le_bytes()),
                4 => host.cast::<[u8; 4]>().write((value as u32).to_le_bytes()),
                8 => host.cast::<[u8; 8]>().write(value.to_le_bytes()),
                _ => panic!("an access of {size_bytes} bytes"),
            }
        }
    }

    /// The bytes of the page with this index.
    pub fn page(&self, index: usize) -> &[u8] {
        assert!(index < self.pages());
        // SAFETY: the page lies inside the mapping, which lives as long as self. Harts and devices are the only
        // writers; they run on the caller's thread and not while this borrow is in use.
        unsafe { std::slice::from_raw_parts(self.host.add(index << PAGE_SHIFT), PAGE_BYTES as usize) }
    }

    /// Overwrites the page with this index.
    pub fn set_page(&mut self, index: usize, bytes: &[u8; PAGE_BYTES as usize]) {
        assert!(index < self.pages());
        // SAFETY: the page lies inside the mapping and self is borrowed for writing.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.host.add(index << PAGE_SHIFT), bytes.len());
        }
    }
}

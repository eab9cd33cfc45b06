//! Memory for host code: written through one mapping, and executed through another.
//!
//! Both show the same pages, so that no mapping is ever writable and executable, and code may be written beside code that
//! is executing. Functions lie close together: one on a page of its own would share the same few sets of the host's instruction
//! caches with every other, and take an entry of its translation cache.

use crate::TranslatorError;
use rustix::mm::{MapFlags, MprotectFlags, MremapFlags, ProtFlags, mmap_anonymous, mprotect, mremap, munmap};
use std::ffi::c_void;

/// Functions begin at lines of the host's instruction cache.
const ALIGNMENT_BYTES: usize = 64;

/// A mapping of all the memory.
struct Mapping {
    address: *mut c_void,
    size_bytes: usize,
}

// SAFETY: a mapping is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: sharing one gives nothing but its address.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and whoever was given an address in it has promised to be done with it.
        let unmapped = unsafe { munmap(self.address, self.size_bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Code that is never moved, nor freed before all of it.
pub struct CodeMemory {
    writable: Mapping,
    executable: Mapping,
}

impl CodeMemory {
    /// Memory for `size_bytes` of code, which takes host memory where it is written.
    ///
    /// # Errors
    /// If the host refuses it.
    pub fn new(size_bytes: usize) -> Result<CodeMemory, TranslatorError> {
        CodeMemory::map(size_bytes).map_err(|error| TranslatorError::Memory(error.to_string()))
    }

    /// The second mapping is a copy of the first (mremap(2), with an old size of 0). Hosts that let no memory become executable let
    /// executable memory become writable instead. A file would be subject to the process's limit on files.
    fn map(size_bytes: usize) -> rustix::io::Result<CodeMemory> {
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: the mappings are new, at addresses that the host chooses.
        unsafe {
            let address = mmap_anonymous(std::ptr::null_mut(), size_bytes, protection, MapFlags::SHARED)?;
            let executable = Mapping { address, size_bytes };
            let writable = Mapping { address: mremap(address, 0, size_bytes, MremapFlags::MAYMOVE)?, size_bytes };
            mprotect(writable.address, size_bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            Ok(CodeMemory { writable, executable })
        }
    }

    /// Puts code behind the first `used_bytes`, which are those that earlier calls said, and says how many are used then.
    /// Returns where it executes; `None` if there is no room for it.
    ///
    /// # Safety
    /// No other call is under way.
    pub unsafe fn push(&self, code: &[u8], used_bytes: &mut usize) -> Option<*const u8> {
        let begin = used_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let end = begin.checked_add(code.len()).filter(|end| *end <= self.writable.size_bytes)?;
        // SAFETY: the range lies in both mappings, and nobody executes it yet.
        let executable = unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.writable.address.cast::<u8>().add(begin), code.len());
            self.executable.address.cast::<u8>().cast_const().add(begin)
        };
        *used_bytes = end;
        make_visible(executable, code.len()).then_some(executable)
    }
}

/// Makes code that was just written visible to the processors that will execute it.
#[cfg(target_arch = "aarch64")]
fn make_visible(code: *const u8, size_bytes: usize) -> bool {
    use wasmtime_internal_jit_icache_coherence::{clear_cache, pipeline_flush_mt};
    // SAFETY: the range is mapped.
    unsafe { clear_cache(code.cast(), size_bytes).is_ok() && pipeline_flush_mt().is_ok() }
}

/// The processors of this host see what is written.
#[cfg(not(target_arch = "aarch64"))]
fn make_visible(_: *const u8, _: usize) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_lies_close_together_and_ends_where_the_memory_does() {
        let memory = CodeMemory::new(4096).expect("this host executes what is written");
        let mut used = 0;
        // SAFETY: nothing else calls.
        let mut push = |code: &[u8]| unsafe { memory.push(code, &mut used) };
        let first = push(&[1, 2, 3]).expect("there is room");
        let second = push(&[4; 4000]).expect("there is room");
        assert_eq!(second.addr() - first.addr(), ALIGNMENT_BYTES);
        // SAFETY: the addresses are those of three and 4000 bytes.
        unsafe {
            assert_eq!(std::slice::from_raw_parts(first, 3), [1, 2, 3]);
            assert_eq!(std::slice::from_raw_parts(second, 4000), [4; 4000]);
        }
        assert!(push(&[0; 33]).is_none(), "32 bytes are left");
        assert!(push(&[0; 32]).is_none(), "they do not begin at a line");
    }
}

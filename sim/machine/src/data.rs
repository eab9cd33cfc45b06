//! Names of the guest's data: by symbol, and in the memory of a Linux kernel by the object that an address lies in.
//!
//! A name is looked up when the region of interest or the run ends: an object that was freed before that has the name of
//! what lies there then. Guest memory is read as it is and may hold anything, so every step of a look-up may fail, and the data
//! then have the name that is left: their symbol, or their address.

mod caches;
mod kernel;
mod pages;
mod per_cpu;
mod stacks;
#[cfg(test)]
mod tests;

use crate::accounting::statistics::Region;
use crate::machine::Machine;
use crate::result::name;
use crate::symbols::SymbolTable;
use crate::types::{TypeFile, Types, Wanted};
use kernel::Kernel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What names of data need of a kernel's debugging information.
pub(crate) fn wanted_types() -> Wanted<'static> {
    Wanted { structures: caches::STRUCTURES, enumerations: pages::ENUMERATIONS, roots: kernel::ROOTS }
}

/// The names of data in accounts of the region of interest, as they were at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataNames {
    /// By physical address.
    words: BTreeMap<u64, String>,
    /// By the address that the guest's hints gave.
    locks: BTreeMap<u64, String>,
}

impl DataNames {
    /// The name of the word at a physical address.
    pub fn word(&self, address: u64) -> String {
        self.words.get(&address).cloned().unwrap_or_else(|| name(None, address))
    }

    /// The name of a lock.
    pub fn lock(&self, address: u64) -> String {
        self.locks.get(&address).cloned().unwrap_or_else(|| name(None, address))
    }
}

/// Whether a name is a mere address.
pub(crate) fn is_address(name: &str) -> bool {
    name.starts_with("0x")
}

/// Names data by the machine's memory as it is.
pub(crate) struct DataNamer<'a> {
    symbols: Option<&'a SymbolTable>,
    types: Option<&'a Types>,
    kernel: Option<Kernel<'a>>,
}

impl<'a> DataNamer<'a> {
    /// By the symbols of a machine, and by its types if they have been read.
    pub fn new(machine: &'a Machine) -> DataNamer<'a> {
        let satps = machine.harts.iter().zip(&machine.memory.hot).map(|(hart, hot)| hart.context(hot).satp);
        let types = machine.types.types();
        let kernel = types.and_then(|types| Kernel::new(&machine.memory.ram, types, satps));
        DataNamer { symbols: machine.symbols.as_ref(), types, kernel }
    }

    pub fn names(&self, words: impl IntoIterator<Item = u64>, locks: impl IntoIterator<Item = u64>) -> DataNames {
        DataNames {
            words: words.into_iter().map(|address| (address, self.word(address))).collect(),
            locks: locks.into_iter().map(|address| (address, self.lock(address))).collect(),
        }
    }

    /// The name of the data at a physical address.
    pub fn word(&self, address: u64) -> String {
        let page = self.kernel.as_ref().and_then(|kernel| kernel.page(address).map(|page| (kernel, page)));
        if let Some((kernel, page)) = &page
            && let Some(name) = pages::object_name(kernel, page, address)
        {
            return name;
        }
        let linked = self.symbols.and_then(|symbols| symbols.linked_address_of_data(address));
        linked
            .and_then(|linked| self.variable(linked))
            .or_else(|| self.kernel.as_ref().and_then(|kernel| self.name_in_kernel(kernel, address)))
            .or_else(|| page.filter(|(_, page)| page.is_free()).map(|_| "[free page]".to_owned()))
            .unwrap_or_else(|| name(None, address))
    }

    /// The name of the data at an address as the kernel has it.
    pub fn lock(&self, address: u64) -> String {
        let physical = self.kernel.as_ref().and_then(|kernel| kernel.physical(address));
        let named = physical.map(|physical| self.word(physical)).filter(|name| !is_address(name));
        named.or_else(|| self.variable(address)).unwrap_or_else(|| name(None, address))
    }

    /// The name of the variable at the address that it was linked for.
    fn variable(&self, linked: u64) -> Option<String> {
        let (symbol, offset) = self.symbols?.lookup_data(linked)?;
        let member = self.types.and_then(|types| types.member_of_variable(linked - offset, offset));
        Some(match member {
            Some(member) => format!("{symbol}{member}"),
            None => name(Some((symbol, offset)), linked),
        })
    }

    /// The name of data that the kernel allocated before it had an allocator of pages, or keeps no account of.
    fn name_in_kernel(&self, kernel: &Kernel, address: u64) -> Option<String> {
        if let Some(name) = pages::descriptor_name(kernel, address) {
            return Some(name);
        }
        if let Some((processor, linked)) = kernel.per_cpu(address) {
            let name = linked.and_then(|linked| self.variable(linked));
            return Some(match name {
                Some(name) => format!("{name} [cpu {processor}]"),
                None => format!("[per-cpu allocation] [cpu {processor}]"),
            });
        }
        kernel.stack(address).map(|task| format!("[stack of {task}]"))
    }
}

impl Machine {
    /// The file whose debugging information says of which types the guest's data are. It is read if there is something to
    /// be named by it, and may have none. With `is_kept` it is one that never changes, in a folder of the program's own: what was
    /// read of it is kept there, because reading takes half a second.
    pub fn set_types_file(&mut self, path: &Path, is_kept: bool) {
        self.types = TypeFile::Unread { path: path.to_owned(), is_kept };
    }

    /// Whether this machine has read types, or the snapshot that it resumes had them.
    pub fn has_types(&self) -> bool {
        self.types.types().is_some()
    }

    /// The names of the data in the accounts of a region.
    pub(crate) fn data_names(&mut self, region: &Region) -> DataNames {
        let mut words = region.conflicts.iter().map(|(key, _)| key.address).peekable();
        let mut locks = region.sections.lock_addresses().peekable();
        if words.peek().is_none() && locks.peek().is_none() {
            return DataNames::default();
        }
        self.types.read();
        DataNamer::new(self).names(words, locks)
    }
}

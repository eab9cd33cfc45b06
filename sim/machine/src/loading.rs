//! Loading: a new machine with its kernel, initial RAM disk and device tree in memory, before its first instruction.

use crate::configuration::Configuration;
use crate::device_tree::{self, EXTENSIONS, VIRTIO_SLOTS_MAX};
use crate::error::MachineError;
use crate::loader;
use crate::machine::Machine;
use crate::types::TypeFile;
use concord_abi::htm;
use concord_htm::policy::Mode;

impl Machine {
    /// Builds the machine and loads the kernel: the state before the first instruction.
    pub fn new(configuration: Configuration) -> Result<Machine, MachineError> {
        let mut machine = Machine::bare(configuration)?;
        let configuration = &machine.configuration;
        let ram = &machine.memory.ram;
        let loaded = loader::load(ram.memory(), &configuration.kernel, configuration.initrd.as_deref())?;
        let has_transactions = configuration.board.transactions.mode != Mode::None;
        let extensions: Vec<&str> =
            EXTENSIONS.iter().copied().filter(|name| has_transactions || *name != htm::EXTENSION).collect();
        let tree = device_tree::build(
            &configuration.board,
            &configuration.append,
            loaded.initrd.clone(),
            configuration.seed,
            // Used or not, as on QEMU's board: behind the slots that disks may take are those of net and entropy.
            VIRTIO_SLOTS_MAX,
            &extensions,
        )?;
        loader::write_device_tree(ram.memory(), &loaded, &tree)?;
        for range in [Some(loaded.kernel.clone()), loaded.initrd.clone()].into_iter().flatten() {
            machine.memory.note_loaded(range.start, range.end - range.start);
        }
        machine.memory.note_loaded(loaded.device_tree_address, tree.len() as u64);
        machine.symbols = loaded.symbols;
        machine.types = TypeFile::Unread { path: machine.configuration.kernel.clone(), is_kept: false };
        machine.start_hart(0, loaded.entry, loaded.device_tree_address, 0);
        if machine.configuration.check_isolation {
            machine.watch_isolation();
        }
        Ok(machine)
    }
}

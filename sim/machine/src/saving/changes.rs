//! What a resumed run has otherwise than the run that its snapshot was taken of: one snapshot starts any number of runs.

use crate::error::MachineError;
use crate::machine::Machine;
use concord_htm::manager::Manager;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What to change. Everything that is not named stays as the snapshot has it, the device tree that the guest has read included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// From here on miss latencies, back-off and the bytes of the entropy device are drawn from this seed. The seed that the run
    /// has already changes nothing.
    pub seed: Option<u64>,
    /// Who goes on when two transactions meet. Transactions that live are not restarted.
    pub contention_manager: Option<Manager>,
}

/// What applied up to a change, so that a run can be traced to everything that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Instructions of all harts together when the change was made.
    pub instructions: u64,
    /// The seed until then.
    pub seed: u64,
    /// The contention manager until then.
    pub contention_manager: Manager,
}

impl Machine {
    /// The machine that a snapshot holds, changed. With no changes, or with such as change nothing, its run is the one that was
    /// not interrupted; with others it follows from the snapshot and the changes alone.
    ///
    /// # Errors
    /// As [`Machine::resume`].
    pub fn resume_with(path: &Path, changes: Changes) -> Result<Machine, MachineError> {
        let mut machine = Machine::resume(path)?;
        machine.change(changes);
        Ok(machine)
    }

    fn change(&mut self, changes: Changes) {
        let before = Changed {
            instructions: self.accounting.instructions,
            seed: self.configuration.seed,
            contention_manager: self.configuration.board.transactions.manager,
        };
        let seed = changes.seed.unwrap_or(before.seed);
        let manager = changes.contention_manager.unwrap_or(before.contention_manager);
        if seed != before.seed {
            self.configuration.seed = seed;
            self.memory.reseed(seed);
            self.transactions.reseed(seed);
            self.bus.reseed(seed);
        }
        if manager != before.contention_manager {
            self.configuration.board.transactions.manager = manager;
            self.transactions.set_manager(manager);
        }
        if seed != before.seed || manager != before.contention_manager {
            self.changed.push(before);
        }
    }
}

//! The door between the machine and the executor of a hart's ops.
//!
//! An executor works on a hart's hot state (`concord_mem::hot`) and on decoded ops, and knows nothing else of the
//! machine. An access that the line table does not answer passes through the [`Door`]; an op that only the machine can
//! execute ends the run with a [`Stop`].

use crate::execute::position::Position;
use concord_htm::Loss;
use concord_isa::op::Op;
use concord_mem::fault::Fault;
use concord_mem::system::Refusal;

/// The way in which execution left a run.
pub(crate) enum Left {
    /// The position is behind the run's last op; the hart continues at `target`, relative to the address of the run's page.
    Gone { at: Position, target: u64 },
    /// Every op before `op` completed, but `op` did not.
    Stopped { at: Position, op: *const Op, stop: Stop },
}

/// The reason why a run ended at an op that did not complete.
pub(crate) enum Stop {
    /// The op raised an exception.
    Trap { cause: u64, value: u64 },
    /// The machine executes the op between runs.
    System,
    /// The hart's transaction lost.
    Lost(Box<Loss>),
    /// A transaction conflicts, and the hart tries the op again after this many cycles.
    Wait { cycles: u64 },
    /// The op waits for its line and has not executed: the hart executes it at its turn in the line's queue.
    Queued,
    /// The contention manager refuses a compare-and-swap for now.
    Refused,
    /// A transaction cannot execute this op.
    Irrevocable,
    /// The run of the whole machine is over.
    Ended,
}

impl From<Fault> for Stop {
    #[cold]
    fn from(fault: Fault) -> Stop {
        Stop::Trap { cause: fault.cause(), value: fault.address }
    }
}

impl From<Refusal> for Stop {
    #[cold]
    fn from(refusal: Refusal) -> Stop {
        match refusal {
            Refusal::Fault(fault) => fault.into(),
            Refusal::Queued => Stop::Queued,
        }
    }
}

/// The machine's services for an executor during a run. Calls may change the hart's hot state in place, and all other
/// state of the machine; they never move the hot state or the ops of the run.
pub(crate) trait Door {
    /// Loads `size_bytes` (1, 2, 4, 8) little-endian bytes, zero-extended.
    fn load(&mut self, at: Position, address: u64, size_bytes: u64) -> Result<u64, Stop>;

    /// Stores the low `size_bytes` (1, 2, 4, 8) of `value`.
    fn store(&mut self, at: Position, address: u64, size_bytes: u64, value: u64) -> Result<(), Stop>;

    /// Runs one atomic read-modify-write at a naturally aligned address; `update` gets the old value and returns the
    /// new one. Returns the old value. `unread` is the operand of an addition whose result nobody reads: a transaction
    /// may defer it.
    fn read_modify_write(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        unread: Option<u64>,
        update: impl FnOnce(u64) -> u64,
    ) -> Result<u64, Stop>;

    /// An atomic begins that the line table answers. Those that call the door are noted by their calls. It only counts.
    fn note_atomic(&mut self, at: Position, address: u64);

    /// Load-reserved at a naturally aligned address (unprivileged specification, "Zalrsc"). The reservation set is the line.
    fn load_reserved(&mut self, at: Position, address: u64, size_bytes: u64) -> Result<u64, Stop>;

    /// Store-conditional at a naturally aligned address; true if it stored.
    fn store_conditional(&mut self, at: Position, address: u64, size_bytes: u64, value: u64) -> Result<bool, Stop>;

    /// `pause` (unprivileged specification, "Zihintpause"), in the timed gear.
    fn pause(&mut self, hart: usize);

    /// A lock hint. It only counts.
    fn lock_hint(&mut self, at: Position, code: u16, lock: u64, call_site: u64);
}

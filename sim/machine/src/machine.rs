//! The machine: its parts, and how they are put together.
//!
//! Everything happens on one host thread; nothing depends on the host. Each part is a file and, where it is large, a folder:
//! `order` says who is next, `execute` runs a hart, `transaction` joins it to the engine of `sim/htm`, `accounting` counts, `loading`
//! fills it, `saving` writes and reads snapshots, `debugging` breaks turns off.

use crate::accounting::Accounting;
use crate::configuration::{Configuration, Gear};
use crate::console::Console;
use crate::debugging::debug::Debug;
use crate::error::MachineError;
use crate::events::{End, Event};
use crate::execute::code::CodeCache;
use crate::execute::translation::Translation;
use crate::hart::Hart;
use crate::order::Order;
use crate::planted::PlantedFault;
use crate::saving::changes::Changed;
use crate::symbols::SymbolTable;
use crate::transaction::{Transactions, Watch};
use crate::types::TypeFile;
use concord_dev::Bus;
use concord_mem::hot::HotState;
use concord_mem::ram::Ram;
use concord_mem::system::MemorySystem;

/// A whole machine.
pub struct Machine {
    pub(crate) configuration: Configuration,
    /// What resuming has changed of the configuration, the first change first.
    pub(crate) changed: Vec<Changed>,
    pub(crate) harts: Vec<Hart>,
    pub(crate) memory: MemorySystem,
    pub(crate) bus: Bus,
    pub(crate) order: Order,
    pub(crate) code: CodeCache,
    pub(crate) translation: Translation,
    pub(crate) accounting: Accounting,
    pub(crate) console: Console,
    pub(crate) symbols: Option<SymbolTable>,
    pub(crate) types: TypeFile,
    pub(crate) events: Vec<(usize, Event)>,
    pub(crate) end: Option<End>,
    pub(crate) transactions: Transactions,
    pub(crate) watch: Watch,
    pub(crate) debug: Debug,
    /// See [`crate::planted`].
    pub(crate) planted: Option<PlantedFault>,
}

impl Machine {
    /// The machine with empty memory and no hart started.
    pub(crate) fn bare(configuration: Configuration) -> Result<Machine, MachineError> {
        let board = &configuration.board;
        board.validate()?;
        let ram = Ram::new(board.memory.size_bytes)?;
        let harts = board.harts.count;
        let translation = Translation::new();
        let code = CodeCache::new(ram.pages(), translation.heat_wanted());
        let mut memory = MemorySystem::new(ram, harts, configuration.model(), configuration.seed);
        memory.set_timed(configuration.gear == Gear::Timed);
        Ok(Machine {
            bus: Bus::new(configuration.bus())?,
            harts: vec![Hart::default(); harts],
            memory,
            code,
            translation,
            console: Console::default(),
            symbols: None,
            types: TypeFile::Read(None),
            order: Order::new(harts, board.clock.frequency_hertz / board.clock.timebase_hertz),
            accounting: Accounting::new(harts),
            watch: Watch::default(),
            events: Vec::new(),
            end: None,
            transactions: Transactions::new(harts, configuration.policy(), configuration.seed),
            debug: Debug::default(),
            planted: None,
            changed: Vec::new(),
            configuration,
        })
    }

    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub fn harts(&self) -> &[Hart] {
        &self.harts
    }

    /// Each hart's registers, clock and instruction count.
    pub fn hot_states(&self) -> &[HotState] {
        &self.memory.hot
    }

    /// The number of harts whose instruction waits for its line.
    pub fn waiting_harts(&self) -> usize {
        self.memory.requests().flatten().count()
    }

    /// Instructions retired by all harts.
    pub fn instructions(&self) -> u64 {
        self.accounting.instructions
    }

    /// How the run ended, once it has.
    pub fn ended(&self) -> Option<End> {
        self.end
    }

    /// The kernel's symbols, from a file instead of from the kernel.
    pub fn set_symbols(&mut self, symbols: SymbolTable) {
        self.symbols = Some(symbols);
    }

    pub fn gear(&self) -> Gear {
        if self.memory.is_timed() { Gear::Timed } else { Gear::Functional }
    }
}

//! The result document: everything a run says about itself, in one JSON object.

use crate::accounting::critical_sections::report::{SectionLockResult, SectionResult, SectionTotals};
use crate::accounting::sizes::TransactionSizes;
use crate::accounting::statistics::SAMPLE_CYCLES;
use crate::configuration::{Configuration, Gear};
use crate::data::DataNames;
use crate::error::MachineError;
use crate::hart::Privilege;
use crate::machine::Machine;
use crate::run::Outcome;
use crate::saving::changes::Changed;
use crate::symbols::SymbolTable;
use concord_abi::exit::Exit;
use concord_dev::DeviceStatistics;
use concord_htm::kinds::Kinds;
use concord_htm::profile::{ConflictKey, Profile};
use concord_mem::contention::QueueCounters;
use concord_mem::ram::PAGE_BYTES;
use concord_mem::system::Counters as CacheCounters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use concord_htm::kinds::{ConflictKind, KindTotals, PairDetails};
pub use concord_htm::manager::Rule;
pub use concord_htm::profile::ConflictTotals;
pub use concord_htm::statistics::{Counters as TransactionCounters, RestartCounts};

/// The format of this document; a field that changes its meaning changes this.
const FORMAT: u32 = 1;

/// What a run was, did and cost. Counts are of the region of interest where the guest marked one, and of the whole run
/// otherwise; `instructions` and `clock_cycles` are always of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    pub format: u32,
    /// The version of the program that ran it.
    pub version: String,
    pub exit: Exit,
    pub exit_code: u8,
    /// What the guest reported when it failed.
    pub guest_code: u64,
    pub message: Option<String>,
    /// BLAKE3 of the final state.
    pub digest: String,
    pub gear: Gear,
    pub instructions: u64,
    pub clock_cycles: u64,
    /// Guest memory that may hold something other than zeroes.
    pub touched_bytes: u64,
    /// Wall-clock time of the run on the host: the only field that two equal runs do not share, and so one that kept runs lack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_seconds: Option<f64>,
    pub region: bool,
    pub region_cycles: u64,
    pub harts: Vec<HartResult>,
    /// Where the time went, most first.
    pub functions: Vec<FunctionResult>,
    /// Call sites of the critical sections that the guest's hints spoke of, most cycles lost to synchronization first.
    pub sections: Vec<SectionResult>,
    /// All of them together, by the kind of lock.
    pub section_totals: BTreeMap<String, SectionTotals>,
    /// The 200 locks that most cycles were lost to.
    pub section_locks: Vec<SectionLockResult>,
    /// How large the committed transactions were.
    #[serde(default)]
    pub transaction_sizes: TransactionSizes,
    /// Conflicts that transactions had a part in, most lost cycles first.
    pub conflicts: Vec<ConflictResult>,
    /// All of them together, those included that are too many to be told apart.
    pub conflict_totals: ConflictTotals,
    /// The same by kind: `transactions`, `asymmetric`, `granted` and `refused`.
    #[serde(default)]
    pub conflict_kinds: BTreeMap<String, KindTotals>,
    pub devices: DeviceStatistics,
    pub configuration: Configuration,
    /// What the configuration was before a resume changed it, the first change first.
    pub changed: Vec<Changed>,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
}

/// One hart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HartResult {
    pub instructions: u64,
    pub user_cycles: u64,
    pub supervisor_cycles: u64,
    /// Waiting for an interrupt, I/O wait included.
    pub idle_cycles: u64,
    /// The part of `idle_cycles` in which at least one request of a disk was in flight, whoever waited for it; known to a quantum
    /// for each stretch.
    pub io_wait_cycles: u64,
    /// Critical sections that it executed, as locks or as transactions.
    #[serde(default)]
    pub sections_count: u64,
    #[serde(flatten)]
    pub counters: CacheCounters,
    /// Absent in documents of versions without queues.
    #[serde(flatten)]
    pub queues: QueueCounters,
    pub transactions: TransactionCounters,
}

/// Conflicts of one kind: the same two places, word, winner and rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConflictResult {
    /// The instruction whose access found the conflict; `[device]` where it was none.
    pub requester: String,
    /// The instruction that first accessed the word in the transaction that had it.
    pub holder: String,
    /// The name of the word: its symbol, or the member of the kernel's object in which it lies; its physical address where
    /// neither is known. Words of different objects have one name.
    pub address: String,
    /// Physical address of the word; 0 in documents of earlier versions.
    #[serde(default)]
    pub physical_address: u64,
    pub requester_is_transactional: bool,
    pub requester_writes: bool,
    pub winner: Winner,
    pub rule: Rule,
    #[serde(flatten)]
    pub totals: ConflictTotals,
    #[serde(flatten)]
    pub details: PairDetails,
}

/// Which party of a conflict goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Winner {
    Requester,
    Holder,
}

impl Winner {
    pub(crate) fn of(key: &ConflictKey) -> Winner {
        if key.requester_won { Winner::Requester } else { Winner::Holder }
    }

    pub fn name(self) -> &'static str {
        match self {
            Winner::Requester => "requester",
            Winner::Holder => "holder",
        }
    }
}

/// One kernel function, or all of user mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionResult {
    pub name: String,
    /// Estimated from samples of the program counter.
    pub cycles: u64,
    /// Share of the cycles in which harts were not idle.
    pub share: f64,
}

impl HartResult {
    /// Cycles in which the hart had something to do.
    pub fn busy_cycles(&self) -> u64 {
        self.user_cycles + self.supervisor_cycles
    }
}

impl ResultDocument {
    /// How the run ended, in one sentence: the name of the end, the guest's code and the message.
    pub fn ending(&self) -> String {
        let code = if self.guest_code == 0 { String::new() } else { format!(" with code {}", self.guest_code) };
        let message = self.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        format!("{}{code}{message}", self.exit.name())
    }

    /// A quantity of all harts together.
    pub fn sum_of_harts(&self, quantity: impl Fn(&HartResult) -> u64) -> u64 {
        self.harts.iter().map(quantity).sum()
    }

    /// Supervisor cycles of all harts.
    pub fn kernel_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.supervisor_cycles)
    }

    /// Cycles in which accesses of all harts, user programs' included, waited in queues for lines.
    pub fn queued_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.queues.queued_cycles)
    }

    /// User cycles of all harts.
    pub fn user_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.user_cycles)
    }

    /// Idle cycles of all harts in which a request to a disk was under way.
    pub fn io_wait_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.io_wait_cycles)
    }

    /// Cycles in which harts had nothing to do and waited for no disk.
    pub fn idle_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.idle_cycles.saturating_sub(hart.io_wait_cycles))
    }

    /// Cycles of all harts.
    pub fn all_cycles(&self) -> u64 {
        self.sum_of_harts(|hart| hart.busy_cycles() + hart.idle_cycles)
    }

    /// A quantity of all call sites of critical sections together.
    pub fn sum_of_sections(&self, quantity: impl Fn(&SectionTotals) -> u64) -> u64 {
        self.sections.iter().map(|section| quantity(&section.totals)).sum()
    }

    /// Cycles that harts spun for locks outside transactions that restarted.
    pub fn spin_cycles(&self) -> u64 {
        self.sum_of_sections(|totals| totals.spin_cycles)
    }

    /// Cycles that the transactions of critical sections lost: restarted attempts with their back-off, and waiting.
    pub fn transaction_cycles(&self) -> u64 {
        self.sum_of_sections(SectionTotals::transaction_cycles)
    }

    /// Cycles that sections took to have their locks, or to subscribe to them, uncontended ones included.
    pub fn acquiring_cycles(&self) -> u64 {
        self.sum_of_sections(SectionTotals::acquiring_cycles)
    }

    /// Cycles lost to synchronization if all of acquiring counts as lost, and not its spins alone.
    pub fn lost_with_acquiring_cycles(&self) -> u64 {
        self.acquiring_cycles() + self.transaction_cycles()
    }

    /// Cycles lost to synchronization.
    pub fn lost_cycles(&self) -> u64 {
        self.sum_of_sections(SectionTotals::lost_cycles)
    }

    /// The conflicts of a kind; nothing in documents that were written before the kinds were told apart.
    pub fn conflicts_of(&self, kind: ConflictKind) -> KindTotals {
        let named = ConflictKind::ALL.iter().find(|(known, _)| *known == kind);
        named.and_then(|(_, name)| self.conflict_kinds.get(*name)).copied().unwrap_or_default()
    }

    /// The call sites of these kinds of locks.
    pub fn sections_of<'a>(&'a self, kinds: &'a [&str]) -> impl Iterator<Item = &'a SectionResult> {
        self.sections.iter().filter(|section| kinds.contains(&section.kind.as_str()))
    }
}

/// Makes the result document of a run that has ended.
///
/// # Errors
/// When a disk image cannot be read for the digest.
pub fn document(machine: &mut Machine, outcome: &Outcome, host_seconds: f64) -> Result<ResultDocument, MachineError> {
    let digest = machine.digest()?;
    let region = machine.named_region();
    let names = region.names.clone().unwrap_or_default();
    let counters = region.counters.iter().zip(&region.queues);
    let harts = region.modes.iter().zip(&region.instructions).zip(counters).zip(&region.transactions);
    let harts =
        harts.enumerate().map(|(hart, (((modes, instructions), (counters, queues)), transactions))| HartResult {
            instructions: *instructions,
            user_cycles: modes.user_cycles,
            supervisor_cycles: modes.supervisor_cycles,
            idle_cycles: modes.idle_cycles,
            io_wait_cycles: modes.io_wait_cycles,
            sections_count: region.sections.count_of_hart(hart),
            counters: *counters,
            queues: *queues,
            transactions: *transactions,
        });
    let symbols = machine.symbols.as_ref();
    Ok(ResultDocument {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        exit: outcome.end.exit,
        exit_code: outcome.end.exit.code(),
        guest_code: outcome.end.code,
        message: outcome.message.clone(),
        digest,
        gear: machine.gear(),
        instructions: machine.instructions(),
        clock_cycles: machine.clock(),
        touched_bytes: machine.memory.touched_pages_count() as u64 * PAGE_BYTES,
        host_seconds: Some(host_seconds),
        region: machine.accounting.statistics.baseline.is_some(),
        region_cycles: region.cycles,
        harts: harts.collect(),
        functions: functions(symbols, &region.samples),
        sections: region.sections.sections(symbols, &names),
        section_totals: region.sections.totals(),
        section_locks: region.sections.locks(&names),
        transaction_sizes: region.sizes,
        conflicts: conflicts(symbols, &names, &region.conflicts, &region.conflict_kinds),
        conflict_totals: region.conflicts.sum(),
        conflict_kinds: conflict_kinds(&region.conflict_kinds),
        devices: machine.bus.statistics(),
        configuration: machine.configuration.clone(),
        changed: machine.changed.clone(),
        console: machine.console.last_lines(),
    })
}

/// A place in the guest's program as `symbol+offset`, or as a number where no symbol covers it.
pub(crate) fn place(symbols: Option<&SymbolTable>, address: u64) -> String {
    name(symbols.and_then(|symbols| symbols.lookup(address)), address)
}

/// A symbol and how far into it, or a number where there is none.
pub(crate) fn name(symbol: Option<(&str, u64)>, address: u64) -> String {
    match symbol {
        Some((name, 0)) => name.to_owned(),
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
}

/// The conflicts of a profile, most lost cycles first.
pub(crate) fn conflicts(
    symbols: Option<&SymbolTable>,
    names: &DataNames,
    profile: &Profile,
    kinds: &Kinds,
) -> Vec<ConflictResult> {
    let result = |(key, totals): (&ConflictKey, &ConflictTotals)| ConflictResult {
        requester: requester(symbols, key),
        holder: place(symbols, key.holder_pc),
        address: names.word(key.address),
        physical_address: key.address,
        requester_is_transactional: key.requester_is_transactional,
        requester_writes: key.requester_writes,
        winner: Winner::of(key),
        rule: key.rule,
        totals: *totals,
        details: kinds.of_pair(key),
    };
    let mut conflicts: Vec<_> = profile.iter().map(result).collect();
    conflicts.sort_by_key(|conflict| std::cmp::Reverse((conflict.totals.lost_cycles, conflict.totals.count)));
    conflicts
}

fn conflict_kinds(kinds: &Kinds) -> BTreeMap<String, KindTotals> {
    ConflictKind::ALL.iter().map(|(kind, name)| ((*name).to_owned(), *kinds.of(*kind))).collect()
}

/// Who asked for a word that a transaction had.
pub(crate) fn requester(symbols: Option<&SymbolTable>, key: &ConflictKey) -> String {
    if key.requester_pc == 0 { "[device]".to_owned() } else { place(symbols, key.requester_pc) }
}

fn functions(symbols: Option<&SymbolTable>, samples: &BTreeMap<(Privilege, u64), u64>) -> Vec<FunctionResult> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for ((privilege, pc), count) in samples {
        let name = match privilege {
            Privilege::User => "[user mode]",
            Privilege::Supervisor => match symbols.and_then(|symbols| symbols.lookup(*pc)) {
                Some((name, _)) => name,
                None => "[no symbol]",
            },
        };
        *counts.entry(name).or_default() += count;
    }
    let total = counts.values().sum::<u64>().max(1) as f64;
    let mut functions: Vec<_> = counts
        .into_iter()
        .map(|(name, count)| FunctionResult {
            name: name.to_owned(),
            cycles: count * SAMPLE_CYCLES,
            share: count as f64 / total,
        })
        .collect();
    functions.sort_by(|a, b| b.cycles.cmp(&a.cycles).then_with(|| a.name.cmp(&b.name)));
    functions
}

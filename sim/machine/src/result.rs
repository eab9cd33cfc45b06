//! The result document: everything a run says about itself, in one JSON object.

use crate::changes::Changed;
use crate::configuration::Configuration;
use crate::error::MachineError;
use crate::hart::Privilege;
use crate::machine::Machine;
use crate::run::Outcome;
use crate::sections::report::{SectionLockResult, SectionResult, SectionTotals};
use crate::statistics::{LockCounters, SAMPLE_CYCLES};
use crate::symbols::SymbolTable;
use concord_abi::htm::Cause;
use concord_dev::DeviceStatistics;
use concord_htm::profile::{ConflictKey, Profile};
use concord_mem::ram::PAGE_BYTES;
use concord_mem::system::Counters;
use serde::Serialize;
use std::collections::BTreeMap;

pub use concord_htm::manager::Rule;
pub use concord_htm::profile::ConflictTotals;

/// The format of this document; a field that changes its meaning changes this.
const FORMAT: u32 = 1;

/// What a run was, did and cost. Counts are of the region of interest where the guest marked one, and of the whole run
/// otherwise; `instructions` and `clock_cycles` are always of the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct ResultDocument {
    pub format: u32,
    /// The version of the program that ran it.
    pub version: &'static str,
    /// The name of the end, as in the list of exit codes.
    pub exit: &'static str,
    pub exit_code: u8,
    /// What the guest reported when it failed.
    pub guest_code: u64,
    pub message: Option<String>,
    /// BLAKE3 of the final state.
    pub digest: String,
    pub gear: &'static str,
    pub instructions: u64,
    pub clock_cycles: u64,
    /// Guest memory that may hold something other than zeroes.
    pub touched_bytes: u64,
    /// Wall-clock time of the run on the host; the only field that two equal runs do not share.
    pub host_seconds: f64,
    pub region: bool,
    pub region_cycles: u64,
    pub harts: Vec<HartResult>,
    /// Where the time went, most first.
    pub functions: Vec<FunctionResult>,
    /// Locks that the guest's hints spoke of, most spin cycles first.
    pub locks: Vec<LockResult>,
    /// Call sites of the critical sections that the guest's hints spoke of, most cycles lost to synchronization first.
    pub sections: Vec<SectionResult>,
    /// All of them together, by the kind of lock.
    pub section_totals: BTreeMap<String, SectionTotals>,
    /// The 200 locks that most cycles were lost to.
    pub section_locks: Vec<SectionLockResult>,
    /// Conflicts that transactions had a part in, most lost cycles first.
    pub conflicts: Vec<ConflictResult>,
    /// All of them together, those included that are too many to be told apart.
    pub conflict_totals: ConflictTotals,
    pub devices: DeviceStatistics,
    pub configuration: Configuration,
    /// What the configuration was before a resume changed it, the first change first.
    pub changed: Vec<Changed>,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
}

/// One hart.
#[derive(Clone, Debug, Serialize)]
pub struct HartResult {
    pub instructions: u64,
    pub user_cycles: u64,
    pub supervisor_cycles: u64,
    /// Waiting for an interrupt, I/O wait included.
    pub idle_cycles: u64,
    /// The part of `idle_cycles` in which at least one request of a disk was in flight, whoever waited for it; known to a quantum
    /// for each stretch.
    pub io_wait_cycles: u64,
    #[serde(flatten)]
    pub counters: Counters,
    pub transactions: TransactionResult,
}

/// What one hart's transactions did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransactionResult {
    /// Transactions that began; restarts do not count again.
    pub begun: u64,
    /// Begins inside a transaction.
    pub nested: u64,
    pub committed: u64,
    /// Suspended ones that the kernel gave up (`xdrop`).
    pub dropped: u64,
    /// Restarts, by cause: each that there is.
    pub restarts: BTreeMap<String, u64>,
    /// Suspensions by `xpush` and by traps.
    pub suspended: u64,
    /// Cycles of attempts that committed, from their begin or restart on.
    pub committed_cycles: u64,
    /// The same, of attempts that did not.
    pub wasted_cycles: u64,
    /// Back-off after lost conflicts.
    pub backoff_cycles: u64,
    /// Waiting for transactions that held a word.
    pub wait_cycles: u64,
    /// Words in the sets of committed transactions.
    pub committed_words: u64,
    /// The same, of attempts that did not commit.
    pub wasted_words: u64,
    /// The largest set of a committed transaction.
    pub size_words_max: u64,
    pub depth_max: u32,
    /// Lines of sets that left the first-level cache.
    pub overflowed_lines: u64,
    /// Compare-and-swaps outside transactions that met a transaction's words.
    pub arbitrated: u64,
    /// Those of them that were refused.
    pub refused: u64,
}

/// Conflicts of one kind: the same two places, word, winner and rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConflictResult {
    /// The instruction whose access found the conflict; `[device]` where it was none.
    pub requester: String,
    /// The instruction that first accessed the word in the transaction that had it.
    pub holder: String,
    /// Physical address of the word, with the symbol where there is one.
    pub address: String,
    pub requester_is_transactional: bool,
    pub requester_writes: bool,
    /// `requester` or `holder`.
    pub winner: &'static str,
    pub rule: Rule,
    #[serde(flatten)]
    pub totals: ConflictTotals,
}

/// One kernel function, or all of user mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionResult {
    pub name: String,
    /// Estimated from samples of the program counter.
    pub cycles: u64,
    /// Share of the cycles in which harts were not idle.
    pub share: f64,
}

/// One lock at one call site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockResult {
    /// Address, with the symbol where there is one.
    pub lock: String,
    pub call_site: String,
    #[serde(flatten)]
    pub counters: LockCounters,
}

/// Makes the result document of a run that has ended.
///
/// # Errors
/// When a disk image cannot be read for the digest.
pub fn document(machine: &mut Machine, outcome: &Outcome, host_seconds: f64) -> Result<ResultDocument, MachineError> {
    let digest = machine.digest()?;
    let region = machine.region();
    let harts = region.modes.iter().zip(&region.instructions).zip(&region.counters).zip(&region.transactions);
    let harts = harts.map(|(((modes, instructions), counters), transactions)| HartResult {
        instructions: *instructions,
        user_cycles: modes.user_cycles,
        supervisor_cycles: modes.supervisor_cycles,
        idle_cycles: modes.idle_cycles,
        io_wait_cycles: modes.io_wait_cycles,
        counters: *counters,
        transactions: transaction_result(transactions),
    });
    let symbols = machine.symbols.as_ref();
    let mut locks: Vec<_> = region
        .locks
        .iter()
        .map(|((lock, site), counters)| LockResult {
            lock: name(symbols.and_then(|symbols| symbols.lookup_data(*lock)), *lock),
            call_site: place(symbols, *site),
            counters: *counters,
        })
        .collect();
    locks.sort_by_key(|lock| std::cmp::Reverse((lock.counters.spin_cycles, lock.counters.acquisitions)));
    Ok(ResultDocument {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        exit: outcome.end.exit.name(),
        exit_code: outcome.end.exit.code(),
        guest_code: outcome.end.code,
        message: outcome.message.clone(),
        digest,
        gear: machine.gear().name(),
        instructions: machine.instructions(),
        clock_cycles: machine.clock(),
        touched_bytes: machine.memory.touched_pages().count() as u64 * PAGE_BYTES,
        host_seconds,
        region: machine.statistics.baseline.is_some(),
        region_cycles: region.cycles,
        harts: harts.collect(),
        functions: functions(symbols, &region.samples),
        locks,
        sections: region.sections.sections(symbols),
        section_totals: region.sections.totals(),
        section_locks: region.sections.locks(symbols),
        conflicts: conflicts(symbols, &region.conflicts),
        conflict_totals: region.conflicts.sum(),
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

/// The same for a physical address of data.
pub(crate) fn data_place(symbols: Option<&SymbolTable>, address: u64) -> String {
    name(symbols.and_then(|symbols| symbols.lookup_physical_data(address)), address)
}

/// A symbol and how far into it, or a number where there is none.
pub(crate) fn name(symbol: Option<(&str, u64)>, address: u64) -> String {
    match symbol {
        Some((name, 0)) => name.to_owned(),
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
}

fn transaction_result(counters: &concord_htm::statistics::Counters) -> TransactionResult {
    let restarts = Cause::RESTARTS.map(|(cause, _)| (cause_name(cause), counters.restarts_of(cause)));
    TransactionResult {
        begun: counters.begun,
        nested: counters.nested,
        committed: counters.committed,
        dropped: counters.dropped(),
        restarts: restarts.into(),
        suspended: counters.suspended,
        committed_cycles: counters.committed_cycles,
        wasted_cycles: counters.wasted_cycles,
        backoff_cycles: counters.backoff_cycles,
        wait_cycles: counters.wait_cycles,
        committed_words: counters.committed_words,
        wasted_words: counters.wasted_words,
        size_words_max: counters.size_words_max,
        depth_max: counters.depth_max,
        overflowed_lines: counters.overflowed_lines,
        arbitrated: counters.arbitrated,
        refused: counters.refused,
    }
}

/// A cause of restarts as results have it.
pub(crate) fn cause_name(cause: Cause) -> String {
    let named = Cause::RESTARTS.iter().find(|(known, _)| *known == cause);
    named.map_or_else(String::new, |(_, name)| name.to_lowercase().replace('_', "-"))
}

fn conflicts(symbols: Option<&SymbolTable>, profile: &Profile) -> Vec<ConflictResult> {
    let result = |(key, totals): (&ConflictKey, &ConflictTotals)| ConflictResult {
        requester: requester(symbols, key),
        holder: place(symbols, key.holder_pc),
        address: data_place(symbols, key.address),
        requester_is_transactional: key.requester_is_transactional,
        requester_writes: key.requester_writes,
        winner: winner(key),
        rule: key.rule,
        totals: *totals,
    };
    let mut conflicts: Vec<_> = profile.iter().map(result).collect();
    conflicts.sort_by_key(|conflict| std::cmp::Reverse((conflict.totals.lost_cycles, conflict.totals.count)));
    conflicts
}

/// Who asked for a word that a transaction had.
pub(crate) fn requester(symbols: Option<&SymbolTable>, key: &ConflictKey) -> String {
    if key.requester_pc == 0 { "[device]".to_owned() } else { place(symbols, key.requester_pc) }
}

pub(crate) fn winner(key: &ConflictKey) -> &'static str {
    if key.requester_won { "requester" } else { "holder" }
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

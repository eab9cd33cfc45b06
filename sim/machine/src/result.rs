//! The result document: everything a run says about itself, in one JSON object.

use crate::configuration::Configuration;
use crate::error::MachineError;
use crate::hart::Privilege;
use crate::machine::Machine;
use crate::run::Outcome;
use crate::statistics::{LockCounters, SAMPLE_CYCLES};
use crate::symbols::SymbolTable;
use concord_dev::DeviceStatistics;
use concord_mem::ram::PAGE_BYTES;
use concord_mem::system::Counters;
use serde::Serialize;
use std::collections::BTreeMap;

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
    pub devices: DeviceStatistics,
    pub configuration: Configuration,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
}

/// One hart.
#[derive(Clone, Debug, Serialize)]
pub struct HartResult {
    pub instructions: u64,
    pub user_cycles: u64,
    pub supervisor_cycles: u64,
    pub idle_cycles: u64,
    #[serde(flatten)]
    pub counters: Counters,
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
    let harts = region.modes.iter().zip(&region.instructions).zip(&region.counters);
    let harts = harts.map(|((modes, instructions), counters)| HartResult {
        instructions: *instructions,
        user_cycles: modes.user_cycles,
        supervisor_cycles: modes.supervisor_cycles,
        idle_cycles: modes.idle_cycles,
        counters: *counters,
    });
    let symbols = machine.symbols.as_ref();
    let mut locks: Vec<_> = region
        .locks
        .iter()
        .map(|((lock, site), counters)| LockResult {
            lock: place(symbols, *lock),
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
        devices: machine.bus.statistics(),
        configuration: machine.configuration.clone(),
        console: machine.console.last_lines(),
    })
}

/// An address as `symbol+offset`, or as a number where no symbol covers it.
fn place(symbols: Option<&SymbolTable>, address: u64) -> String {
    match symbols.and_then(|symbols| symbols.lookup(address)) {
        Some((name, 0)) => name.to_owned(),
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
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

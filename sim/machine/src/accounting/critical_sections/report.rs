//! Critical sections in the result document.

use super::CriticalSections;
use super::locks::LockTotals;
use super::site::{Site, Totals};
use crate::accounting::origins::Origin;
use crate::data::{DataNames, is_address};
use crate::result::name;
use crate::symbols::SymbolTable;
use concord_abi::hint::SectionKind;
use concord_abi::htm::Cause;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The greatest number of locks in the document.
const LOCKS_MAX: usize = 200;
/// The greatest number of places in the document that force exclusivity at one call site.
const EXCLUSIVE_FUNCTIONS_MAX: usize = 10;

/// The accounts of the region of interest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionProfile {
    sites: Vec<Site>,
    locks: Vec<(u64, LockTotals)>,
    counts_by_hart: Vec<u64>,
}

/// The cost of sections. Maps by cause contain only the causes that occurred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionTotals {
    /// Critical sections that held their lock.
    pub locked: u64,
    /// Critical sections that began with a spin.
    pub contended: u64,
    /// Cycles of spins that led to sections that count.
    pub spin_cycles: u64,
    /// Cycles from the first access to the lock's word to the begins of sections that held it: spins, and the misses of
    /// those that need not wait. Sections without an atomic on the word have none.
    #[serde(default)]
    pub acquire_cycles: u64,
    /// Iterations of loops that only read.
    pub test_loops: u64,
    /// Atomic attempts after the first.
    pub test_and_set_loops: u64,
    /// Cycles that locks were held.
    pub hold_cycles: u64,
    /// Critical sections that committed as transactions.
    pub transactional: u64,
    /// As `acquire_cycles`, of sections that committed as transactions: from the first test of the lock's word in the
    /// attempt that committed. Restarts have cycles of their own.
    #[serde(default)]
    pub subscribe_cycles: u64,
    /// Cycles of these from their begins to their ends.
    pub transactional_cycles: u64,
    /// Cycles in which transactions that later committed waited for others, if the contention manager lets them wait.
    /// Only outermost sections have them.
    pub wait_cycles: u64,
    /// Restarts of transactions whose outermost section it was, by cause.
    pub restarts: BTreeMap<String, u64>,
    /// The cost of these restarts: the back-off, and the attempts that were lost. An attempt's cycles exclude its
    /// suspensions and include its waits.
    pub restart_cycles: BTreeMap<String, u64>,
    /// Restarts, by cause, after which the hart's next section of the call site held the lock.
    pub exclusive_after: BTreeMap<String, u64>,
    /// Restarts that asked for exclusivity, by the number of sections that were open: one, two, and so on.
    pub io_restarts_by_depth: Vec<u64>,
    /// These restarts by the trap in whose handler they happened: `system-call`, `exception`, `interrupt`, or `kernel` for
    /// threads of the kernel. Only those that occurred.
    #[serde(default)]
    pub io_restarts_by_origin: BTreeMap<String, u64>,
    /// The greatest number of harts in sections of one lock at the same time, when one of them began its section here.
    pub concurrency_max: usize,
    /// Critical sections by the number of other harts that they found in sections of the same lock: none, one, and so on.
    pub concurrency: Vec<u64>,
}

/// The sections that begin at one call site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionResult {
    /// The return address of the lock function; `[others]` for all call sites beyond the limit.
    pub site: String,
    /// `spin`, `raw`, `read`, `write` or `seqlock`.
    pub kind: String,
    /// The number of different locks, up to 256.
    pub locks: usize,
    /// The name of the lock, if all its locks have one: that of a variable, or of a member of the kernel's objects.
    pub lock: Option<String>,
    #[serde(flatten)]
    pub totals: SectionTotals,
    /// Restarts that asked for exclusivity, by the function that forced it: the ten most frequent ones.
    pub io_restarts_at: BTreeMap<String, u64>,
}

/// All sections of one lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SectionLockResult {
    /// The name as that of a conflict's word, or the address.
    pub lock: String,
    /// The address that the guest's hints gave; 0 in documents of earlier versions.
    #[serde(default)]
    pub address: u64,
    #[serde(flatten)]
    pub totals: LockTotals,
}

impl SectionTotals {
    /// Sections that ended, with the lock held or as transactions.
    pub fn executions(&self) -> u64 {
        self.locked + self.transactional
    }

    /// Restarts that asked for exclusivity in code of an origin.
    pub fn io_restarts_of(&self, origin: Origin) -> u64 {
        let named = Origin::ALL.iter().find(|(known, _)| *known == origin);
        named.and_then(|(_, name)| self.io_restarts_by_origin.get(*name)).copied().unwrap_or(0)
    }

    /// Restarts of all causes.
    pub fn restarts_total(&self) -> u64 {
        self.restarts.values().sum()
    }

    /// Restarts of one cause.
    pub fn restarts_of(&self, cause: Cause) -> u64 {
        self.restarts.get(cause.name()).copied().unwrap_or(0)
    }

    /// The cost of the restarts of one cause.
    pub fn restart_cycles_of(&self, cause: Cause) -> u64 {
        self.restart_cycles.get(cause.name()).copied().unwrap_or(0)
    }

    /// Cycles that transactions lost to restarts and to waiting for each other.
    pub fn transaction_cycles(&self) -> u64 {
        self.restart_cycles.values().sum::<u64>() + self.wait_cycles
    }

    /// Cycles that sections took to have their locks, or to subscribe to them.
    pub fn acquiring_cycles(&self) -> u64 {
        self.acquire_cycles + self.subscribe_cycles
    }

    /// Cycles lost to synchronization, the misses on locks that nobody holds not included.
    pub fn lost_cycles(&self) -> u64 {
        self.spin_cycles + self.transaction_cycles()
    }
}

impl CriticalSections {
    /// The counted values.
    pub fn profile(&self) -> SectionProfile {
        SectionProfile {
            sites: self.sites.iter().filter(|site| site.is_used()).cloned().collect(),
            locks: self.locks.costliest(LOCKS_MAX),
            counts_by_hart: self.harts.iter().map(|hart| hart.sections_count).collect(),
        }
    }
}

impl SectionProfile {
    /// The call sites, the costliest first.
    pub fn sections(&self, symbols: Option<&SymbolTable>, names: &DataNames) -> Vec<SectionResult> {
        let mut sites: Vec<&Site> = self.sites.iter().collect();
        sites.sort_by_key(|site| {
            let totals = &site.totals;
            let count = totals.locked + totals.transactional;
            (Reverse(totals.cost_cycles()), Reverse(count), site.address, site.kind)
        });
        sites.into_iter().map(|site| section(symbols, names, site)).collect()
    }

    /// The sums by kind.
    pub fn totals(&self) -> BTreeMap<String, SectionTotals> {
        let mut sums = BTreeMap::<String, Totals>::new();
        for site in &self.sites {
            sums.entry(kind_name(site.kind)).or_default().add(&site.totals);
        }
        sums.into_iter().map(|(kind, sum)| (kind, totals(&sum))).collect()
    }

    /// The number of sections that a hart executed.
    pub fn count_of_hart(&self, hart: usize) -> u64 {
        self.counts_by_hart.get(hart).copied().unwrap_or(0)
    }

    /// The costliest locks.
    pub fn locks(&self, names: &DataNames) -> Vec<SectionLockResult> {
        let result = |(lock, totals): &(u64, LockTotals)| SectionLockResult {
            lock: names.lock(*lock),
            address: *lock,
            totals: *totals,
        };
        self.locks.iter().map(result).collect()
    }

    /// The addresses of all locks in these accounts, of some of them repeatedly.
    pub fn lock_addresses(&self) -> impl Iterator<Item = u64> {
        let of_sites = self.sites.iter().flat_map(|site| site.locks.iter().copied());
        self.locks.iter().map(|(lock, _)| *lock).chain(of_sites)
    }
}

/// The name that all locks of a call site have, if it is one.
fn common_name(names: &DataNames, locks: &[u64]) -> Option<String> {
    let (first, others) = locks.split_first()?;
    let first = names.lock(*first);
    let is_common = !is_address(&first) && others.iter().all(|lock| names.lock(*lock) == first);
    is_common.then_some(first)
}

fn section(symbols: Option<&SymbolTable>, names: &DataNames, site: &Site) -> SectionResult {
    SectionResult {
        site: match site.address {
            0 => "[others]".to_owned(),
            address => name(symbols.and_then(|symbols| symbols.lookup(address)), address),
        },
        kind: kind_name(site.kind),
        locks: site.locks.len(),
        lock: common_name(names, &site.locks),
        totals: totals(&site.totals),
        io_restarts_at: exclusive_functions(symbols, &site.totals.restarts.exclusive_at),
    }
}

fn totals(totals: &Totals) -> SectionTotals {
    SectionTotals {
        locked: totals.locked,
        contended: totals.contended,
        spin_cycles: totals.spin.cycles,
        acquire_cycles: totals.acquire_cycles,
        test_loops: totals.spin.test_loops,
        test_and_set_loops: totals.spin.test_and_set_loops,
        hold_cycles: totals.hold_cycles,
        transactional: totals.transactional,
        subscribe_cycles: totals.subscribe_cycles,
        transactional_cycles: totals.transactional_cycles,
        wait_cycles: totals.wait_cycles,
        restarts: by_cause(&totals.restarts.counts),
        restart_cycles: by_cause(&totals.restarts.cycles),
        exclusive_after: by_cause(&totals.exclusive_after),
        io_restarts_by_depth: totals.restarts.exclusive_by_depth.clone(),
        io_restarts_by_origin: by_origin(&totals.restarts.exclusive_by_origin),
        concurrency_max: totals.concurrency.len(),
        concurrency: totals.concurrency.clone(),
    }
}

fn by_cause(numbers: &[u64; 8]) -> BTreeMap<String, u64> {
    let number = |(cause, _): &(Cause, &str)| (cause.name().to_owned(), numbers[*cause as usize]);
    Cause::RESTARTS.iter().map(number).filter(|(_, number)| *number != 0).collect()
}

fn by_origin(numbers: &[u64; Origin::ALL.len()]) -> BTreeMap<String, u64> {
    let number = |(origin, name): &(Origin, &str)| ((*name).to_owned(), numbers[*origin as usize]);
    Origin::ALL.iter().map(number).filter(|(_, number)| *number != 0).collect()
}

fn exclusive_functions(symbols: Option<&SymbolTable>, places: &BTreeMap<u64, u64>) -> BTreeMap<String, u64> {
    let mut functions = BTreeMap::<String, u64>::new();
    for (place, count) in places {
        let function = symbols.and_then(|symbols| symbols.lookup(*place)).map(|(function, _)| (function, 0));
        *functions.entry(name(function, *place)).or_default() += count;
    }
    let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
    // Stable, so that the name decides between equals.
    functions.sort_by_key(|(_, count)| Reverse(*count));
    functions.into_iter().take(EXCLUSIVE_FUNCTIONS_MAX).collect()
}

/// The name of a kind in results.
fn kind_name(kind: SectionKind) -> String {
    let named = SectionKind::ALL.iter().find(|(known, _)| *known == kind);
    named.map_or_else(String::new, |(_, name)| name.to_lowercase())
}

//! What a run's file says, as far as comparisons look at it.

use super::plan::{Group, Run};
use super::store::Identified;
use concord_machine::result::ResultDocument;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kinds of locks, as results name them.
pub const KIND_SPIN: &str = "spin";
pub const KIND_RAW: &str = "raw";

/// The cause of a restart that a section's I/O forces.
pub const CAUSE_IO: &str = "need-exclusive";

/// A run's file.
#[derive(Clone, Debug, Deserialize)]
pub struct RunFile {
    pub id: String,
    pub result: RunResult,
}

impl Identified for RunFile {
    fn id(&self) -> &str {
        &self.id
    }
}

impl RunFile {
    /// What the file of a run has: its key and its result.
    pub fn content(group: &Group, run: &Run, document: &ResultDocument) -> Value {
        json!({
            "id": run.id,
            "workload": group.workload,
            "kernel": group.kernel,
            "harts": group.harts,
            "seed": run.seed,
            "key": run.key,
            "result": lasting(document),
        })
    }
}

/// A result document without the one thing that two equal runs do not share.
pub fn lasting(document: &ResultDocument) -> Value {
    let mut result = serde_json::to_value(document).expect("plain data");
    result.as_object_mut().expect("an object").remove("host_seconds");
    result
}

/// The result document of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunResult {
    pub exit: String,
    pub exit_code: u8,
    pub guest_code: u64,
    pub message: Option<String>,
    /// Of the final state.
    pub digest: String,
    pub instructions: u64,
    /// Whether the guest marked a region of interest.
    pub region: bool,
    pub region_cycles: u64,
    pub harts: Vec<HartRecord>,
    pub conflict_totals: ConflictRecord,
    /// By call site.
    pub sections: Vec<SectionRecord>,
    pub section_locks: Vec<LockRecord>,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
}

/// One hart in the region.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct HartRecord {
    pub instructions: u64,
    pub user_cycles: u64,
    pub supervisor_cycles: u64,
    pub idle_cycles: u64,
    /// The part of the idle cycles in which a request to a disk was under way.
    pub io_wait_cycles: u64,
}

/// All conflicts of transactions.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ConflictRecord {
    pub count: u64,
    pub lost_cycles: u64,
    /// Conflicts that the lower conflict priority won.
    pub inversions: u64,
}

/// The critical sections of one call site.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SectionRecord {
    pub site: String,
    pub kind: String,
    /// Different addresses of locks taken here.
    pub locks: u64,
    /// The lock's symbol, where it is the same static one each time.
    pub lock: Option<String>,
    pub locked: u64,
    pub contended: u64,
    pub spin_cycles: u64,
    pub test_loops: u64,
    pub test_and_set_loops: u64,
    pub hold_cycles: u64,
    /// Sections that committed.
    pub transactional: u64,
    pub transactional_cycles: u64,
    /// Cycles in which transactions that then committed waited for others.
    pub wait_cycles: u64,
    /// Of transactions whose outermost section began here.
    pub restarts: BTreeMap<String, u64>,
    pub restart_cycles: BTreeMap<String, u64>,
    /// Restarts that were followed by the lock, by cause.
    pub exclusive_after: BTreeMap<String, u64>,
    /// Restarts for I/O with one section open, two, and so on.
    pub io_restarts_by_depth: Vec<u64>,
    /// Functions that forced them.
    pub io_restarts_at: BTreeMap<String, u64>,
    /// The most harts that were in sections of the same lock at once.
    pub concurrency_max: u64,
    /// Entries that found no other hart in a section of the lock, one other, and so on.
    pub concurrency: Vec<u64>,
}

impl SectionRecord {
    /// Times that the section was executed, whichever way.
    pub fn executions(&self) -> u64 {
        self.locked + self.transactional
    }

    /// Cycles that transactions lost: to restarts, and waiting for each other.
    pub fn transaction_cycles(&self) -> u64 {
        self.restart_cycles.values().sum::<u64>() + self.wait_cycles
    }

    /// Restarts of all causes.
    pub fn restarts(&self) -> u64 {
        self.restarts.values().sum()
    }

    /// Restarts for I/O.
    pub fn io_restarts(&self) -> u64 {
        self.restarts.get(CAUSE_IO).copied().unwrap_or(0)
    }

    /// Cycles lost to synchronization.
    pub fn lost_cycles(&self) -> u64 {
        self.spin_cycles + self.transaction_cycles()
    }
}

/// One lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LockRecord {
    /// Its symbol or address.
    pub lock: String,
    pub locked: u64,
    pub transactional: u64,
    pub spin_cycles: u64,
    pub restart_cycles: u64,
    pub concurrency_max: u64,
}

impl RunResult {
    /// Why nothing may be concluded from this run; none of one that did its work.
    pub fn failure(&self) -> Option<String> {
        if self.exit_code != 0 {
            let code = if self.guest_code == 0 { String::new() } else { format!(" with code {}", self.guest_code) };
            let message = self.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
            return Some(format!("{}{code}{message}", self.exit));
        }
        (!self.region).then(|| "the workload marked no region of interest".to_owned())
    }

    fn of_harts(&self, cycles: impl Fn(&HartRecord) -> u64) -> u64 {
        self.harts.iter().map(cycles).sum()
    }

    /// Supervisor cycles of all harts.
    pub fn kernel_cycles(&self) -> u64 {
        self.of_harts(|hart| hart.supervisor_cycles)
    }

    /// User cycles of all harts.
    pub fn user_cycles(&self) -> u64 {
        self.of_harts(|hart| hart.user_cycles)
    }

    /// Cycles in which harts had nothing to do and waited for no disk.
    pub fn idle_cycles(&self) -> u64 {
        self.of_harts(|hart| hart.idle_cycles.saturating_sub(hart.io_wait_cycles))
    }

    /// Idle cycles in which a request to a disk was under way.
    pub fn io_wait_cycles(&self) -> u64 {
        self.of_harts(|hart| hart.io_wait_cycles)
    }

    fn of_sections(&self, value: impl Fn(&SectionRecord) -> u64) -> u64 {
        self.sections.iter().map(value).sum()
    }

    /// Cycles spent spinning for locks that were got, or given up, outside restarted transactions.
    pub fn spin_cycles(&self) -> u64 {
        self.of_sections(|section| section.spin_cycles)
    }

    /// Cycles that transactions lost: restarted attempts with their back-off, and waiting.
    pub fn transaction_cycles(&self) -> u64 {
        self.of_sections(SectionRecord::transaction_cycles)
    }

    /// All cycles lost to synchronization.
    pub fn lost_cycles(&self) -> u64 {
        self.spin_cycles() + self.transaction_cycles()
    }

    /// Cycles of all harts.
    pub fn all_cycles(&self) -> u64 {
        self.of_harts(|hart| hart.user_cycles + hart.supervisor_cycles + hart.idle_cycles)
    }

    /// The sections of these kinds.
    pub fn sections_of<'a>(&'a self, kinds: &'a [&str]) -> impl Iterator<Item = &'a SectionRecord> {
        self.sections.iter().filter(|section| kinds.contains(&section.kind.as_str()))
    }
}

//! The locks that cost most: those that harts spin longest for, or that most cycles of restarted transactions belong to.

use super::Subject;
use crate::experiment::statistics;
use crate::report::group::Compared;
use crate::report::kernels::data::{Sections, function_of};
use crate::report::kernels::{Data, GroupData, sentences};
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::accounting::critical_sections::report::{SectionLockResult, SectionResult, SectionTotals};
use concord_machine::result::ResultDocument;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub struct Locks;

/// Locks of a workload that a table has.
const LOCKS_MAX: usize = 5;

const NOTE: &str = "The rank is by the cycles lost to spinning and restarts on the kernel that lost most. Locks in \
                    objects of one type count as one; a lock without a name has that of the function that takes it. Restarts count at the lock of the outermost section.";

/// A lock's name where all locks of the call site have one, and otherwise the function that takes it.
fn name(section: &SectionResult) -> String {
    match &section.lock {
        Some(lock) => lock.clone(),
        None => format!("{} lock of {}", section.kind, function_of(&section.site)),
    }
}

/// The locks that cost anything on any kernel of a set, costliest first.
fn ranked(set: &[GroupData]) -> Vec<String> {
    let mut costs = BTreeMap::<String, u64>::new();
    for group in set {
        for (lock, sections) in group.sections_by(name) {
            let cycles: u64 = sections.iter().map(|(_, section)| section.totals.lost_cycles()).sum();
            // A mean, as kernels may have lost different numbers of runs.
            let cost = costs.entry(lock).or_default();
            *cost = (*cost).max(cycles / group.runs.len() as u64);
        }
    }
    let mut costs: Vec<(String, u64)> = costs.into_iter().filter(|(_, cost)| *cost > 0).collect();
    costs.sort_by_key(|(_, cost)| Reverse(*cost));
    costs.into_iter().map(|(lock, _)| lock).collect()
}

impl Subject<Data<'_>> for Locks {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let nouns = data.headings();
        let mut columns = nouns.columns([
            Column::new("locked", "as a lock", Show::Mean),
            Column::new("transactional", "as a transaction", Show::Mean),
            Column::new("spin_cycles", "spinning (million cycles)", Show::Millions).on_page(),
            Column::new("acquire_cycles", "acquiring (million cycles)", Show::Millions).on_page(),
            Column::new("restarts", "restarts", Show::Mean).on_page(),
            Column::new("restart_cycles", "restarts (million cycles)", Show::Millions).on_page(),
            Column::new("lost_share", "lost (% of kernel time)", Show::Percent),
            Column::new("concurrency_max", "most harts", Show::Count).on_page(),
        ]);
        // The rows of a lock stand together, one for each kernel.
        columns.insert(2, Column::new("lock", "lock", Show::Text));
        Some(Table {
            name: "locks".to_owned(),
            title: format!("The {LOCKS_MAX} locks that cost most in each workload"),
            note: NOTE.to_owned(),
            columns,
            rows: data.sets().flat_map(of_set).collect(),
            group_columns: 2,
            violations: None,
        })
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let costliest = |set: &[GroupData]| {
            let lock = ranked(set).into_iter().next()?;
            Some(format!("{lock} ({})", sentences::place(&set[0])))
        };
        let parts: Vec<String> = data.sets().filter_map(costliest).collect();
        Some(match parts.as_slice() {
            [] => "No lock cost anything".to_owned(),
            parts => format!("The costliest lock: {}", parts.join(", ")),
        })
    }

    fn details(&self, data: &Data) -> Vec<Table> {
        vec![by_address(data)]
    }
}

fn of_set(set: &[GroupData]) -> Vec<Vec<Cell>> {
    let by_kernel: Vec<_> = set.iter().map(|group| group.sections_by(name)).collect();
    let mut rows = Vec::new();
    for lock in ranked(set).into_iter().take(LOCKS_MAX) {
        for (group, locks) in set.iter().zip(&by_kernel) {
            let mut row = group.row(cells(group, locks.get(&lock).unwrap_or(&Vec::new())));
            row.insert(2, lock.as_str().into());
            rows.push(row);
        }
    }
    rows
}

fn cells(group: &GroupData, sections: &Sections) -> Vec<Cell> {
    let share = || {
        let mut shares = group.values(|_| 0.0);
        for (index, section) in sections {
            shares[*index] +=
                section.totals.lost_cycles() as f64 / group.runs[*index].result.kernel_cycles().max(1) as f64;
        }
        statistics::mean(&shares)
    };
    let most = sections.iter().map(|(_, section)| section.totals.concurrency_max as u64).max().unwrap_or(0);
    vec![
        group.mean_of(sections, |totals| totals.locked).into(),
        group.mean_of(sections, |totals| totals.transactional).into(),
        group.mean_of(sections, |totals| totals.spin_cycles).into(),
        group.mean_of(sections, SectionTotals::acquiring_cycles).into(),
        group.mean_of(sections, SectionTotals::restarts_total).into(),
        group.mean_of(sections, SectionTotals::transaction_cycles).into(),
        share().into(),
        most.into(),
    ]
}

/// The same by the address of the lock, so that a lock that many call sites take is seen; of each run by itself, because a lock
/// in an object lies elsewhere in each.
fn by_address(data: &Data) -> Table {
    let columns = [
        Column::new("seed", "seed", Show::Count),
        Column::new("lock", "lock", Show::Text),
        Column::new("address", "address", Show::Text).on_page(),
        Column::new("locked", "as a lock", Show::Count),
        Column::new("transactional", "as a transaction", Show::Count),
        Column::new("spin_cycles", "spinning (cycles)", Show::Count),
        Column::new("acquire_cycles", "acquiring (cycles)", Show::Count),
        Column::new("restart_cycles", "restarts (cycles)", Show::Count),
        Column::new("concurrency_max", "most harts", Show::Count),
    ];
    let mut rows = Vec::new();
    for group in &data.groups {
        for run in &group.runs {
            for SectionLockResult { lock, address, totals } in costliest(run.result) {
                let cells = [
                    run.link.seed.into(),
                    lock.as_str().into(),
                    format!("{address:#x}").into(),
                    totals.locked.into(),
                    totals.transactional.into(),
                    totals.spin_cycles.into(),
                    totals.acquire_cycles.into(),
                    totals.restart_cycles.into(),
                    u64::from(totals.concurrency_max).into(),
                ];
                rows.push(group.coordinates().row(cells, vec![run.link.clone()]));
            }
        }
    }
    Table {
        name: "lock_addresses".to_owned(),
        title: format!("The {LOCKS_MAX} single locks that cost most in each run"),
        note: "By the address of the lock; the name is that of its variable, or of its member in objects of its type."
            .to_owned(),
        columns: data.headings().columns(columns),
        rows,
        group_columns: 2,
        violations: None,
    }
}

fn costliest(run: &ResultDocument) -> Vec<&SectionLockResult> {
    let mut locks: Vec<&SectionLockResult> = run.section_locks.iter().collect();
    locks.retain(|lock| lock.totals.cost_cycles() > 0);
    locks.sort_by(|a, b| b.totals.cost_cycles().cmp(&a.totals.cost_cycles()).then_with(|| a.lock.cmp(&b.lock)));
    locks.truncate(LOCKS_MAX);
    locks
}

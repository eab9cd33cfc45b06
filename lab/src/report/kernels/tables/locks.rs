//! The locks that matter most: those whose waiting and restarting cost the most cycles.

use super::{Data, GroupData, function_of, group_cells, group_columns, runs_cell, runs_column};
use crate::experiment::statistics;
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::accounting::critical_sections::report::{SectionLockResult, SectionResult};
use concord_machine::result::ResultDocument;
use std::collections::BTreeMap;

/// Locks of a workload that a table has.
const LOCKS_MAX: usize = 5;

/// What a lock is called: by its symbol where there is one, and otherwise by the function that takes it.
fn name(section: &SectionResult) -> String {
    match &section.lock {
        Some(lock) => lock.clone(),
        None => format!("{} lock of {}", section.kind, function_of(&section.site)),
    }
}

/// The five locks of each workload and hart count that cost most cycles in any of the kernels, on each kernel.
pub fn locks(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.insert(2, Column::new("lock", "lock", Show::Text));
    columns.extend([
        Column::new("locked", "as a lock", Show::Mean),
        Column::new("transactional", "as a transaction", Show::Mean),
        Column::new("spin_cycles", "spinning (million cycles)", Show::Millions),
        Column::new("restarts", "restarts", Show::Mean),
        Column::new("restart_cycles", "restarts (million cycles)", Show::Millions),
        Column::new("lost_share", "lost (% of kernel time)", Show::Percent),
        Column::new("concurrency_max", "most harts", Show::Count),
        runs_column(),
    ]);
    Table {
        name: "locks".to_owned(),
        title: format!("The {LOCKS_MAX} locks that matter most in each workload"),
        note: "Ranked by the cycles lost to spinning and restarts on the kernel that lost most. A lock without a symbol, such as one in an \
               inode, goes by the function that takes it; restarts are counted at the lock of the outermost section."
            .to_owned(),
        columns,
        rows: data.sets().flat_map(of_set).collect(),
    }
}

fn of_set(set: &[GroupData]) -> Vec<Vec<Cell>> {
    let by_kernel: Vec<_> = set.iter().map(|group| group.sections_by(name)).collect();
    let mut rows = Vec::new();
    for lock in ranked(set).into_iter().take(LOCKS_MAX) {
        for (group, locks) in set.iter().zip(&by_kernel) {
            rows.push(row(group, &lock, locks.get(&lock).map_or(&[], Vec::as_slice)));
        }
    }
    rows
}

/// The locks that cost anything on any kernel of a set, costliest first.
pub fn ranked(set: &[GroupData]) -> Vec<String> {
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
    costs.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    costs.into_iter().map(|(lock, _)| lock).collect()
}

fn row(group: &GroupData, lock: &str, sections: &[(usize, &SectionResult)]) -> Vec<Cell> {
    let share = || {
        let mut shares = group.values(|_| 0.0);
        for (index, section) in sections {
            shares[*index] += section.totals.lost_cycles() as f64 / group.runs[*index].1.kernel_cycles().max(1) as f64;
        }
        statistics::mean(&shares)
    };
    let mut row = group_cells(group);
    row.insert(2, lock.into());
    row.extend([
        group.mean_of(sections, |section| section.totals.locked).into(),
        group.mean_of(sections, |section| section.totals.transactional).into(),
        group.mean_of(sections, |section| section.totals.spin_cycles).into(),
        group.mean_of(sections, |section| section.totals.restarts_total()).into(),
        group.mean_of(sections, |section| section.totals.transaction_cycles()).into(),
        share().into(),
        sections.iter().map(|(_, section)| section.totals.concurrency_max as u64).max().unwrap_or(0).into(),
        runs_cell(group),
    ]);
    row
}

/// The same by the address of the lock, so that one lock taken in many places is seen; of each run by itself, because what has no
/// symbol lies elsewhere in each.
pub fn lock_addresses(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("seed", "seed", Show::Count),
        Column::new("lock", "lock", Show::Text),
        Column::new("locked", "as a lock", Show::Count),
        Column::new("transactional", "as a transaction", Show::Count),
        Column::new("spin_cycles", "spinning (cycles)", Show::Count),
        Column::new("restart_cycles", "restarts (cycles)", Show::Count),
        Column::new("concurrency_max", "most harts", Show::Count),
        runs_column(),
    ]);
    let rows_of_run = |group: &GroupData, index: usize| -> Vec<Vec<Cell>> {
        let (run, result) = &group.runs[index];
        let row = |lock: &SectionLockResult| {
            let mut row = group_cells(group);
            row.push(run.seed.into());
            row.push(lock.lock.as_str().into());
            row.extend(
                [
                    lock.totals.locked,
                    lock.totals.transactional,
                    lock.totals.spin_cycles,
                    lock.totals.restart_cycles,
                    u64::from(lock.totals.concurrency_max),
                ]
                .map(Cell::from),
            );
            row.push(Cell::Runs(vec![super::link(run)]));
            row
        };
        costliest(result).into_iter().map(row).collect()
    };
    let rows_of_group =
        |group: &GroupData| (0..group.runs.len()).flat_map(|index| rows_of_run(group, index)).collect::<Vec<_>>();
    Table {
        name: "lock_addresses".to_owned(),
        title: format!("The {LOCKS_MAX} single locks that cost most in each run"),
        note: "By the address of the lock, with its symbol where there is one.".to_owned(),
        columns,
        rows: data.groups.iter().flat_map(rows_of_group).collect(),
    }
}

fn costliest(run: &ResultDocument) -> Vec<&SectionLockResult> {
    let cost = |lock: &SectionLockResult| lock.totals.spin_cycles + lock.totals.restart_cycles;
    let mut locks: Vec<&SectionLockResult> = run.section_locks.iter().filter(|lock| cost(lock) > 0).collect();
    locks.sort_by(|a, b| cost(b).cmp(&cost(a)).then_with(|| a.lock.cmp(&b.lock)));
    locks.truncate(LOCKS_MAX);
    locks
}

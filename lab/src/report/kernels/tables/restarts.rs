//! Restarts of transactions, by cause and by call site.

use super::{Data, GroupData, group_cells, group_columns, runs_cell, runs_column};
use crate::report::table::{Cell, Column, Show, Table};
use concord_machine::accounting::critical_sections::report::SectionResult;
use concord_machine::result::ResultDocument;
use std::collections::BTreeSet;

/// Call sites of a group that the table has.
const SITES_MAX: usize = 10;

/// Restarts by cause.
pub fn restarts_by_cause(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("cause", "cause", Show::Text),
        Column::new("restarts", "restarts", Show::Count),
        Column::new("restart_cycles", "lost (million cycles)", Show::Millions),
        Column::new("restart_share", "lost (% of kernel time)", Show::Percent),
        Column::new("exclusive_after", "then taken as a lock", Show::Count),
        runs_column(),
    ]);
    Table {
        name: "restarts".to_owned(),
        title: "Restarts of critical sections by cause".to_owned(),
        note: "need-exclusive: the section was about to do I/O. Cycles are those of the attempts that did not commit, with back-off and waiting."
            .to_owned(),
        columns,
        rows: data.groups.iter().flat_map(causes).collect(),
    }
}

fn causes(group: &GroupData) -> Vec<Vec<Cell>> {
    let sections = || group.runs.iter().flat_map(|(_, run)| &run.sections);
    let causes: BTreeSet<&String> = sections()
        .flat_map(|section| section.totals.restarts.iter())
        .filter_map(|(cause, count)| (*count > 0).then_some(cause))
        .collect();
    let row = |cause: &String| {
        let of = |map: fn(&SectionResult) -> &std::collections::BTreeMap<String, u64>| {
            move |run: &ResultDocument| -> u64 {
                run.sections.iter().map(|section| map(section).get(cause).copied().unwrap_or(0)).sum()
            }
        };
        let (restarts, cycles, exclusive) = (
            of(|section| &section.totals.restarts),
            of(|section| &section.totals.restart_cycles),
            of(|section| &section.totals.exclusive_after),
        );
        let mut row = group_cells(group);
        row.extend([
            cause.as_str().into(),
            group.mean(|run| restarts(run) as f64).into(),
            group.mean(|run| cycles(run) as f64).into(),
            group.share(cycles, ResultDocument::kernel_cycles).into(),
            group.mean(|run| exclusive(run) as f64).into(),
            runs_cell(group),
        ]);
        row
    };
    causes.into_iter().map(row).collect()
}

/// The call sites whose transactions lost most cycles to restarts.
pub fn restarts_by_site(data: &Data) -> Table {
    let mut columns = group_columns();
    columns.extend([
        Column::new("site", "call site", Show::Text),
        Column::new("lock", "lock", Show::Text),
        Column::new("executions", "executions", Show::Mean),
        Column::new("transactional", "committed", Show::Mean),
        Column::new("restarts", "restarts", Show::Mean),
        Column::new("causes", "by cause", Show::Text),
        Column::new("restart_cycles", "lost (million cycles)", Show::Millions),
        runs_column(),
    ]);
    Table {
        name: "restart_sites".to_owned(),
        title: format!("The {SITES_MAX} call sites that lost most cycles to restarts"),
        note: "A restart is counted where the outermost section of its transaction began.".to_owned(),
        columns,
        rows: data.groups.iter().flat_map(sites).collect(),
    }
}

fn sites(group: &GroupData) -> Vec<Vec<Cell>> {
    let sites = group.sections_by(|section| (section.site.clone(), section.kind.clone()));
    let cycles = |sections: &[(usize, &SectionResult)]| -> u64 {
        sections.iter().map(|(_, section)| section.totals.transaction_cycles()).sum()
    };
    let mut sites: Vec<_> = sites
        .into_iter()
        .filter(|(_, sections)| sections.iter().any(|(_, section)| section.totals.restarts_total() > 0))
        .collect();
    // The names are in order, and stay so among equals.
    sites.sort_by_key(|(_, sections)| std::cmp::Reverse(cycles(sections)));
    let row = |((site, kind), sections): &((String, String), Vec<(usize, &SectionResult)>)| {
        let mut row = group_cells(group);
        row.extend([
            site.as_str().into(),
            lock_name(sections, kind).into(),
            group.mean_of(sections, |section| section.totals.executions()).into(),
            group.mean_of(sections, |section| section.totals.transactional).into(),
            group.mean_of(sections, |section| section.totals.restarts_total()).into(),
            cause_counts(sections, group.runs.len()).into(),
            group.mean_of(sections, |section| section.totals.transaction_cycles()).into(),
            runs_cell(group),
        ]);
        row
    };
    sites.iter().take(SITES_MAX).map(row).collect()
}

/// The lock of a call site, or how many it takes.
fn lock_name(sections: &[(usize, &SectionResult)], kind: &str) -> String {
    let named = sections.iter().find_map(|(_, section)| section.lock.clone());
    let most = sections.iter().map(|(_, section)| section.locks).max().unwrap_or(0);
    named.unwrap_or_else(|| format!("{most} {kind} locks"))
}

/// Restarts a run by cause, most first.
fn cause_counts(sections: &[(usize, &SectionResult)], runs_count: usize) -> String {
    let mut causes = std::collections::BTreeMap::<&str, u64>::new();
    for (cause, count) in sections.iter().flat_map(|(_, section)| &section.totals.restarts) {
        *causes.entry(cause).or_default() += count;
    }
    let mut causes: Vec<(&str, u64)> = causes.into_iter().filter(|(_, count)| *count > 0).collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let each = |(cause, count): &(&str, u64)| {
        format!("{cause} {}", crate::report::table::grouped(*count as f64 / runs_count as f64, 0))
    };
    causes.iter().map(each).collect::<Vec<_>>().join(", ")
}

//! Restarts of transactions, by cause and by call site.

use super::Subject;
use crate::report::chart::Segment;
use crate::report::figure::{Figure, class, key};
use crate::report::kernels::charts::{Axis, by_kernel, hover_of};
use crate::report::kernels::data::Sections;
use crate::report::kernels::{Data, GroupData, table_of_rows};
use crate::report::table::{Cell, Column, Show, Table, grouped, shown};
use concord_machine::accounting::critical_sections::report::SectionTotals;
use concord_machine::result::ResultDocument;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub struct Restarts;

const TITLE: &str = "Restarts of critical sections by cause";
const NOTE: &str = "The cause need-exclusive means that the section was about to do I/O. Cycles are those of the attempts that did not \
                    commit, with their back-off and the time in which they waited.";

/// Call sites of a group that the table has.
const SITES_MAX: usize = 10;

/// A sum over the call sites of a run, by cause.
type ByCause = fn(&SectionTotals) -> &BTreeMap<String, u64>;

fn sum(run: &ResultDocument, map: ByCause, cause: &str) -> u64 {
    run.sum_of_sections(|totals| map(totals).get(cause).copied().unwrap_or(0))
}

fn causes<'a>(runs: impl Iterator<Item = &'a ResultDocument>) -> BTreeSet<&'a str> {
    let counts = runs.flat_map(|run| &run.sections).flat_map(|section| &section.totals.restarts);
    counts.filter(|(_, count)| **count > 0).map(|(cause, _)| cause.as_str()).collect()
}

impl Subject<Data<'_>> for Restarts {
    fn table(&self, data: &Data) -> Option<Table> {
        if !data.has_sections() {
            return None;
        }
        let columns = vec![
            Column::new("cause", "cause", Show::Text),
            Column::new("restarts", "restarts", Show::Count),
            Column::new("restart_cycles", "lost (million cycles)", Show::Millions).on_page(),
            Column::new("restart_share", "lost (% of kernel time)", Show::Percent),
            Column::new("exclusive_after", "then taken as a lock", Show::Mean),
        ];
        let rows = |group: &GroupData| -> Vec<Vec<Cell>> {
            let row = |cause: &str| {
                let mean = |map: ByCause| group.mean(|run| sum(run, map, cause) as f64);
                let cycles: ByCause = |totals| &totals.restart_cycles;
                vec![
                    cause.into(),
                    mean(|totals| &totals.restarts).into(),
                    mean(cycles).into(),
                    group.share(|run| sum(run, cycles, cause), ResultDocument::kernel_cycles).into(),
                    mean(|totals| &totals.exclusive_after).into(),
                ]
            };
            causes(group.runs.iter().map(|run| run.result)).into_iter().map(row).collect()
        };
        Some(table_of_rows(data, ("restarts", TITLE, NOTE), columns, rows))
    }

    fn sentence(&self, data: &Data) -> Option<String> {
        let mut parts = Vec::new();
        for (name, groups) in data.by_kernel(0) {
            let mut cycles = BTreeMap::<&str, u64>::new();
            let sections = groups.iter().flat_map(|group| &group.runs).flat_map(|run| &run.result.sections);
            for (cause, count) in sections.flat_map(|section| &section.totals.restart_cycles) {
                *cycles.entry(cause).or_default() += count;
            }
            let all: u64 = cycles.values().sum();
            let most = cycles.into_iter().max_by_key(|(_, cycles)| *cycles).filter(|(_, most)| *most > 0);
            if let Some((cause, most)) = most {
                let share = most as f64 / all as f64 * 100.0;
                parts.push(format!("{cause} on {name}, with {share:.0}% of the cycles that restarts cost"));
            }
        }
        Some(match parts.as_slice() {
            [] => "No critical section restarted".to_owned(),
            parts => format!("The costliest cause of restarts is {}", parts.join("; ")),
        })
    }

    fn figure(&self, data: &Data) -> Figure {
        let causes = causes(data.results());
        // Colours of kernels, from the second on: here they stand for causes.
        let classes: BTreeMap<&str, String> =
            causes.iter().enumerate().map(|(index, cause)| (*cause, class(index + 1))).collect();
        let charts = by_kernel(data, Axis::share("kernel time lost to restarts (%)"), |group| {
            let segment = |cause: &&str| {
                let cycles = |run: &ResultDocument| sum(run, |totals| &totals.restart_cycles, cause);
                let estimate = group.share(cycles, ResultDocument::kernel_cycles)?;
                let hover = hover_of(group, cause, &format!("{}% of kernel time", shown(&estimate, Show::Percent)));
                let segment = Segment { value: estimate.mean * 100.0, class: classes[*cause].clone(), hover };
                (segment.value > 0.0).then_some(segment)
            };
            causes.iter().filter_map(segment).collect()
        });
        Figure { legend: classes.iter().map(|(cause, class)| key(class, cause)).collect(), charts }
    }

    fn details(&self, data: &Data) -> Vec<Table> {
        vec![by_site(data)]
    }
}

/// The call sites whose transactions lost most cycles to restarts.
fn by_site(data: &Data) -> Table {
    let title = format!("The {SITES_MAX} call sites that lost most cycles to restarts");
    let note = "A restart counts at the call site where the outermost section of its transaction began.";
    let columns = vec![
        Column::new("site", "call site", Show::Text),
        Column::new("lock", "lock", Show::Text),
        Column::new("executions", "executions", Show::Mean),
        Column::new("transactional", "committed", Show::Mean),
        Column::new("restarts", "restarts", Show::Mean),
        Column::new("causes", "by cause", Show::Text),
        Column::new("restart_cycles", "lost (million cycles)", Show::Millions),
    ];
    table_of_rows(data, ("restart_sites", &title, note), columns, sites)
}

fn sites(group: &GroupData) -> Vec<Vec<Cell>> {
    let cycles =
        |sections: &Sections| -> u64 { sections.iter().map(|(_, section)| section.totals.transaction_cycles()).sum() };
    let mut sites: Vec<_> =
        group.sections_by(|section| (section.site.clone(), section.kind.clone())).into_iter().collect();
    sites.retain(|(_, sections)| sections.iter().any(|(_, section)| section.totals.restarts_total() > 0));
    // The names are in order, and stay so among equals.
    sites.sort_by_key(|(_, sections)| Reverse(cycles(sections)));
    let row = |((site, kind), sections): &((String, String), Sections)| {
        vec![
            site.as_str().into(),
            lock_name(sections, kind).into(),
            group.mean_of(sections, SectionTotals::executions).into(),
            group.mean_of(sections, |totals| totals.transactional).into(),
            group.mean_of(sections, SectionTotals::restarts_total).into(),
            cause_counts(sections, group.runs.len()).into(),
            group.mean_of(sections, SectionTotals::transaction_cycles).into(),
        ]
    };
    sites.iter().take(SITES_MAX).map(row).collect()
}

/// The lock of a call site, or how many it takes.
fn lock_name(sections: &Sections, kind: &str) -> String {
    let named = sections.iter().find_map(|(_, section)| section.lock.clone());
    let most = sections.iter().map(|(_, section)| section.locks).max().unwrap_or(0);
    named.unwrap_or_else(|| format!("{most} {kind} locks"))
}

/// Restarts of a run by cause, the most frequent first.
fn cause_counts(sections: &Sections, runs_count: usize) -> String {
    let mut causes = BTreeMap::<&str, u64>::new();
    for (cause, count) in sections.iter().flat_map(|(_, section)| &section.totals.restarts) {
        *causes.entry(cause).or_default() += count;
    }
    let mut causes: Vec<(&str, u64)> = causes.into_iter().filter(|(_, count)| *count > 0).collect();
    causes.sort_by_key(|(_, count)| Reverse(*count));
    let each = |(cause, count): &(&str, u64)| format!("{cause} {}", grouped(*count as f64 / runs_count as f64, 0));
    causes.iter().map(each).collect::<Vec<_>>().join(", ")
}
